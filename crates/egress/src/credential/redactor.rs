//! Takes a secret out of a stream, wherever the stream is cut and however it is spelt there.
//!
//! The bytes are decoded in several ways at once ([`super::text_decoder`]), and each is searched for every
//! spelling ([`super::spellings`]). What is found is overwritten with stars of the same length, so that
//! lengths and frames stay true. Only bytes that may well be the beginning of a secret are held back:
//! events still arrive the moment they are sent.
//!
//! Stars, and bytes that come late, answer whoever had a guess written there. So a part of a secret that
//! was starred or held back, and did not turn out to be the whole, is told to whoever counts such parts
//! ([`super::guesses`]). The whole is no answer: it must have been known to be guessed.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::guesses::{GuessCounter, GuessedPart};
use super::spellings::{GapTolerance, LEAST_PART, SecretSpellings, SpellingAutomaton};
use super::text_decoder::{DecodedByte, TextDecoder, TextEncoding};

/// A secret that is searched for, and who counts its parts.
#[derive(Clone)]
pub(crate) struct SearchedSecret {
    pub(crate) spellings: Arc<SecretSpellings>,
    pub(crate) counter: Option<Arc<GuessCounter>>,
}

impl From<Arc<SecretSpellings>> for SearchedSecret {
    fn from(spellings: Arc<SecretSpellings>) -> Self {
        Self {
            spellings,
            counter: None,
        }
    }
}

/// Takes the secrets out of one direction of one connection.
#[derive(Clone)]
pub(crate) struct CredentialRedactor {
    secrets: Vec<SecretTraces>,
    searches: Vec<SpellingSearch>,
    /// What has come in and was not passed on.
    held: Vec<u8>,
    /// How many bytes came before those held.
    passed: u64,
    /// Bytes among those held that frame others and are never overwritten, in their order.
    frames: Vec<Range<u64>>,
}

/// One secret, and what was lately seen of it.
#[derive(Clone)]
struct SecretTraces {
    secret: SearchedSecret,
    /// Where it stood whole.
    whole: Vec<Range<u64>>,
    /// Parts that may still turn out to belong to a whole, which another search sees to its end.
    parts: Vec<(GuessedPart, Range<u64>)>,
}

/// The search for one set of spellings in one encoding of the text.
#[derive(Clone)]
struct SpellingSearch {
    decoder: TextDecoder,
    spellings: Arc<SecretSpellings>,
    /// Which of the secrets.
    secret: usize,
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
    /// How many symbols there were.
    symbols: u64,
    /// How many bytes in a row were passed over.
    gap: u32,
    /// Where the last symbol ended.
    end: u64,
    /// Up to where everything it saw is overwritten.
    overwritten: u64,
    found: Vec<Range<u64>>,
    /// The stretch of text that was starred last, while it may go on.
    stretch: Option<ActedStretch>,
    /// What was held back last, while it may turn out to be more of the secret.
    held: Option<HeldMatch>,
    /// Those that have ended.
    ended: Vec<ActedStretch>,
}

/// A stretch of text on which the redactor acted in a way that can be seen.
#[derive(Clone, Copy)]
struct ActedStretch {
    /// The states of the search when it acted first and last: they say which part of the secret it was.
    first: u32,
    last: u32,
    /// Whether it told anything that is secret before its end.
    tells: bool,
    /// The number of the last symbol.
    symbol: u64,
    from: u64,
    to: u64,
}

/// The beginning of a spelling that was held back. Where a read ended within it is chance: which part of the
/// secret it was is said by how far the text went on to be the secret.
#[derive(Clone, Copy)]
struct HeldMatch {
    /// How many symbols came before it.
    before: u64,
    /// The furthest state.
    state: u32,
    /// What was held back of it.
    from: u64,
    to: u64,
}

/// No honest text holds more back: 256 letters with the longest gaps, each byte of them escaped.
const MOST_HELD_BYTES: u64 = 64 << 10;

/// An escape is at most so long, so that of two searches one may see the end of a secret so much later for
/// each of its letters.
const LONGEST_LETTER: u64 = 12;
const MOST_WAITING_PARTS: usize = 256;

impl CredentialRedactor {
    pub(crate) fn new<S: Into<SearchedSecret>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let secrets: Vec<SecretTraces> = secrets
            .into_iter()
            .map(|secret| SecretTraces {
                secret: secret.into(),
                whole: Vec::new(),
                parts: Vec::new(),
            })
            .collect();
        let mut searches = Vec::new();
        for (secret, traces) in secrets.iter().enumerate() {
            let spellings = &traces.secret.spellings;
            for automaton in 0..spellings.automata.len() {
                // Which of these the other side will undo is its affair, so the secret is looked
                // for in all of them at once.
                for encoding in [
                    TextEncoding::Plain,
                    TextEncoding::Unescaped,
                    TextEncoding::QuotedPrintable,
                ] {
                    searches.push(SpellingSearch {
                        decoder: TextDecoder::new(encoding),
                        spellings: Arc::clone(spellings),
                        secret,
                        automaton,
                        state: SearchState::default(),
                    });
                }
            }
        }
        Self {
            secrets,
            searches,
            held: Vec::new(),
            passed: 0,
            frames: Vec::new(),
        }
    }

    /// The same search, from the beginning.
    pub(super) fn fresh(&self) -> Self {
        Self::new(self.secrets.iter().map(|traces| traces.secret.clone()))
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
        let end = self.passed + self.held.len() as u64;
        let mut until = end;
        for search in &mut self.searches {
            let held_from = search.held_from();
            let state = &mut search.state;
            let Some(start) = state.open_since(held_from) else {
                continue;
            };
            let start = start.max(self.passed);
            state.hold(start);
            if end - start > MOST_HELD_BYTES {
                // Nothing that undoes escapes has come to an end here, and it may never.
                state.found.push(start..end);
                state.forget();
            } else {
                until = until.min(start);
            }
        }
        // Before anything is handed out; the parts are counted even where nothing was, as late
        // bytes answer too.
        self.overwrite();
        self.count_parts(Some(end));
        self.hand_out(until)
    }

    /// The rest, when nothing more comes. What was held back is the beginning of a spelling, and is shown
    /// where it is shorter than the parts that are taken out anywhere else.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let end = self.passed + self.held.len() as u64;
        for search in &mut self.searches {
            if let Some(start) = search.state.open_since(LEAST_PART) {
                search.state.found.push(start..end);
                let automaton = &search.spellings.automata[search.automaton];
                search.state.act(start, end, automaton);
            }
            search.state.forget();
        }
        self.overwrite();
        self.count_parts(None);
        self.hand_out(end)
    }

    /// The head of an answer. Its lines and the ends of its names stay, whatever is found in them.
    pub(crate) fn mask(&self, head: &mut [u8]) {
        for line in head.split_mut(|byte| *byte == b'\n') {
            let colon = line.iter().position(|byte| *byte == b':');
            // Line by line: a spelling that a head breaks over two of its lines is not one that a
            // client reads as one.
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

    fn overwrite(&mut self) {
        for search in &mut self.searches {
            for found in search.state.found.drain(..) {
                for at in found.start.max(self.passed)..found.end {
                    let next = self.frames.partition_point(|frame| frame.end <= at);
                    let framing = self.frames.get(next).is_some_and(|frame| frame.start <= at);
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

    /// Tells of the parts that were acted on and are of no whole. With an `end`, those that stand right
    /// before it are waited for: another search may be about to see them as the whole.
    fn count_parts(&mut self, end: Option<u64>) {
        for search in &mut self.searches {
            let automaton = &search.spellings.automata[search.automaton];
            let traces = &mut self.secrets[search.secret];
            for stretch in search.state.ended.drain(..) {
                let range = stretch.from..stretch.to;
                let tells = stretch.tells || !automaton.is_public(stretch.last);
                if automaton.is_whole(stretch.last) {
                    traces.whole.push(range);
                } else if tells {
                    let part = GuessedPart {
                        automaton: search.automaton,
                        first: stretch.first,
                        last: stretch.last,
                    };
                    traces.parts.push((part, range));
                }
            }
        }
        for SecretTraces {
            secret,
            whole,
            parts,
        } in &mut self.secrets
        {
            let wait = LONGEST_LETTER * secret.spellings.longest as u64;
            // More pieces than one echo is divided into are no echo.
            let too_many = parts.len() > MOST_WAITING_PARTS;
            let is_over =
                |range: &Range<u64>| too_many || end.is_none_or(|end| range.end + wait < end);
            for (part, range) in parts.extract_if(.., |(_, range)| is_over(range)) {
                let covers =
                    |whole: &Range<u64>| whole.start <= range.start && range.end <= whole.end;
                if let Some(counter) = &secret.counter
                    && !whole.iter().any(covers)
                {
                    counter.count(part);
                }
            }
            whole.retain(|range| end.is_some_and(|end| range.end + wait >= end));
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

/// A connection that ends in the middle of a guess has answered it.
impl Drop for CredentialRedactor {
    fn drop(&mut self) {
        for search in &mut self.searches {
            search.state.forget();
        }
        self.count_parts(None);
    }
}

impl SpellingSearch {
    /// Fewer characters of a secret than this are not held back: almost any text ends in the first
    /// letter of some spelling, and an event would wait for the next one. Eight in a row are never there
    /// by chance, so that whoever has them held back can be made to pay for it.
    fn held_from(&self) -> usize {
        match self.spellings.automata[self.automaton].kind {
            GapTolerance::Loose => 8,
            GapTolerance::Strict => 4,
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
        self.symbols += 1;
        self.starts.push_back(decoded.from);
        self.seen = automaton.depth(self.state);
        while self.starts.len() > self.seen {
            self.starts.pop_front();
        }
        if let Some(held) = &mut self.held {
            match self.symbols - self.seen as u64 == held.before {
                true => held.state = self.state,
                false => self.end_held(),
            }
        }
        // What is found from here on begins behind the stretch, so that this has ended.
        if let Some(stretch) = &self.stretch
            && self.symbols - self.seen as u64 > stretch.symbol
        {
            self.end_stretch();
        }
        if let Some(length) = automaton.found(self.state)
            && let Some(start) = self.starts.get(self.seen - length).copied()
        {
            self.found.push(start..decoded.to);
            self.overwritten = decoded.to;
            self.act(start, decoded.to, automaton);
            if length == self.seen {
                // It is all starred now, and the stars say more.
                self.held = None;
            }
        }
    }

    /// Notes that what was seen last is starred.
    fn act(&mut self, from: u64, to: u64, automaton: &SpellingAutomaton) {
        let stretch = self.stretch.get_or_insert(ActedStretch {
            first: self.state,
            last: self.state,
            tells: false,
            symbol: self.symbols,
            from,
            to,
        });
        stretch.last = self.state;
        stretch.tells |= !automaton.is_public(self.state);
        stretch.symbol = self.symbols;
        stretch.from = stretch.from.min(from);
        stretch.to = to;
    }

    /// Notes that what was seen last is held back.
    fn hold(&mut self, from: u64) {
        let held = self.held.get_or_insert(HeldMatch {
            before: self.symbols - self.seen as u64,
            state: self.state,
            from,
            to: self.end,
        });
        held.from = held.from.min(from);
        held.to = self.end;
    }

    fn end_stretch(&mut self) {
        self.ended.extend(self.stretch.take());
    }

    fn end_held(&mut self) {
        let ended = self.held.take().map(|held| ActedStretch {
            first: held.state,
            last: held.state,
            tells: false,
            symbol: self.symbols,
            from: held.from,
            to: held.to,
        });
        self.ended.extend(ended);
    }

    fn forget(&mut self) {
        self.state = 0;
        self.seen = 0;
        self.starts.clear();
        self.gap = 0;
        self.end_held();
        self.end_stretch();
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
