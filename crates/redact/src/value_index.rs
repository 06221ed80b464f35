//! Many exact values, looked for at one place.
//!
//! A sorted list walked like a trie: every byte of the text narrows the range of values that still
//! fit. Values that share a long prefix (200 keys of one vendor) cost no more than others.

use zeroize::Zeroizing;

use crate::window::{NeedMore, TextAhead};

/// An index of exact values, looked up at one place of the text.
pub(crate) struct ValueIndex {
    sorted: Vec<Zeroizing<Vec<u8>>>,
    breaks: LineBreaks,
    /// A bitmap of how values begin, by the hash of their first four bytes: most places that the
    /// filter lets through end here.
    heads: Box<[u64; 1024]>,
}

/// Tells whether a line break in the text may stand in the middle of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineBreaks {
    Matter,
    /// `base64` wraps its lines.
    Skip,
}

impl ValueIndex {
    pub(crate) fn new(mut values: Vec<Zeroizing<Vec<u8>>>, breaks: LineBreaks) -> Self {
        values.sort_by(|one, two| one.as_slice().cmp(two.as_slice()));
        values.dedup();
        let mut heads = Box::new([0; 1024]);
        for value in &values {
            if let Some(four) = value.first_chunk() {
                let bit = hash(*four);
                heads[bit >> 6] |= 1 << (bit & 63);
            }
        }
        Self {
            sorted: values,
            breaks,
            heads,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.sorted.iter().map(|value| value.as_slice())
    }

    /// How many bytes of the text the longest value here takes.
    pub(crate) fn longest(&self, ahead: TextAhead<'_>) -> Result<Option<usize>, NeedMore> {
        let Some(head) = ahead.first_four()? else {
            return Ok(None);
        };
        let bit = hash(head);
        if self.heads[bit >> 6] >> (bit & 63) & 1 == 0 {
            return Ok(None);
        }
        let mut fitting = self.sorted.as_slice();
        let mut found = None;
        let mut depth = 0;
        let mut at = 0;
        loop {
            // The list is sorted, so a value that ends here comes first.
            if let Some((first, rest)) = fitting.split_first()
                && first.len() == depth
            {
                found = Some(at);
                fitting = rest;
            }
            if fitting.is_empty() {
                return Ok(found);
            }
            let Some(byte) = ahead.at(at)? else {
                return Ok(found);
            };
            at += 1;
            if depth > 0 && self.breaks == LineBreaks::Skip && matches!(byte, b'\n' | b'\r') {
                continue;
            }
            let low = fitting.partition_point(|value| value[depth] < byte);
            let high = fitting.partition_point(|value| value[depth] <= byte);
            fitting = &fitting[low..high];
            depth += 1;
        }
    }
}

fn hash(four: [u8; 4]) -> usize {
    (u32::from_le_bytes(four).wrapping_mul(0x9E37_79B1) >> 16) as usize
}
