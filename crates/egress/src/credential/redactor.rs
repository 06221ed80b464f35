//! Takes a secret out of a stream, wherever the stream is cut and however it is spelt there.
//!
//! The bytes are read in several manners at once ([`super::reading`]), and each is searched for every
//! spelling ([`super::spellings`]). What is found is overwritten with stars of the same length, so that
//! lengths and frames stay true. Only bytes that may well be the beginning of a secret are held back:
//! events still arrive the moment they are sent.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::LEAST_BYTES;
use super::reading::{Letter, Manner, Reading};
use super::spellings::{Automaton, Kind, Spellings};

/// One per direction and connection.
#[derive(Clone)]
pub(crate) struct Redactor {
    lanes: Vec<Lane>,
    /// What has come in and was not passed on.
    held: Vec<u8>,
    /// How many bytes came before those held.
    passed: u64,
    /// Bytes among those held that frame others and are never overwritten.
    frames: Vec<Range<u64>>,
}

/// One manner of reading and one automaton.
#[derive(Clone)]
struct Lane {
    reading: Reading,
    spellings: Arc<Spellings>,
    /// Which automaton of the spellings.
    automaton: usize,
    search: Search,
}

#[derive(Clone, Default)]
struct Search {
    state: u32,
    /// How much of a spelling that state has seen.
    seen: usize,
    /// Where the last symbols stood, as many as the automaton has seen.
    starts: VecDeque<u64>,
    /// How many bytes in a row were passed over.
    gap: u32,
    /// Where the last symbol ended.
    end: u64,
    /// Up to where everything it saw is overwritten.
    overwritten: u64,
    found: Vec<Range<u64>>,
}

impl Redactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = Arc<Spellings>>) -> Self {
        let mut lanes = Vec::new();
        for spellings in secrets {
            for automaton in 0..spellings.automata.len() {
                for manner in [Manner::Plain, Manner::Unescaped, Manner::QuotedPrintable] {
                    lanes.push(Lane {
                        reading: Reading::new(manner),
                        spellings: Arc::clone(&spellings),
                        automaton,
                        search: Search::default(),
                    });
                }
            }
        }
        Self {
            lanes,
            held: Vec::new(),
            passed: 0,
            frames: Vec::new(),
        }
    }

    /// The same search, from the beginning.
    pub(super) fn fresh(&self) -> Self {
        let mut fresh = self.clone();
        fresh.start_over();
        fresh
    }

    /// What may be passed on after these bytes have come in.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.look_at(bytes);
        self.pass_on()
    }

    /// Takes bytes in that are searched; they are handed out by [`Self::pass_on`].
    pub(super) fn look_at(&mut self, bytes: &[u8]) {
        let from = self.passed + self.held.len() as u64;
        self.held.extend_from_slice(bytes);
        for lane in &mut self.lanes {
            let automaton = &lane.spellings.automata[lane.automaton];
            let (reading, search) = (&mut lane.reading, &mut lane.search);
            for (byte, at) in bytes.iter().zip(from..) {
                reading.push(*byte, at, &mut |letter| search.see(letter, automaton));
            }
        }
    }

    /// Takes bytes in that belong to no text: it goes on behind them.
    pub(super) fn look_past(&mut self, bytes: &[u8]) {
        let from = self.passed + self.held.len() as u64;
        self.held.extend_from_slice(bytes);
        self.frames.push(from..from + bytes.len() as u64);
    }

    pub(super) fn pass_on(&mut self) -> Vec<u8> {
        self.overwrite();
        let end = self.passed + self.held.len() as u64;
        let open = self
            .lanes
            .iter()
            .filter_map(|lane| lane.search.open_since(lane.held_from()));
        let until = open.min().unwrap_or(end).max(self.passed);
        self.hand_out(until)
    }

    /// The rest, when nothing more comes: what was held back is the beginning of a secret, and is shown
    /// only where it is too short to tell anything of it.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let end = self.passed + self.held.len() as u64;
        for lane in &mut self.lanes {
            if let Some(start) = lane.search.open_since(LEAST_BYTES) {
                lane.search.found.push(start..end);
            }
        }
        self.overwrite();
        self.hand_out(end)
    }

    /// The head of an answer. Its lines and the ends of its names stay, whatever is found in them.
    pub(crate) fn mask(&self, head: &mut [u8]) {
        for line in head.split_mut(|byte| *byte == b'\n') {
            let colon = line.iter().position(|byte| *byte == b':');
            let mut fresh = self.fresh();
            fresh.look_at(line);
            fresh.overwrite();
            for (index, byte) in fresh.held.iter().enumerate() {
                if Some(index) != colon {
                    line[index] = *byte;
                }
            }
        }
    }

    fn start_over(&mut self) {
        self.held.clear();
        self.frames.clear();
        self.passed = 0;
        for lane in &mut self.lanes {
            lane.reading = Reading::new(lane.reading.manner());
            lane.search = Search::default();
        }
    }

    fn overwrite(&mut self) {
        for lane in &mut self.lanes {
            for found in lane.search.found.drain(..) {
                for at in found.start.max(self.passed)..found.end {
                    let framing = self.frames.iter().any(|frame| frame.contains(&at));
                    let index = usize::try_from(at - self.passed).unwrap_or(usize::MAX);
                    // Line breaks tell nothing, and events end with them.
                    if let Some(byte) = self.held.get_mut(index)
                        && !framing
                        && !matches!(byte, b'\r' | b'\n')
                    {
                        *byte = b'*';
                    }
                }
            }
        }
    }

    fn hand_out(&mut self, until: u64) -> Vec<u8> {
        let count = usize::try_from(until - self.passed).unwrap_or(usize::MAX);
        let rest = self.held.split_off(count.min(self.held.len()));
        self.passed = until;
        self.frames.retain(|frame| frame.end > until);
        std::mem::replace(&mut self.held, rest)
    }
}

impl Lane {
    /// Fewer characters of a secret than this are not held back: almost any text ends in the first
    /// letter of some spelling, and an event would wait for the next one.
    fn held_from(&self) -> usize {
        match self.spellings.automata[self.automaton].kind {
            Kind::Loose => 4,
            Kind::Strict => 2,
        }
    }
}

impl Search {
    #[inline]
    fn see(&mut self, letter: Letter, automaton: &Automaton) {
        let Some(symbol) = automaton.kind.symbol(letter.byte) else {
            self.gap += 1;
            if self.gap > automaton.kind.longest_gap() {
                self.forget();
            }
            return;
        };
        self.gap = 0;
        self.state = automaton.step(self.state, symbol);
        self.end = letter.to;
        self.starts.push_back(letter.from);
        self.seen = automaton.depth(self.state);
        while self.starts.len() > self.seen {
            self.starts.pop_front();
        }
        if let Some(length) = automaton.found(self.state)
            && let Some(start) = self.starts.get(self.seen - length)
        {
            self.found.push(*start..letter.to);
            self.overwritten = letter.to;
        }
    }

    fn forget(&mut self) {
        self.state = 0;
        self.seen = 0;
        self.starts.clear();
        self.gap = 0;
    }

    /// Where a spelling began of which at least so many characters have been seen, as far as it is not
    /// overwritten.
    fn open_since(&self, least: usize) -> Option<u64> {
        let open = self.seen >= least && self.end > self.overwritten;
        let start = self.starts.front().filter(|_| open)?;
        Some(self.overwritten.max(*start))
    }
}

#[cfg(test)]
#[path = "redactor_tests.rs"]
mod tests;
