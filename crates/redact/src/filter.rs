//! Says quickly where nothing can start.
//!
//! Every rule and every form of a known value begins with three bytes that are known beforehand. A
//! bitmap of their hashes, letters folded, fits into the first-level cache and rules out almost every
//! position of ordinary text. An automaton over some thousand forms would be exact, and tens of
//! megabytes large.

const BITS: u32 = 18;

#[derive(Clone, Debug)]
pub(crate) struct Filter {
    words: Box<[u64]>,
}

/// Three bytes with letters folded to lower case. Other bytes fold too; that costs a closer look,
/// never a match.
pub(crate) type Key = u32;

pub(crate) fn key(three: [u8; 3]) -> Key {
    let [a, b, c] = three;
    fold(u32::from_le_bytes([a, b, c, 0]))
}

#[inline]
fn fold(bytes: u32) -> Key {
    bytes & 0x00FF_FFFF | 0x0020_2020
}

impl Filter {
    pub(crate) fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        let mut filter = Self {
            words: vec![0_u64; 1 << (BITS - 6)].into_boxed_slice(),
        };
        for key in keys {
            filter.add(key);
        }
        filter
    }

    pub(crate) fn add(&mut self, key: Key) {
        let bit = hash(key);
        self.words[bit >> 6] |= 1 << (bit & 63);
    }

    /// The first position at or after `from` where something may start, among those with three bytes
    /// left.
    #[inline]
    pub(crate) fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        // Four bytes are one load; the fourth is not looked at.
        let found = rest.windows(4).position(|four| {
            let four = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
            self.may_start(fold(four))
        });
        if let Some(offset) = found {
            return Some(from + offset);
        }
        let last = rest.last_chunk::<3>()?;
        self.may_start(key(*last)).then(|| text.len() - 3)
    }

    #[inline]
    fn may_start(&self, key: Key) -> bool {
        let bit = hash(key);
        self.words[bit >> 6] >> (bit & 63) & 1 == 1
    }
}

#[inline]
fn hash(key: Key) -> usize {
    (key.wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}
