//! Values that a rule recognised, gone from there on wherever they stand.
//!
//! A key that was printed behind its name is often printed again without it. Each text learns its own
//! values and forgets them at its end.

use std::ops::Range;

use zeroize::Zeroizing;

use crate::filter::{KnownStart, StartFilter};
use crate::rules::is_identifier;
use crate::window::{NeedMore, StreamRest};

/// More of them in one text are a list, and every row of it has its name.
const MOST_LEARNED: usize = 64;

/// Shorter ones are words that stand elsewhere for other reasons; longer ones are whole documents.
const LENGTHS: Range<usize> = 8..257;

/// The values that were recognised in one text.
#[derive(Default)]
pub(crate) struct LearnedValues {
    values: Vec<Zeroizing<Vec<u8>>>,
    /// The filter of the net with the beginnings of these.
    filter: Option<StartFilter>,
}

impl LearnedValues {
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Where to look, once there is something to look for.
    pub(crate) fn filter(&self) -> Option<&StartFilter> {
        self.filter.as_ref()
    }

    pub(crate) fn learn(&mut self, value: &[u8], usual: &StartFilter) {
        let worth = LENGTHS.contains(&value.len())
            && self.values.len() < MOST_LEARNED
            && is_telling(value)
            && !self.values.iter().any(|known| known.as_slice() == value);
        let (true, Some(start)) = (worth, KnownStart::of(value)) else {
            return;
        };
        let filter = self.filter.get_or_insert_with(|| usual.clone());
        filter.add(start);
        self.values.push(Zeroizing::new(value.to_vec()));
    }

    /// How many bytes of the text the longest value here takes.
    pub(crate) fn longest(&self, rest: StreamRest<'_>) -> Result<Option<usize>, NeedMore> {
        let mut longest = None;
        for value in &self.values {
            if rest.bytes.starts_with(value) {
                longest = longest.max(Some(value.len()));
            } else if !rest.last && value.starts_with(rest.bytes) {
                return Err(NeedMore);
            }
        }
        Ok(longest)
    }
}

/// A value that stands nowhere by chance: no word, no number, no name in code.
fn is_telling(value: &[u8]) -> bool {
    let digit = value.iter().any(u8::is_ascii_digit);
    let letter = value.iter().any(u8::is_ascii_alphabetic);
    let code = |byte: &u8| b"] ()<>{}".contains(byte);
    letter
        && (digit || value.len() >= 16)
        // What was taken out before is no value.
        && !value.iter().any(code)
        && !value.windows(2).any(|pair| pair == b"::")
        && !is_identifier(value)
}
