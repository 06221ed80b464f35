//! Keys that say by their first letters whose they are.
//!
//! The rows of [`PREFIXES`] say whose; here is how a text is held against one.

mod prefixes;

use PrefixBoundary::{Anywhere, Word};

use super::random::is_random;
use crate::byte_class::ByteClass::{self, Alnum, Hex, Upper};
use crate::filter::{KnownStart, key};
use crate::window::{RuleMatch, TextAhead, is_token, starts_word};

pub(crate) use prefixes::PREFIXES;

/// The prefix of the keys of one vendor, and their shape.
#[derive(Debug)]
pub(crate) struct VendorPrefix {
    pub(crate) text: &'static str,
    made_of: ByteClass,
    /// How many characters follow at the least.
    least: usize,
    begins: PrefixBoundary,
}

/// Where a key may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrefixBoundary {
    /// The letters are telling enough to be believed in the middle of a word: `\x1b[31mghp_…`.
    Anywhere,
    /// The letters are also the end of ordinary words (`task-`), so a word must start here, and what
    /// follows must look drawn.
    Word,
}

/// A digit is looked for within this.
const LONGEST_DIGIT_SEARCH: usize = 128;

/// From this length on, capitals and small letters that change all the time need no digit.
const LEAST_DRAWN: usize = 8;

/// Shorter prefixes are met by chance in what was decoded.
const LEAST_TELLING: usize = 4;

/// No word is longer.
const LONGEST_WORD: usize = 25;

impl VendorPrefix {
    /// The beginnings that make a closer look worth its while. A prefix of two letters has one for each
    /// character that may follow.
    pub(crate) fn starts(&self) -> Vec<KnownStart> {
        match self.text.as_bytes() {
            [a, b] => (0..=u8::MAX)
                .filter(|byte| self.made_of.fits(*byte))
                .map(|byte| KnownStart::Three(key([*a, *b, byte])))
                .collect(),
            longer => KnownStart::of(longer).into_iter().collect(),
        }
    }

    pub(crate) fn look(&self, behind: &[u8], ahead: TextAhead<'_>) -> RuleMatch {
        // Behind a plus it is the middle of base64.
        if self.begins == Word && (!starts_word(behind) || behind.ends_with(b"+")) {
            return Ok(None);
        }
        if !ahead.is(0, self.text)? {
            return Ok(None);
        }
        let from = self.text.len();
        let end = ahead.run(from, self.made_of)?;
        if end - from < self.least || self.ends_in_a_word(ahead, end)? {
            return Ok(None);
        }
        let start = ahead.slice(from..end.min(from + LONGEST_DIGIT_SEARCH));
        Ok((self.begins == Anywhere || self.looks_drawn(start)).then_some(0..end))
    }

    /// Whether a text begins with letters that are telling by themselves, and goes on.
    pub(super) fn begins(text: &[u8]) -> bool {
        PREFIXES
            .iter()
            .filter(|row| row.begins == Anywhere && row.text.len() >= LEAST_TELLING)
            .any(|row| text.len() > row.text.len() && text.starts_with(row.text.as_bytes()))
    }

    /// Few letters that nothing divides from the rest are the beginning of many names.
    fn looks_drawn(&self, body: &[u8]) -> bool {
        // `AKIA` and sixteen more are nothing else, with a digit among them or without.
        if self.made_of == Upper && self.text.len() == 4 && body.len() == 16 && self.least == 16 {
            return true;
        }
        let plain =
            self.text.len() <= 3 && self.text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        looks_drawn(body) && (!plain || is_random(body, LEAST_DRAWN))
    }

    /// A short alphabet that ends in the middle of a word was met by chance.
    fn ends_in_a_word(
        &self,
        ahead: TextAhead<'_>,
        end: usize,
    ) -> Result<bool, crate::window::NeedMore> {
        let short = matches!(self.made_of, Hex | Upper | Alnum) && self.begins == Word;
        let goes_on = |byte: u8| is_token(byte) && byte != b'-';
        Ok(short && ahead.at(end)?.is_some_and(goes_on))
    }
}

fn looks_drawn(body: &[u8]) -> bool {
    let (mut digit, mut letter) = (false, false);
    for byte in body {
        digit |= byte.is_ascii_digit();
        letter |= byte.is_ascii_alphabetic();
    }
    if !letter {
        return false;
    }
    // Words with a number among them are a name.
    let mut parts = body.split(|byte| b"_-.".contains(byte));
    let plain = |part: &[u8]| {
        part.iter().all(u8::is_ascii_alphabetic) && !is_long_run(part) && !is_random(part, 16)
            || part.len() <= 4 && part.iter().all(u8::is_ascii_digit)
    };
    !parts.all(plain) && (digit || is_long_run(body) || is_random(body, LEAST_DRAWN))
}

/// More letters of one case in a row than any word has.
fn is_long_run(part: &[u8]) -> bool {
    part.len() >= LONGEST_WORD
        && (part.iter().all(u8::is_ascii_lowercase) || part.iter().all(u8::is_ascii_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_is_long_enough_for_the_filter() {
        for row in PREFIXES {
            assert!(row.text.len() >= 2, "{}", row.text);
            assert!(!row.starts().is_empty(), "{}", row.text);
            assert!(row.text.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }

    #[test]
    fn no_prefix_stands_there_twice() {
        let mut texts: Vec<_> = PREFIXES.iter().map(|row| (row.text, row.least)).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), PREFIXES.len());
    }
}
