//! Output that is kept in bounded memory: how it began and how it ended.

use std::collections::VecDeque;
use std::fmt;

/// Hears what a command writes, while it writes it.
///
/// What an implementer promises: hearing takes no longer than copying the bytes, because the command's
/// reader waits for it. The bytes are hostile and nobody has looked for secrets in them.
pub trait OutputListener: fmt::Debug + Send + Sync {
    fn heard(&self, stream: OutputStream, bytes: &[u8]);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    Out,
    Err,
}

/// Keeps the first and the last bytes of a stream and counts those between.
#[derive(Clone, Debug)]
pub struct HeadTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_bound: usize,
    tail_bound: usize,
    total: u64,
}

impl HeadTail {
    /// Keeps `bound` bytes, two fifths of them at the beginning: an error is usually at the end.
    pub fn new(bound: usize) -> Self {
        let head_bound = bound / 5 * 2;
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_bound,
            tail_bound: bound - head_bound,
            total: 0,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_bound - self.head.len()));
        self.head.extend_from_slice(head);
        // Cut before it is joined: a piece that is longer than the tail must not be copied as a
        // whole.
        let rest = &rest[rest.len().saturating_sub(self.tail_bound)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_bound);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Counts bytes that were lost before they came here.
    pub fn skip(&mut self, lost: u64) {
        self.total = self.total.saturating_add(lost);
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn omitted(&self) -> u64 {
        self.total
            .saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    pub fn head(&self) -> &[u8] {
        &self.head
    }

    pub fn tail(&self) -> Vec<u8> {
        self.tail.iter().copied().collect()
    }

    /// Head and tail as one; a gap between them is the caller's to mark.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.head.extend(self.tail);
        self.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_whole_however_it_came() {
        for size in 1..12 {
            let mut kept = HeadTail::new(20);
            for piece in b"hello, sandbox".chunks(size) {
                kept.push(piece);
            }
            assert_eq!(kept.omitted(), 0);
            assert_eq!(kept.into_bytes(), b"hello, sandbox");
        }
    }

    #[test]
    fn long_output_keeps_its_ends_and_counts_the_rest() {
        let all: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        for size in [1, 7, 64, 10_000] {
            let mut kept = HeadTail::new(100);
            all.chunks(size).for_each(|piece| kept.push(piece));
            assert_eq!(kept.head(), &all[..40]);
            assert_eq!(kept.tail(), &all[10_000 - 60..]);
            assert_eq!((kept.total(), kept.omitted()), (10_000, 9_900));
        }
    }
}
