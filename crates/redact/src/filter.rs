//! Says quickly where nothing can start.
//!
//! Every rule and every form of a known value begins with bytes that are known beforehand: three at the
//! least, four in most cases. A bitmap of the hashes of three, letters folded, fits into the first-level
//! cache and rules out almost every position of ordinary text; where it does not, a smaller one of four
//! does. An automaton over some thousand forms would be exact, and tens of megabytes large.

const BITS: u32 = 18;

/// For what passed the first one.
const BITS_BEHIND: u32 = 16;

#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// What anything begins with.
    three: Bitmap,
    /// What something begins with of which no more is known.
    only_three: Bitmap,
    /// What anything else begins with.
    four: Bitmap,
}

#[derive(Clone, Debug)]
struct Bitmap {
    words: Box<[u64]>,
    shift: u32,
}

/// Three bytes with letters folded to lower case. Other bytes fold too; that costs a closer look,
/// never a match.
pub(crate) type Key = u32;

/// How something begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Three(Key),
    Four([u8; 4]),
}

pub(crate) fn key(three: [u8; 3]) -> Key {
    let [a, b, c] = three;
    fold(u32::from_le_bytes([a, b, c, 0]))
}

#[inline]
fn fold(bytes: u32) -> Key {
    bytes & 0x00FF_FFFF | 0x0020_2020
}

#[inline]
fn fold_four(bytes: u32) -> u32 {
    bytes | 0x2020_2020
}

impl Start {
    /// `None` for less than three bytes: there is nothing to look for.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [a, b, c, d, ..] => Some(Self::Four([a, b, c, d])),
            [a, b, c] => Some(Self::Three(key([a, b, c]))),
            _ => None,
        }
    }

    pub(crate) fn key(self) -> Key {
        match self {
            Self::Three(key) => key,
            Self::Four([a, b, c, _]) => key([a, b, c]),
        }
    }
}

impl Filter {
    pub(crate) fn new(starts: impl IntoIterator<Item = Start>) -> Self {
        let mut filter = Self {
            three: Bitmap::new(BITS),
            only_three: Bitmap::new(BITS_BEHIND),
            four: Bitmap::new(BITS_BEHIND),
        };
        for start in starts {
            filter.add(start);
        }
        filter
    }

    pub(crate) fn add(&mut self, start: Start) {
        self.three.add(start.key());
        match start {
            Start::Three(key) => self.only_three.add(key),
            Start::Four(four) => self.four.add(fold_four(u32::from_le_bytes(four))),
        }
    }

    /// The first position at or after `from` where something may start, among those with three bytes
    /// left.
    #[inline]
    pub(crate) fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let found = rest.windows(4).position(|four| {
            let four = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
            let three = fold(four);
            self.three.has(three) && (self.only_three.has(three) || self.four.has(fold_four(four)))
        });
        if let Some(offset) = found {
            return Some(from + offset);
        }
        let last = rest.last_chunk::<3>()?;
        self.three.has(key(*last)).then(|| text.len() - 3)
    }
}

impl Bitmap {
    fn new(bits: u32) -> Self {
        Self {
            words: vec![0; 1 << (bits - 6)].into_boxed_slice(),
            shift: 32 - bits,
        }
    }

    fn add(&mut self, key: u32) {
        let bit = self.bit(key);
        self.words[bit >> 6] |= 1 << (bit & 63);
    }

    #[inline]
    fn has(&self, key: u32) -> bool {
        let bit = self.bit(key);
        self.words[bit >> 6] >> (bit & 63) & 1 == 1
    }

    #[inline]
    fn bit(&self, key: u32) -> usize {
        (key.wrapping_mul(0x9E37_79B1) >> self.shift) as usize
    }
}
