//! Output that is kept for somebody who comes later: its head and its tail.

use std::collections::VecDeque;

use crate::protocol::frame::Kind;

const HEAD: usize = 64 << 10;
const TAIL: usize = 192 << 10;
/// Pieces smaller than this grow before a new one is begun.
const PIECE: usize = 4 << 10;

/// `total` counts every byte; those between head and tail are gone.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    head: Vec<Piece>,
    head_length: usize,
    tail: VecDeque<Piece>,
    tail_length: usize,
    total: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
}

/// What somebody who has the first `from` bytes is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Replay {
    Piece(Piece),
    Skipped(u64),
}

impl Kept {
    pub(crate) fn push(&mut self, kind: Kind, mut bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let for_head = bytes.len().min(HEAD - self.head_length);
        if for_head > 0 {
            append(&mut self.head, kind, &bytes[..for_head]);
            self.head_length += for_head;
            bytes = &bytes[for_head..];
        }
        for chunk in bytes.chunks(PIECE) {
            append(&mut self.tail, kind, chunk);
            self.tail_length += chunk.len();
        }
        while self.tail_length > TAIL {
            let Some(oldest) = self.tail.pop_front() else {
                break;
            };
            self.tail_length -= oldest.bytes.len();
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn replay(&self, from: u64) -> Vec<Replay> {
        let mut replay = Vec::new();
        let mut at = 0;
        for piece in &self.head {
            cut_and_push(&mut replay, piece, &mut at, from);
        }
        let tail_begins = self.total - self.tail_length as u64;
        let gap_begins = at.max(from.min(tail_begins));
        if tail_begins > gap_begins {
            replay.push(Replay::Skipped(tail_begins - gap_begins));
        }
        at = tail_begins;
        for piece in &self.tail {
            cut_and_push(&mut replay, piece, &mut at, from);
        }
        replay
    }
}

fn cut_and_push(replay: &mut Vec<Replay>, piece: &Piece, at: &mut u64, from: u64) {
    let known = usize::try_from(from.saturating_sub(*at)).unwrap_or(usize::MAX);
    *at += piece.bytes.len() as u64;
    if let Some(bytes) = piece.bytes.get(known..).filter(|bytes| !bytes.is_empty()) {
        replay.push(Replay::Piece(Piece {
            kind: piece.kind,
            bytes: bytes.to_vec(),
        }));
    }
}

/// Grows the last piece or begins a new one.
fn append<L: Pieces>(pieces: &mut L, kind: Kind, bytes: &[u8]) {
    match pieces.last() {
        Some(last) if last.kind == kind && last.bytes.len() + bytes.len() <= PIECE => {
            last.bytes.extend_from_slice(bytes);
        }
        _ => pieces.add(Piece {
            kind,
            bytes: bytes.to_vec(),
        }),
    }
}

trait Pieces {
    fn last(&mut self) -> Option<&mut Piece>;
    fn add(&mut self, piece: Piece);
}

impl Pieces for Vec<Piece> {
    fn last(&mut self) -> Option<&mut Piece> {
        self.last_mut()
    }

    fn add(&mut self, piece: Piece) {
        self.push(piece);
    }
}

impl Pieces for VecDeque<Piece> {
    fn last(&mut self) -> Option<&mut Piece> {
        self.back_mut()
    }

    fn add(&mut self, piece: Piece) {
        self.push_back(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(replay: &[Replay]) -> (Vec<u8>, u64) {
        let mut bytes = Vec::new();
        let mut skipped = 0;
        for item in replay {
            match item {
                Replay::Piece(piece) => bytes.extend_from_slice(&piece.bytes),
                Replay::Skipped(count) => skipped += count,
            }
        }
        (bytes, skipped)
    }

    #[test]
    fn short_output_is_kept_whole_from_any_point() {
        let mut kept = Kept::default();
        kept.push(Kind::Out, b"hello ");
        kept.push(Kind::Err, b"world");
        for from in 0..=11 {
            assert_eq!(
                flat(&kept.replay(from as u64)),
                (b"hello world"[from..].to_vec(), 0)
            );
        }
    }

    #[test]
    fn long_output_loses_its_middle_and_says_how_much() {
        let mut kept = Kept::default();
        let all: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
        for chunk in all.chunks(777) {
            kept.push(Kind::Out, chunk);
        }
        for from in [0, 10, HEAD, 1_000_000, 2_999_990] {
            let (bytes, skipped) = flat(&kept.replay(from as u64));
            assert_eq!(bytes.len() as u64 + skipped, 3_000_000 - from as u64);
            assert!(bytes.len() <= HEAD + TAIL);
            assert!(all.ends_with(&bytes[bytes.len() - 5..]));
            if from < HEAD {
                assert_eq!(bytes[0], all[from]);
            }
        }
    }
}
