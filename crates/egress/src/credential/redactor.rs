//! Takes a secret out of a stream, wherever the stream is cut and however it is spelt there.
//!
//! The bytes are decoded in several ways at once ([`super::text_decoder`]), and each is searched for every
//! spelling ([`super::spellings`]). What is found is overwritten with stars of the same length, so that
//! lengths and frames stay true. Only bytes that may well be the beginning of a secret are held back:
//! events still arrive the moment they are sent.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::LEAST_BYTES;
use super::spellings::{GapTolerance, SecretSpellings, SpellingAutomaton};
use super::text_decoder::{DecodedByte, TextDecoder, TextEncoding};

/// Takes the secrets out of one direction of one connection.
#[derive(Clone)]
pub(crate) struct CredentialRedactor {
    searches: Vec<SpellingSearch>,
    /// What has come in and was not passed on.
    held: Vec<u8>,
    /// How many bytes came before those held.
    passed: u64,
    /// Bytes among those held that frame others and are never overwritten.
    frames: Vec<Range<u64>>,
}

/// The search for one set of spellings in one encoding of the text.
#[derive(Clone)]
struct SpellingSearch {
    decoder: TextDecoder,
    spellings: Arc<SecretSpellings>,
    /// Which automaton of the spellings.
    automaton: usize,
    state: SearchState,
}

/// The progress of one search.
#[derive(Clone, Default)]
struct SearchState {
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

impl CredentialRedactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = Arc<SecretSpellings>>) -> Self {
        let mut searches = Vec::new();
        for spellings in secrets {
            for automaton in 0..spellings.automata.len() {
                for encoding in [
                    TextEncoding::Plain,
                    TextEncoding::Unescaped,
                    TextEncoding::QuotedPrintable,
                ] {
                    searches.push(SpellingSearch {
                        decoder: TextDecoder::new(encoding),
                        spellings: Arc::clone(&spellings),
                        automaton,
                        state: SearchState::default(),
                    });
                }
            }
        }
        Self {
            searches,
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
        for search in &mut self.searches {
            let automaton = &search.spellings.automata[search.automaton];
            let (decoder, state) = (&mut search.decoder, &mut search.state);
            for (byte, at) in bytes.iter().zip(from..) {
                decoder.push(*byte, at, &mut |decoded| state.see(decoded, automaton));
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
            .searches
            .iter()
            .filter_map(|search| search.state.open_since(search.held_from()));
        let until = open.min().unwrap_or(end).max(self.passed);
        self.hand_out(until)
    }

    /// The rest, when nothing more comes: what was held back is the beginning of a secret, and is shown
    /// only where it is too short to tell anything of it.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let end = self.passed + self.held.len() as u64;
        for search in &mut self.searches {
            if let Some(start) = search.state.open_since(LEAST_BYTES) {
                search.state.found.push(start..end);
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
        for search in &mut self.searches {
            search.decoder = TextDecoder::new(search.decoder.encoding());
            search.state = SearchState::default();
        }
    }

    fn overwrite(&mut self) {
        for search in &mut self.searches {
            for found in search.state.found.drain(..) {
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

impl SpellingSearch {
    /// Fewer characters of a secret than this are not held back: almost any text ends in the first
    /// letter of some spelling, and an event would wait for the next one.
    fn held_from(&self) -> usize {
        match self.spellings.automata[self.automaton].kind {
            GapTolerance::Loose => 4,
            GapTolerance::Strict => 2,
        }
    }
}

impl SearchState {
    #[inline]
    fn see(&mut self, decoded: DecodedByte, automaton: &SpellingAutomaton) {
        let Some(symbol) = automaton.kind.symbol(decoded.byte) else {
            self.gap += 1;
            if self.gap > automaton.kind.longest_gap() {
                self.forget();
            }
            return;
        };
        self.gap = 0;
        self.state = automaton.step(self.state, symbol);
        self.end = decoded.to;
        self.starts.push_back(decoded.from);
        self.seen = automaton.depth(self.state);
        while self.starts.len() > self.seen {
            self.starts.pop_front();
        }
        if let Some(length) = automaton.found(self.state)
            && let Some(start) = self.starts.get(self.seen - length)
        {
            self.found.push(*start..decoded.to);
            self.overwritten = decoded.to;
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
