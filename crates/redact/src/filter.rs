//! Says quickly where nothing can start.
//!
//! Every rule and every form of a known value begins with bytes that are known beforehand: three at the
//! least, four in most cases. A table of the hashes of three, letters folded, fits into the first-level
//! cache and rules out most positions of ordinary text; where it does not, a bitmap of four does. An
//! automaton over some thousand forms would be exact, and tens of megabytes large.

/// One byte for each hash of three: a byte is tested by one instruction, a bit by four.
const SLOTS: usize = 1 << 15;

/// One bit for each hash of four.
const WORDS: usize = 1 << 10;

/// Tells at which bytes something may start that is looked for.
#[derive(Clone, Debug)]
pub(crate) struct StartFilter {
    /// What anything begins with: [`NOTHING`], [`FOUR`] or [`THREE`].
    three: Box<[u8; SLOTS]>,
    /// What anything begins with of which four bytes are known.
    four: Box<[u64; WORDS]>,
}

/// Nothing begins with three bytes of that hash.
const NOTHING: u8 = 0;
/// All that do begin with four bytes that are known.
const FOUR: u8 = 1;
/// Some do with any fourth byte.
const THREE: u8 = 2;

/// Three bytes with letters folded to lower case. Other bytes fold too; that costs a closer look,
/// never a match.
pub(crate) type FoldedKey = u32;

/// The first bytes of something that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownStart {
    Three(FoldedKey),
    Four([u8; 4]),
}

pub(crate) fn key(three: [u8; 3]) -> FoldedKey {
    let [a, b, c] = three;
    fold(u32::from_le_bytes([a, b, c, 0])) & 0x00FF_FFFF
}

/// Four bytes with letters folded.
#[inline]
pub(crate) fn fold(bytes: u32) -> u32 {
    bytes | 0x2020_2020
}

impl KnownStart {
    /// `None` for less than three bytes: there is nothing to look for.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [a, b, c, d, ..] => Some(Self::Four([a, b, c, d])),
            [a, b, c] => Some(Self::Three(key([a, b, c]))),
            _ => None,
        }
    }

    pub(crate) fn key(self) -> FoldedKey {
        match self {
            Self::Three(key) => key,
            Self::Four([a, b, c, _]) => key([a, b, c]),
        }
    }

    /// Whether something that begins so may begin with these bytes, of which the fourth may be missing.
    pub(crate) fn may_be(self, three: FoldedKey, four: Option<u32>) -> bool {
        match (self, four) {
            (Self::Four(ours), Some(four)) => fold(u32::from_le_bytes(ours)) == four,
            _ => self.key() == three,
        }
    }
}

impl StartFilter {
    pub(crate) fn new(starts: impl IntoIterator<Item = KnownStart>) -> Self {
        let mut filter = Self {
            three: Box::new([NOTHING; SLOTS]),
            four: Box::new([0; WORDS]),
        };
        for start in starts {
            filter.add(start);
        }
        filter
    }

    pub(crate) fn add(&mut self, start: KnownStart) {
        let slot = &mut self.three[slot(start.key())];
        match start {
            KnownStart::Three(_) => *slot |= THREE,
            KnownStart::Four(four) => {
                *slot |= FOUR;
                let bit = bit(fold(u32::from_le_bytes(four)));
                self.four[bit >> 6] |= 1 << (bit & 63);
            }
        }
    }

    /// The first position at or after `from` where something may start, among those with three bytes
    /// left.
    pub(crate) fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        // Four positions at once: most of the time there is nothing at any of them.
        while let Some(eight) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            let eight = u64::from_le_bytes(*eight);
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the upper bytes come later"
            )]
            let begins = |offset: u32| self.three[slot(fold((eight >> (8 * offset)) as u32))];
            if begins(0) | begins(1) | begins(2) | begins(3) != NOTHING
                && let Some(offset) = (0..4).find(|offset| self.may_start(eight >> (8 * offset)))
            {
                return Some(at + offset);
            }
            at += 4;
        }
        let rest = text.get(at..)?;
        let found = rest.windows(4).position(|four| {
            let [a, b, c, d] = [four[0], four[1], four[2], four[3]];
            self.may_start(u64::from(u32::from_le_bytes([a, b, c, d])))
        });
        if let Some(offset) = found {
            return Some(at + offset);
        }
        let last = rest.last_chunk::<3>()?;
        (self.three[slot(key(*last))] != NOTHING).then(|| text.len() - 3)
    }

    /// Whether something may start with the lower four of these bytes.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the upper bytes come later"
    )]
    fn may_start(&self, bytes: u64) -> bool {
        let four = fold(bytes as u32);
        let begins = self.three[slot(four)];
        begins & THREE != 0 || begins != NOTHING && self.has_four(four)
    }

    #[inline]
    fn has_four(&self, four: u32) -> bool {
        let bit = bit(four);
        self.four[bit >> 6] >> (bit & 63) & 1 == 1
    }
}

/// Only the lower three bytes count: the shift drops the fourth.
#[inline]
fn slot(folded: u32) -> usize {
    ((folded << 8).wrapping_mul(0x9E37_79B1) >> 17) as usize
}

#[inline]
fn bit(folded: u32) -> usize {
    (folded.wrapping_mul(0x9E37_79B1) >> 16) as usize
}
