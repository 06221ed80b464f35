//! Which characters the bytes of a text stand for.

use std::collections::HashMap;

use encoding_rs::{MACINTOSH, WINDOWS_1252};

use super::file::PdfFile;
use super::object::{PdfDictionary, PdfObject, PdfReader};

/// The characters of one font.
#[derive(Debug, Default)]
pub(super) struct PdfFont {
    /// What codes stand for, by the file's own word.
    named: HashMap<u32, String>,
    /// Bytes of one code.
    width: usize,
    most_codes: usize,
    /// Bytes of the map that was read.
    map_bytes: usize,
    fallback: FontFallback,
}

/// What a code is that nothing was said of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FontFallback {
    #[default]
    Windows,
    Mac,
    /// A number of a glyph, of which nobody knows what it looks like.
    Unknown,
}

/// More than two bytes can tell apart, which are the longest code that is read.
const MOST_CODES: usize = 70_000;
/// Bytes of text that one operator paints.
const MOST_DECODED: usize = 1 << 20;
/// Characters that one code stands for.
const LONGEST: usize = 16;

impl PdfFont {
    /// `most_codes` may be named.
    pub(super) fn read(file: &PdfFile<'_>, font: &PdfDictionary, most_codes: usize) -> Self {
        let is_composite = font.is("Subtype", "Type0");
        let mut read = Self {
            width: if is_composite { 2 } else { 1 },
            most_codes: most_codes.min(MOST_CODES),
            fallback: match is_composite {
                true => FontFallback::Unknown,
                false => FontFallback::Windows,
            },
            ..Self::default()
        };
        if !is_composite {
            read.take_encoding(file, font);
        }
        if let Some(PdfObject::Reference(number)) = font.get("ToUnicode") {
            let map = file.stream_of(*number);
            read.map_bytes = map.len();
            read.take_map(&map);
        }
        read
    }

    /// Codes that are named, and bytes that were read for it.
    pub(super) fn cost(&self) -> (usize, usize) {
        (self.named.len(), self.map_bytes)
    }

    /// What the bytes say, and how many codes of them nobody knows.
    pub(super) fn decoded(&self, bytes: &[u8]) -> (String, usize) {
        let (mut text, mut unknown) = (String::new(), 0);
        for code in bytes.chunks(self.width.max(1)) {
            if text.len() > MOST_DECODED {
                break;
            }
            let number = code
                .iter()
                .fold(0, |number, byte| number << 8 | u32::from(*byte));
            match (self.named.get(&number), self.fallback) {
                (Some(named), _) => text.push_str(named),
                (None, FontFallback::Unknown) => unknown += 1,
                (None, FontFallback::Windows) => {
                    text.push_str(&WINDOWS_1252.decode_without_bom_handling(code).0);
                }
                (None, FontFallback::Mac) => {
                    text.push_str(&MACINTOSH.decode_without_bom_handling(code).0);
                }
            }
        }
        (text, unknown)
    }

    fn take_encoding(&mut self, file: &PdfFile<'_>, font: &PdfDictionary) {
        let encoding = match file.value(font, "Encoding") {
            Some(PdfObject::Name(name)) => {
                self.take_base(name);
                return;
            }
            Some(PdfObject::Dictionary(encoding)) => encoding,
            _ => return,
        };
        if let Some(PdfObject::Name(name)) = file.value(encoding, "BaseEncoding") {
            self.take_base(name);
        }
        let Some(PdfObject::List(differences)) = file.value(encoding, "Differences") else {
            return;
        };
        let mut code = 0_u32;
        for difference in differences.iter().take(MOST_CODES) {
            match difference {
                PdfObject::Whole(number) => code = *number,
                PdfObject::Name(name) => {
                    if let Some(character) = character_of(name) {
                        self.put(code, &character);
                    }
                    code = code.saturating_add(1);
                }
                _ => {}
            }
        }
    }

    fn take_base(&mut self, name: &[u8]) {
        if name == b"MacRomanEncoding" {
            self.fallback = FontFallback::Mac;
        }
    }

    /// A map of codes to characters, as the file holds it.
    fn take_map(&mut self, map: &[u8]) {
        let mut reader = PdfReader::new(map, 0);
        let mut held = Vec::new();
        while let Some(object) = reader.next() {
            let PdfObject::Word(word) = &object else {
                if held.len() < 3 * MOST_CODES {
                    held.push(object);
                }
                continue;
            };
            match word.as_slice() {
                b"endcodespacerange" => {
                    let widths = held.iter().filter_map(text).map(<[u8]>::len);
                    self.width = widths.max().unwrap_or(self.width).clamp(1, 4);
                }
                b"endbfchar" => held.chunks(2).for_each(|pair| self.take_pair(pair)),
                b"endbfrange" => held.chunks(3).for_each(|range| self.take_range(range)),
                _ => {}
            }
            held.clear();
        }
    }

    fn take_pair(&mut self, pair: &[PdfObject]) {
        if let [code, PdfObject::Text(meant)] = pair
            && let Some(code) = number(code)
        {
            self.put(code, &utf16(meant));
        }
    }

    fn take_range(&mut self, range: &[PdfObject]) {
        let [first, last, meant] = range else { return };
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return;
        };
        for (step, code) in (first..=last).take(MOST_CODES).enumerate() {
            let one = match meant {
                PdfObject::List(list) => list.get(step).and_then(text).map(utf16),
                PdfObject::Text(from) => Some(stepped(from, step)),
                _ => None,
            };
            match one {
                Some(one) => self.put(code, &one),
                None => break,
            }
        }
    }

    fn put(&mut self, code: u32, meant: &str) {
        if self.named.len() < self.most_codes {
            self.named
                .insert(code, meant.chars().take(LONGEST).collect());
        }
    }
}

fn text(object: &PdfObject) -> Option<&[u8]> {
    match object {
        PdfObject::Text(text) => Some(text),
        _ => None,
    }
}

fn number(object: &PdfObject) -> Option<u32> {
    let bytes = text(object).filter(|bytes| bytes.len() <= 4)?;
    Some(
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)),
    )
}

fn utf16(bytes: &[u8]) -> String {
    let units = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u16::from_be_bytes([*high, *low]),
        [one] => u16::from(*one),
        _ => 0,
    });
    char::decode_utf16(units)
        .map(|unit| unit.unwrap_or('\u{fffd}'))
        .collect()
}

/// The same with so much added to its last unit.
fn stepped(from: &[u8], step: usize) -> String {
    let mut bytes = from.to_vec();
    let at = bytes.len().saturating_sub(2);
    if let [high, low] = &mut bytes[at..] {
        let unit = u16::from_be_bytes([*high, *low]);
        let step = u16::try_from(step).unwrap_or(u16::MAX);
        [*high, *low] = unit.wrapping_add(step).to_be_bytes();
    }
    utf16(&bytes)
}

/// The character that a glyph's name means.
fn character_of(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    // What stands behind a dot tells of its looks.
    let name = name.split('.').next().filter(|name| !name.is_empty())?;
    let mut characters = name.chars();
    if let (Some(one), None) = (characters.next(), characters.next()) {
        return Some(one.to_string());
    }
    if let Some((_, meant)) = GLYPHS.iter().find(|(known, _)| *known == name) {
        return Some((*meant).to_owned());
    }
    let hex = name
        .strip_prefix("uni")
        .or_else(|| name.strip_prefix('u'))?;
    let code = u32::from_str_radix(hex, 16).ok()?;
    char::from_u32(code).map(String::from)
}

/// Names of what is common in texts.
const GLYPHS: [(&str, &str); 83] = [
    ("space", " "),
    ("nbspace", " "),
    ("exclam", "!"),
    ("quotedbl", "\""),
    ("numbersign", "#"),
    ("dollar", "$"),
    ("percent", "%"),
    ("ampersand", "&"),
    ("quotesingle", "'"),
    ("parenleft", "("),
    ("parenright", ")"),
    ("asterisk", "*"),
    ("plus", "+"),
    ("comma", ","),
    ("hyphen", "-"),
    ("minus", "-"),
    ("period", "."),
    ("slash", "/"),
    ("zero", "0"),
    ("one", "1"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("colon", ":"),
    ("semicolon", ";"),
    ("less", "<"),
    ("equal", "="),
    ("greater", ">"),
    ("question", "?"),
    ("at", "@"),
    ("bracketleft", "["),
    ("backslash", "\\"),
    ("bracketright", "]"),
    ("asciicircum", "^"),
    ("underscore", "_"),
    ("grave", "`"),
    ("braceleft", "{"),
    ("bar", "|"),
    ("braceright", "}"),
    ("asciitilde", "~"),
    ("quoteleft", "‘"),
    ("quoteright", "’"),
    ("quotedblleft", "“"),
    ("quotedblright", "”"),
    ("quotedblbase", "„"),
    ("quotesinglbase", "‚"),
    ("guillemotleft", "«"),
    ("guillemotright", "»"),
    ("endash", "–"),
    ("emdash", "—"),
    ("bullet", "•"),
    ("ellipsis", "…"),
    ("dagger", "†"),
    ("section", "§"),
    ("degree", "°"),
    ("copyright", "©"),
    ("registered", "®"),
    ("trademark", "™"),
    ("Euro", "€"),
    ("sterling", "£"),
    ("multiply", "×"),
    ("ff", "ff"),
    ("fi", "fi"),
    ("fl", "fl"),
    ("ffi", "ffi"),
    ("ffl", "ffl"),
    ("germandbls", "ß"),
    ("adieresis", "ä"),
    ("odieresis", "ö"),
    ("udieresis", "ü"),
    ("Adieresis", "Ä"),
    ("Odieresis", "Ö"),
    ("Udieresis", "Ü"),
    ("eacute", "é"),
    ("egrave", "è"),
    ("agrave", "à"),
    ("ccedilla", "ç"),
    ("ntilde", "ñ"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_the_file_says_what_codes_mean() {
        let map = b"1 begincodespacerange <0000> <ffff> endcodespacerange
            1 beginbfchar <0003> <0048> endbfchar
            2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<00660069> <D83DDE00>] endbfrange
            1 beginbfrange <0000> <ffffffff> 7 endbfrange";
        let mut font = PdfFont {
            most_codes: MOST_CODES,
            fallback: FontFallback::Unknown,
            ..PdfFont::default()
        };
        font.take_map(map);
        let bytes = [0, 3, 0, 0x11, 0, 0x20, 0, 0x21, 0xff, 0xff];
        assert_eq!(font.decoded(&bytes), ("Hbfi\u{1f600}".to_owned(), 1));
    }

    #[test]
    fn names_of_glyphs_are_characters() {
        let character = |name: &str| character_of(name.as_bytes());
        assert_eq!(character("A").as_deref(), Some("A"));
        assert_eq!(character("uni00E9.alt").as_deref(), Some("é"));
        assert_eq!(character("fi").as_deref(), Some("fi"));
        assert_eq!(character("g123"), None);
        assert_eq!(character(""), None);
    }
}
