//! Output that is kept for somebody who comes later: its head and its tail.

use std::collections::VecDeque;

use crate::protocol::frame::FrameKind;

/// How much of the beginning is kept, and how much of the end.
const HEAD: usize = 64 << 10;
const TAIL: usize = 192 << 10;
/// Pieces smaller than this grow before a new one is begun.
const PIECE: usize = 4 << 10;

/// The output of a run that is kept for a later reader. `total` counts every byte; those between head and
/// tail are gone.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    head: Vec<BacklogChunk>,
    head_length: usize,
    tail: VecDeque<BacklogChunk>,
    tail_length: usize,
    total: u64,
}

/// Bytes of one kind of output, in the order in which they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BacklogChunk {
    pub(crate) kind: FrameKind,
    pub(crate) bytes: Vec<u8>,
}

/// A part of what a reader who has the first `from` bytes is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReplayChunk {
    Piece(BacklogChunk),
    Skipped(u64),
}

impl Backlog {
    pub(crate) fn push(&mut self, kind: FrameKind, mut bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let for_head = bytes.len().min(HEAD - self.head_length);
        if for_head > 0 {
            append(&mut self.head, kind, &bytes[..for_head]);
            self.head_length += for_head;
            bytes = &bytes[for_head..];
        }
        // In pieces that can be let go of one by one: dropped is always the oldest whole piece.
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

    pub(crate) fn replay(&self, from: u64) -> Vec<ReplayChunk> {
        let mut replay = Vec::new();
        let mut at = 0;
        for piece in &self.head {
            cut_and_push(&mut replay, piece, &mut at, from);
        }
        let tail_begins = self.total - self.tail_length as u64;
        let gap_begins = at.max(from.min(tail_begins));
        if tail_begins > gap_begins {
            replay.push(ReplayChunk::Skipped(tail_begins - gap_begins));
        }
        at = tail_begins;
        for piece in &self.tail {
            cut_and_push(&mut replay, piece, &mut at, from);
        }
        replay
    }
}

fn cut_and_push(replay: &mut Vec<ReplayChunk>, piece: &BacklogChunk, at: &mut u64, from: u64) {
    let known = usize::try_from(from.saturating_sub(*at)).unwrap_or(usize::MAX);
    *at += piece.bytes.len() as u64;
    if let Some(bytes) = piece.bytes.get(known..).filter(|bytes| !bytes.is_empty()) {
        replay.push(ReplayChunk::Piece(BacklogChunk {
            kind: piece.kind,
            bytes: bytes.to_vec(),
        }));
    }
}

/// Grows the last piece or begins a new one.
fn append<L: ChunkList>(pieces: &mut L, kind: FrameKind, bytes: &[u8]) {
    match pieces.last() {
        Some(last) if last.kind == kind && last.bytes.len() + bytes.len() <= PIECE => {
            last.bytes.extend_from_slice(bytes);
        }
        _ => pieces.add(BacklogChunk {
            kind,
            bytes: bytes.to_vec(),
        }),
    }
}

/// A list of chunks that grows at its end.
trait ChunkList {
    fn last(&mut self) -> Option<&mut BacklogChunk>;
    fn add(&mut self, piece: BacklogChunk);
}

impl ChunkList for Vec<BacklogChunk> {
    fn last(&mut self) -> Option<&mut BacklogChunk> {
        self.last_mut()
    }

    fn add(&mut self, piece: BacklogChunk) {
        self.push(piece);
    }
}

impl ChunkList for VecDeque<BacklogChunk> {
    fn last(&mut self) -> Option<&mut BacklogChunk> {
        self.back_mut()
    }

    fn add(&mut self, piece: BacklogChunk) {
        self.push_back(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(replay: &[ReplayChunk]) -> (Vec<u8>, u64) {
        let mut bytes = Vec::new();
        let mut skipped = 0;
        for item in replay {
            match item {
                ReplayChunk::Piece(piece) => bytes.extend_from_slice(&piece.bytes),
                ReplayChunk::Skipped(count) => skipped += count,
            }
        }
        (bytes, skipped)
    }

    #[test]
    fn short_output_is_kept_whole_from_any_point() {
        let mut backlog = Backlog::default();
        backlog.push(FrameKind::Out, b"hello ");
        backlog.push(FrameKind::Err, b"world");
        for from in 0..=11 {
            assert_eq!(
                flat(&backlog.replay(from as u64)),
                (b"hello world"[from..].to_vec(), 0)
            );
        }
    }

    #[test]
    fn long_output_loses_its_middle_and_says_how_much() {
        let mut backlog = Backlog::default();
        let all: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
        for chunk in all.chunks(777) {
            backlog.push(FrameKind::Out, chunk);
        }
        for from in [0, 10, HEAD, 1_000_000, 2_999_990] {
            let (bytes, skipped) = flat(&backlog.replay(from as u64));
            assert_eq!(bytes.len() as u64 + skipped, 3_000_000 - from as u64);
            assert!(bytes.len() <= HEAD + TAIL);
            assert!(all.ends_with(&bytes[bytes.len() - 5..]));
            if from < HEAD {
                assert_eq!(bytes[0], all[from]);
            }
        }
    }
}
