//! What a PDF file is written in: numbers, names, texts, lists and dictionaries.

/// One object, or a word that is none, as an operator of a page.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PdfObject {
    Null,
    Bool(bool),
    /// A whole number that is not negative.
    Whole(u32),
    Number(f64),
    Text(Vec<u8>),
    Name(Vec<u8>),
    List(Vec<PdfObject>),
    Dictionary(PdfDictionary),
    /// Another object of the file, by its number.
    Reference(u32),
    Word(Vec<u8>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PdfDictionary(Vec<(Vec<u8>, PdfObject)>);

/// Reads objects out of bytes. What cannot be is skipped, so it always comes to an end.
#[derive(Clone, Debug)]
pub(super) struct PdfReader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Objects that were made of them.
    made: usize,
    /// How many may be when this one is whole.
    most: usize,
}

/// What lies in another is read by a call in a call, so depth is stack.
const DEEPEST: usize = 24;
/// In one object, all that is in what is in it together: each takes more memory than it has bytes.
const MOST_IN_ONE: usize = 100_000;

impl PdfDictionary {
    pub(super) fn get(&self, name: &str) -> Option<&PdfObject> {
        let found = self.0.iter().find(|(key, _)| key == name.as_bytes());
        found.map(|(_, value)| value)
    }

    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        matches!(self.get(name), Some(PdfObject::Name(name)) if name == value.as_bytes())
    }
}

impl PdfObject {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Whole(number) => Some(f64::from(*number)),
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn count(&self) -> Option<usize> {
        match self {
            Self::Whole(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    pub(super) fn dictionary(&self) -> Option<&PdfDictionary> {
        match self {
            Self::Dictionary(dictionary) => Some(dictionary),
            _ => None,
        }
    }
}

impl<'a> PdfReader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self {
            bytes,
            at,
            made: 0,
            most: 0,
        }
    }

    /// Objects that were read so far, those in others counted.
    pub(super) fn made(&self) -> usize {
        self.made
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next object; nothing at the end.
    pub(super) fn next(&mut self) -> Option<PdfObject> {
        self.most = self.made + MOST_IN_ONE;
        self.object(0)
    }

    fn object(&mut self, depth: usize) -> Option<PdfObject> {
        self.made += 1;
        loop {
            self.skip_space();
            let byte = *self.bytes.get(self.at)?;
            let next = self.bytes.get(self.at + 1);
            return Some(match (byte, next) {
                (b'(', _) => self.text(),
                (b'<', Some(b'<')) => self.dictionary(depth),
                (b'<', _) => self.hex_text(),
                (b'[', _) => self.list(depth),
                (b'/', _) => self.name(),
                (b'+' | b'-' | b'.' | b'0'..=b'9', _) => self.number_or_reference(),
                // Ends of something that nobody began.
                (b')' | b']' | b'}' | b'{' | b'>', _) => {
                    self.at += 1;
                    continue;
                }
                _ => self.word(),
            });
        }
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'%' => {
                    let rest = &self.bytes[self.at..];
                    let line = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                    self.at += line.unwrap_or(rest.len());
                }
                byte if is_space(*byte) => self.at += 1,
                _ => return,
            }
        }
    }

    fn list(&mut self, depth: usize) -> PdfObject {
        self.at += 1;
        let mut list = Vec::new();
        while depth < DEEPEST && self.made < self.most {
            self.skip_space();
            match self.bytes.get(self.at) {
                None => break,
                Some(b']') => {
                    self.at += 1;
                    break;
                }
                Some(_) => match self.object(depth + 1) {
                    Some(object) => list.push(object),
                    None => break,
                },
            }
        }
        PdfObject::List(list)
    }

    fn dictionary(&mut self, depth: usize) -> PdfObject {
        self.at += 2;
        let mut entries = Vec::new();
        while depth < DEEPEST && self.made < self.most {
            self.skip_space();
            match self.bytes.get(self.at) {
                None => break,
                Some(b'>') => {
                    self.at = (self.at + 2).min(self.bytes.len());
                    break;
                }
                Some(b'/') => {}
                Some(_) => {
                    self.at += 1;
                    continue;
                }
            }
            let PdfObject::Name(key) = self.name() else {
                break;
            };
            self.skip_space();
            // A key without a value, before the end or another key is read as one.
            if self.bytes.get(self.at) == Some(&b'>') && self.bytes.get(self.at + 1) == Some(&b'>')
            {
                continue;
            }
            match self.object(depth + 1) {
                Some(value) => entries.push((key, value)),
                None => break,
            }
        }
        PdfObject::Dictionary(PdfDictionary(entries))
    }

    fn name(&mut self) -> PdfObject {
        self.at += 1;
        let mut name = Vec::new();
        while let Some(byte) = self.bytes.get(self.at).filter(|byte| is_regular(**byte)) {
            let pair = self.bytes.get(self.at + 1..self.at + 3);
            match pair.and_then(hex_pair).filter(|_| *byte == b'#') {
                Some(byte) => {
                    name.push(byte);
                    self.at += 3;
                }
                None => {
                    name.push(*byte);
                    self.at += 1;
                }
            }
        }
        PdfObject::Name(name)
    }

    fn word(&mut self) -> PdfObject {
        let from = self.at;
        while self
            .bytes
            .get(self.at)
            .is_some_and(|byte| is_regular(*byte))
        {
            self.at += 1;
        }
        // Something that is neither.
        self.at = self.at.max(from + 1);
        match &self.bytes[from..self.at] {
            b"null" => PdfObject::Null,
            b"true" => PdfObject::Bool(true),
            b"false" => PdfObject::Bool(false),
            word => PdfObject::Word(word.to_vec()),
        }
    }

    fn number_or_reference(&mut self) -> PdfObject {
        let number = self.number();
        let after = self.at;
        if let PdfObject::Whole(number) = number
            && self.is_reference()
        {
            return PdfObject::Reference(number);
        }
        self.at = after;
        number
    }

    /// Whether a generation and an `R` follow.
    fn is_reference(&mut self) -> bool {
        self.skip_space();
        let from = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) && self.at < from + 6 {
            self.at += 1;
        }
        if self.at == from {
            return false;
        }
        self.skip_space();
        let is_end = self
            .bytes
            .get(self.at + 1)
            .is_none_or(|byte| !is_regular(*byte));
        let is_reference = self.bytes.get(self.at) == Some(&b'R') && is_end;
        self.at += 1;
        is_reference
    }

    fn number(&mut self) -> PdfObject {
        let from = self.at;
        self.at += 1;
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'-');
        while self.bytes.get(self.at).is_some_and(is_part) {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.bytes[from..self.at]).unwrap_or_default();
        match text.parse() {
            Ok(whole) => PdfObject::Whole(whole),
            Err(_) => PdfObject::Number(text.parse().unwrap_or(0.0)),
        }
    }

    fn hex_text(&mut self) -> PdfObject {
        self.at += 1;
        let mut digits = Vec::new();
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'>' => break,
                byte if byte.is_ascii_hexdigit() => digits.push(*byte),
                _ => {}
            }
        }
        if digits.len() % 2 == 1 {
            digits.push(b'0');
        }
        PdfObject::Text(digits.chunks(2).filter_map(hex_pair).collect())
    }

    fn text(&mut self) -> PdfObject {
        self.at += 1;
        let (mut text, mut open) = (Vec::new(), 1);
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => text.extend(self.escaped()),
                b'(' => {
                    open += 1;
                    text.push(byte);
                }
                b')' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                    text.push(byte);
                }
                _ => text.push(byte),
            }
        }
        PdfObject::Text(text)
    }

    fn escaped(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(match byte {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' | b'f' => b' ',
            b'\r' => {
                self.at += usize::from(self.bytes.get(self.at) == Some(&b'\n'));
                return None;
            }
            b'\n' => return None,
            b'0'..=b'7' => {
                let mut value = u32::from(byte - b'0');
                for _ in 0..2 {
                    let digit = self
                        .bytes
                        .get(self.at)
                        .filter(|byte| matches!(byte, b'0'..=b'7'));
                    let Some(digit) = digit else { break };
                    value = value * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                u8::try_from(value & 0xff).unwrap_or(b' ')
            }
            other => other,
        })
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 12 | b'\r' | b' ')
}

/// Whether it is neither space nor a mark.
fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !b"()<>[]{}/%".contains(&byte)
}

pub(super) fn hex_pair(pair: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<PdfObject> {
        let mut reader = PdfReader::new(bytes, 0);
        std::iter::from_fn(|| reader.next()).collect()
    }

    #[test]
    fn objects_are_read_as_they_are_written() {
        let read = all(b"<< /A#20b [1 -2.5 (x\\)\\101(y)) <4 1>] /C 7 0 R % no\n/D 7 >> true Tj");
        let PdfObject::Dictionary(first) = &read[0] else {
            panic!("{read:?}");
        };
        let list = vec![
            PdfObject::Whole(1),
            PdfObject::Number(-2.5),
            PdfObject::Text(b"x)A(y)".to_vec()),
            PdfObject::Text(b"A".to_vec()),
        ];
        assert_eq!(first.get("A b"), Some(&PdfObject::List(list)));
        assert_eq!(first.get("C"), Some(&PdfObject::Reference(7)));
        assert_eq!(first.get("D"), Some(&PdfObject::Whole(7)));
        assert_eq!(
            read[1..],
            [PdfObject::Bool(true), PdfObject::Word(b"Tj".to_vec())]
        );
    }

    #[test]
    fn whatever_stands_there_comes_to_an_end() {
        for bytes in [
            &b"<<"[..],
            b"[[[[[",
            b"(((",
            b"<</A",
            b"<</A>>",
            b"\xff\x80>>]})",
            b"1 2",
            b"1 0",
            b"- . +",
            b"<<1 2 3",
        ] {
            all(bytes);
        }
        all(&b"[".repeat(10_000));
        all(&b"<</A".repeat(10_000));
    }
}
