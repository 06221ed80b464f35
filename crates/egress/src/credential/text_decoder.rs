//! The ways a text can be read: as it stands, or with its escapes undone.
//!
//! Which one was meant cannot be known (`%41` may be an `A` or three characters), so each is tried.

/// The way in which the bytes of an answer are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEncoding {
    Plain,
    /// `\u002B`, `\u{2b}`, `\x2b`, `\/`, `%2B`, `%u002B`, `&#43;`, also once more escaped, in any order.
    Unescaped,
    /// `=2B`, and lines that end in `=`.
    QuotedPrintable,
}

/// A character and the bytes of the answer that stand for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodedByte {
    pub(super) byte: u8,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// Decodes an answer in one encoding, byte by byte.
#[derive(Clone)]
pub(super) struct TextDecoder {
    encoding: TextEncoding,
    /// The beginning of what may be an escape, and where it stands. What came before in an escape of an
    /// escape is left out.
    pending: Vec<u8>,
    /// Where each pending byte stands.
    places: Vec<u64>,
}

/// What the pending bytes of an escape amount to.
enum EscapeState {
    /// It is not at its end.
    Open,
    /// It stands for this.
    Is(u8),
    /// It stands for this, and ended before the last byte.
    EndedBefore(u8),
    /// It stands for the beginning of another one.
    Again(u8),
    /// It stands for nothing.
    Nothing,
    /// It is none.
    None,
}

/// No escape is longer.
const LONGEST_ESCAPE: usize = 12;

/// Stands for a character that no credential has.
const OTHER: u8 = 0xff;

impl TextDecoder {
    pub(super) fn new(encoding: TextEncoding) -> Self {
        Self {
            encoding,
            pending: Vec::new(),
            places: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, byte: u8, at: u64, see: &mut impl FnMut(DecodedByte)) {
        if self.encoding == TextEncoding::Plain || self.pending.is_empty() && !self.opens(byte) {
            see(DecodedByte {
                byte,
                from: at,
                to: at + 1,
            });
            return;
        }
        self.pending.push(byte);
        self.places.push(at);
        let from = self.places[0];
        match self.escape() {
            EscapeState::Open => {}
            // However often and in whichever order it was escaped.
            EscapeState::Is(byte) if self.opens(byte) => {
                self.clear();
                self.pending.push(byte);
                self.places.push(from);
            }
            EscapeState::EndedBefore(stands_for) => {
                self.clear();
                see(DecodedByte {
                    byte: stands_for,
                    from,
                    to: at,
                });
                self.push(byte, at, see);
            }
            EscapeState::Is(byte) => {
                self.clear();
                see(DecodedByte {
                    byte,
                    from,
                    to: at + 1,
                });
            }
            EscapeState::Again(byte) => {
                self.clear();
                self.pending.push(byte);
                self.places.push(from);
            }
            EscapeState::Nothing => self.clear(),
            EscapeState::None => self.give_up(see),
        }
    }

    /// The first pending byte stands for itself; the others may begin an escape of their own.
    fn give_up(&mut self, see: &mut impl FnMut(DecodedByte)) {
        let pending = std::mem::take(&mut self.pending);
        let places = std::mem::take(&mut self.places);
        for (index, (byte, from)) in pending.into_iter().zip(places).enumerate() {
            if index == 0 {
                see(DecodedByte {
                    byte,
                    from,
                    to: from + 1,
                });
            } else {
                self.push(byte, from, see);
            }
        }
    }

    fn clear(&mut self) {
        self.pending.clear();
        self.places.clear();
    }

    fn opens(&self, byte: u8) -> bool {
        match self.encoding {
            TextEncoding::Plain => false,
            TextEncoding::Unescaped => matches!(byte, b'\\' | b'%' | b'&'),
            TextEncoding::QuotedPrintable => byte == b'=',
        }
    }

    fn escape(&self) -> EscapeState {
        if self.pending.len() > LONGEST_ESCAPE {
            return EscapeState::None;
        }
        match self.pending.as_slice() {
            [_] => EscapeState::Open,
            [b'\\', rest @ ..] => backslash(rest),
            [b'%', b'u' | b'U'] => EscapeState::Open,
            [b'%', b'u' | b'U', rest @ ..] => match number(rest, 16, 4) {
                Some(Some(byte)) => EscapeState::Is(byte),
                Some(None) => EscapeState::Open,
                None => EscapeState::None,
            },
            [b'%', rest @ ..] => match number(rest, 16, 2) {
                Some(Some(byte)) => EscapeState::Is(byte),
                Some(None) => EscapeState::Open,
                None => EscapeState::None,
            },
            [b'&', rest @ ..] => entity(rest),
            [b'=', b'\n'] | [b'=', b'\r', b'\n'] => EscapeState::Nothing,
            [b'=', b'\r'] => EscapeState::Open,
            [b'=', rest @ ..] => match number(rest, 16, 2) {
                Some(Some(byte)) => EscapeState::Is(byte),
                Some(None) => EscapeState::Open,
                None => EscapeState::None,
            },
            _ => EscapeState::None,
        }
    }
}

fn backslash(rest: &[u8]) -> EscapeState {
    let (digits, radix, count) = match rest {
        // However often it was escaped.
        [b'\\'] => return EscapeState::Again(b'\\'),
        [b'/' | b'"' | b'\''] => return EscapeState::Is(rest[0]),
        [b'n' | b'r'] => return EscapeState::Is(b'\n'),
        [b't' | b'b' | b'f'] => return EscapeState::Is(b'\t'),
        [b'u' | b'x', b'{', digits @ ..] => return in_braces(digits),
        [b'u', digits @ ..] => (digits, 16, 4),
        [b'U', digits @ ..] => (digits, 16, 8),
        [b'x' | b'X', digits @ ..] => (digits, 16, 2),
        [b'0'..=b'7', ..] => (rest, 8, 3),
        _ => return EscapeState::None,
    };
    match number(digits, radix, count) {
        Some(Some(byte)) => EscapeState::Is(byte),
        Some(None) => EscapeState::Open,
        None => EscapeState::None,
    }
}

/// `{67}`, as JavaScript, PHP, Ruby and Perl have it.
fn in_braces(digits: &[u8]) -> EscapeState {
    match digits {
        [digits @ .., b'}'] => match number(digits, 16, digits.len()).flatten() {
            Some(byte) => EscapeState::Is(byte),
            None => EscapeState::None,
        },
        _ if digits.iter().all(u8::is_ascii_hexdigit) => EscapeState::Open,
        _ => EscapeState::None,
    }
}

fn entity(rest: &[u8]) -> EscapeState {
    let Some((last, name)) = rest.split_last() else {
        return EscapeState::Open;
    };
    // A number is at its end where no digit follows: browsers ask for no semicolon.
    if let [b'#', digits @ ..] = name
        && *last != b';'
    {
        let (digits, radix) = match digits {
            [b'x' | b'X', digits @ ..] => (digits, 16),
            digits => (digits, 10),
        };
        if !char::from(*last).is_digit(radix) && !digits.is_empty() {
            let ended = number(digits, radix, digits.len()).flatten();
            return ended.map_or(EscapeState::None, EscapeState::EndedBefore);
        }
    }
    if *last != b';' {
        let fits = last.is_ascii_alphanumeric() || *last == b'#' && name.is_empty();
        return if fits {
            EscapeState::Open
        } else {
            EscapeState::None
        };
    }
    let decimal = |digits: &[u8], radix| number(digits, radix, digits.len()).flatten();
    match name {
        [b'#', b'x' | b'X', digits @ ..] => {
            decimal(digits, 16).map_or(EscapeState::None, EscapeState::Is)
        }
        [b'#', digits @ ..] => decimal(digits, 10).map_or(EscapeState::None, EscapeState::Is),
        b"amp" => EscapeState::Again(b'&'),
        b"lt" => EscapeState::Is(b'<'),
        b"gt" => EscapeState::Is(b'>'),
        b"quot" => EscapeState::Is(b'"'),
        b"apos" => EscapeState::Is(b'\''),
        b"plus" => EscapeState::Is(b'+'),
        b"sol" => EscapeState::Is(b'/'),
        b"equals" => EscapeState::Is(b'='),
        _ => EscapeState::Is(OTHER),
    }
}

/// A number of so many digits: `Some(None)` where some are missing, `None` where it is none.
fn number(digits: &[u8], radix: u32, count: usize) -> Option<Option<u8>> {
    let mut value = 0_u32;
    for digit in digits {
        let digit = char::from(*digit).to_digit(radix)?;
        value = value.saturating_mul(radix).saturating_add(digit);
    }
    if digits.is_empty() && count == 0 {
        return None;
    }
    if digits.len() < count {
        return Some(None);
    }
    // What is no character of a credential need not be told apart.
    Some(Some(
        u8::try_from(value)
            .ok()
            .filter(u8::is_ascii)
            .unwrap_or(OTHER),
    ))
}
