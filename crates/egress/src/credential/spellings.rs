//! What is looked for in an answer: every spelling of a secret, as one automaton.
//!
//! A long spelling is compared by its letters and digits alone, whatever their case: what an encoder
//! puts between them (line breaks, separators, quotes, `+` and `/` as it likes them) is passed over, and
//! the same text is never the secret by chance. A short one is compared character by character.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use zeroize::Zeroizing;

/// Letters and digits from which on nothing between them needs to be looked at.
const LEAST_LOOSE: usize = 16;

/// A spelling shorter than this would match by accident.
const SHORTEST_SPELLING: usize = 8;

/// A part of the secret of so many letters and digits must not come back either.
pub(super) const LEAST_PART: usize = 16;

/// Each place where such a part can begin has up to sixteen states of 144 bytes. Of a secret with twice as
/// many letters every second place counts, and so on.
const MOST_WINDOWS: usize = 4096;

/// A longer spelling is looked for in parts that touch, so that the automaton stays small.
const LONGEST_SPELLING: usize = 256;
const PART: usize = 32;

/// Tells how much an automaton passes over between two of its symbols: everything, or little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GapTolerance {
    Loose,
    Strict,
}

/// A value of at most so many bytes is also looked for as base64 within base64, as the login of a registry
/// stands in a cluster's secret. That is nine texts more, of nearly twice its length.
const LONGEST_TWICE_ENCODED: usize = 512;

/// All spellings of one secret.
pub(crate) struct SecretSpellings {
    pub(super) automata: Vec<SpellingAutomaton>,
    /// The bytes of the longest value.
    pub(super) longest: usize,
}

impl SecretSpellings {
    /// Values that are secret from their beginning.
    #[cfg(test)]
    pub(crate) fn of(values: &[&str]) -> Self {
        let secret: Vec<_> = values.iter().map(|value| ("", *value)).collect();
        Self::behind_heads(&secret)
    }

    /// All of these values are spelt in every way we know of. Each begins with something that is no secret: it
    /// is taken out with the rest, and nobody learns anything by that.
    pub(crate) fn behind_heads(values: &[(&str, &str)]) -> Self {
        let mut loose = SpellingTexts::new();
        let mut strict = SpellingTexts::new();
        for (head, rest) in values {
            let value = Zeroizing::new(format!("{head}{rest}"));
            add_value(&value, head, &mut loose, &mut strict);
        }
        let kinds = [(GapTolerance::Loose, loose), (GapTolerance::Strict, strict)];
        Self {
            automata: kinds
                .into_iter()
                .filter(|(_, texts)| !texts.is_empty())
                .map(|(kind, texts)| SpellingAutomaton::new(kind, &texts))
                .collect(),
            longest: values
                .iter()
                .map(|(head, rest)| head.len() + rest.len())
                .max()
                .unwrap_or(0),
        }
    }
}

type SpellingTexts = Vec<SpellingText>;

/// A text that is looked for.
struct SpellingText {
    symbols: Zeroizing<Vec<u8>>,
    /// Whether the secret is at its end where this is.
    whole: bool,
    /// How many of the first symbols say nothing of what is secret.
    public: usize,
}

impl SpellingText {
    fn whole(symbols: impl Into<Vec<u8>>, public: usize) -> Self {
        Self {
            symbols: Zeroizing::new(symbols.into()),
            whole: true,
            public,
        }
    }

    fn part(symbols: &[u8], public: usize) -> Self {
        Self {
            symbols: Zeroizing::new(symbols.to_vec()),
            whole: false,
            public,
        }
    }
}

/// Every form in which a value is spelt, the reversed one first.
fn forms_of(bytes: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let wide: Zeroizing<Vec<u8>> =
        Zeroizing::new(bytes.iter().flat_map(|byte| [*byte, 0]).collect());
    let mut forms = vec![
        bytes.iter().rev().copied().collect(),
        bytes.to_vec(),
        hex(bytes, ""),
        hex(bytes, "0x"),
        // Two bytes for each character, whichever comes first.
        hex(wide.strip_suffix(&[0]).unwrap_or(&wide), ""),
        // As a list of numbers.
        bytes
            .iter()
            .flat_map(|byte| byte.to_string().into_bytes())
            .collect(),
    ];
    for text in [bytes, wide.as_slice()] {
        for offset in 0..3 {
            forms.push(inner_base64(text, offset));
        }
    }
    for offset in 0..5 {
        forms.push(inner_base32(bytes, offset));
    }
    // Last, so that a head that is shorter than this has its forms in the same places.
    if bytes.len() <= LONGEST_TWICE_ENCODED {
        for offset in 0..3 {
            let once = Zeroizing::new(inner_base64(bytes, offset));
            forms.extend((0..3).map(|offset| inner_base64(&once, offset)));
        }
    }
    forms.into_iter().map(Zeroizing::new).collect()
}

fn add_value(value: &str, head: &str, loose: &mut SpellingTexts, strict: &mut SpellingTexts) {
    let symbols = |text: &[u8], kind: GapTolerance| -> Zeroizing<Vec<u8>> {
        Zeroizing::new(text.iter().filter_map(|byte| kind.symbol(*byte)).collect())
    };
    let heads = forms_of(head.as_bytes());
    for (index, (form, head)) in forms_of(value.as_bytes()).iter().zip(&heads).enumerate() {
        // What is reversed ends with the head.
        let head: &[u8] = match index > 0 && form.starts_with(head) {
            true => head,
            false => &[],
        };
        let skeleton = symbols(form, GapTolerance::Loose);
        if skeleton.len() >= LEAST_LOOSE {
            let public = symbols(head, GapTolerance::Loose).len();
            add_parts(&skeleton, public, loose);
        } else if form.len() >= SHORTEST_SPELLING {
            let folded = symbols(form, GapTolerance::Strict);
            let public = symbols(head, GapTolerance::Strict).len();
            strict.push(SpellingText::whole(folded.to_vec(), public));
        }
    }
    let skeleton = symbols(value.as_bytes(), GapTolerance::Loose);
    let public = symbols(head.as_bytes(), GapTolerance::Loose).len();
    let step = (skeleton.len() / MOST_WINDOWS).clamp(1, LEAST_PART);
    for (at, part) in skeleton.windows(LEAST_PART).enumerate().step_by(step) {
        loose.push(SpellingText::part(part, public.saturating_sub(at)));
    }
}

/// `public` of the first symbols are no secret.
fn add_parts(text: &[u8], public: usize, texts: &mut SpellingTexts) {
    if text.len() <= LONGEST_SPELLING {
        texts.push(SpellingText::whole(text, public));
        return;
    }
    for (at, part) in text.windows(PART).enumerate().step_by(PART) {
        texts.push(SpellingText::part(part, public.saturating_sub(at)));
    }
    let last = text.len() - PART;
    texts.push(SpellingText::whole(
        &text[last..],
        public.saturating_sub(last),
    ));
}

/// The characters that the secret alone decides, wherever in a longer text it was encoded.
fn inner_base64(secret: &[u8], offset: usize) -> Vec<u8> {
    let mut padded = Zeroizing::new(vec![0; offset]);
    padded.extend_from_slice(secret);
    let encoded = STANDARD_NO_PAD.encode(&*padded).into_bytes();
    let start = (offset * 8).div_ceil(6);
    let end = padded.len() * 8 / 6;
    encoded.get(start..end).unwrap_or_default().to_vec()
}

/// The same in base32, where a character holds five bits.
fn inner_base32(secret: &[u8], offset: usize) -> Vec<u8> {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let (start, end) = ((offset * 8).div_ceil(5), (offset + secret.len()) * 8 / 5);
    let bit = |at: usize| {
        let byte = (at / 8).checked_sub(offset).and_then(|at| secret.get(at));
        byte.is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1)
    };
    let symbol = |at: usize| {
        (0..5).fold(0, |value, next| {
            value << 1 | usize::from(bit(at * 5 + next))
        })
    };
    (start..end).map(|at| ALPHABET[symbol(at)]).collect()
}

fn hex(bytes: &[u8], before: &str) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|byte| format!("{before}{byte:02x}").into_bytes())
        .collect()
}

impl GapTolerance {
    const fn width(self) -> usize {
        match self {
            Self::Loose => 36,
            Self::Strict => 128,
        }
    }

    /// How many bytes in a row it passes over before what it saw is forgotten.
    pub(super) const fn longest_gap(self) -> u32 {
        match self {
            Self::Loose => 16,
            Self::Strict => 4,
        }
    }

    /// What a byte counts as, if it is not passed over.
    pub(super) fn symbol(self, byte: u8) -> Option<u8> {
        match self {
            Self::Loose => match byte {
                b'0'..=b'9' => Some(byte - b'0'),
                b'a'..=b'z' => Some(byte - b'a' + 10),
                b'A'..=b'Z' => Some(byte - b'A' + 10),
                _ => None,
            },
            Self::Strict => {
                let passed = matches!(byte, b'\r' | b'\n' | 0) || byte >= 128;
                // Encoders of base64 disagree about two characters.
                let one = match byte.to_ascii_lowercase() {
                    b'-' => b'+',
                    b'_' => b'/',
                    other => other,
                };
                (!passed).then_some(one)
            }
        }
    }
}

/// Finds all spellings at once, a symbol at a time.
pub(super) struct SpellingAutomaton {
    pub(super) kind: GapTolerance,
    /// The next state for each state and symbol.
    next: Vec<u32>,
    /// How much of a spelling each state has seen.
    depth: Vec<u16>,
    /// The length of the longest spelling that ends in each state, or 0.
    found: Vec<u16>,
    /// Whether a whole spelling ends in each state.
    whole: Vec<bool>,
    /// Whether all that each state has seen is no secret.
    public: Vec<bool>,
}

impl SpellingAutomaton {
    fn new(kind: GapTolerance, texts: &SpellingTexts) -> Self {
        const NONE: u32 = u32::MAX;
        let width = kind.width();
        let mut made = Self {
            kind,
            next: vec![NONE; width],
            depth: vec![0],
            found: vec![0],
            whole: vec![false],
            public: vec![true],
        };
        for text in texts {
            let mut state = 0_usize;
            for (index, symbol) in text.symbols.iter().enumerate() {
                let edge = state * width + usize::from(*symbol);
                if made.next[edge] == NONE {
                    made.next[edge] = u32::try_from(made.depth.len()).unwrap_or(0);
                    made.next.extend(std::iter::repeat_n(NONE, width));
                    made.depth
                        .push(u16::try_from(index + 1).unwrap_or(u16::MAX));
                    made.found.push(0);
                    made.whole.push(false);
                    made.public.push(true);
                }
                state = made.next[edge] as usize;
                made.public[state] &= index < text.public;
            }
            made.found[state] = made.depth[state];
            made.whole[state] |= text.whole;
        }
        made.close(NONE);
        made
    }

    /// Puts in where to go on when a spelling breaks off: breadth first, so that shorter ones are ready.
    fn close(&mut self, none: u32) {
        let width = self.kind.width();
        let mut fallback = vec![0_u32; self.depth.len()];
        let mut queue = std::collections::VecDeque::from([0_u32]);
        while let Some(state) = queue.pop_front() {
            let at = state as usize;
            let back = fallback[at] as usize;
            self.found[at] = self.found[at].max(self.found[back]);
            self.whole[at] |= self.whole[back];
            for symbol in 0..width {
                let edge = at * width + symbol;
                let elsewhere = if at == 0 {
                    0
                } else {
                    self.next[back * width + symbol]
                };
                let child = self.next[edge];
                if child == none {
                    self.next[edge] = elsewhere;
                } else {
                    fallback[child as usize] = elsewhere;
                    queue.push_back(child);
                }
            }
        }
    }

    pub(super) fn step(&self, state: u32, symbol: u8) -> u32 {
        self.next[state as usize * self.kind.width() + usize::from(symbol)]
    }

    /// How many symbols of a spelling have been seen.
    pub(super) fn depth(&self, state: u32) -> usize {
        usize::from(self.depth[state as usize])
    }

    /// Whether a whole spelling ends here.
    pub(super) fn is_whole(&self, state: u32) -> bool {
        self.whole[state as usize]
    }

    /// Whether nothing of what has been seen is secret.
    pub(super) fn is_public(&self, state: u32) -> bool {
        self.public[state as usize]
    }

    /// How many symbols back the longest spelling began that ends here.
    pub(super) fn found(&self, state: u32) -> Option<usize> {
        let found = usize::from(self.found[state as usize]);
        (found > 0).then_some(found)
    }
}

impl Drop for SpellingAutomaton {
    fn drop(&mut self) {
        use zeroize::Zeroize as _;
        self.next.zeroize();
    }
}
