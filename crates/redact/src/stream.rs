//! Bytes in, redacted bytes out, however they were cut.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::MASK;
use crate::byte_class::ClassRuns;
use crate::learned::LearnedValues;
use crate::long_runs::LongRuns;
use crate::redacted::Redacted;
use crate::secret_matcher::SecretMatcher;
use crate::window::{BEHIND, StreamRest};

/// Redacts a stream chunk by chunk.
///
/// What may be the beginning of a secret is held back until more arrives or [`finish`] is called:
/// never more than a rule may look ahead (16 KiB), or the longest known value. A value that a rule
/// recognised is gone from there on, wherever it stands.
///
/// [`finish`]: StreamRedactor::finish
pub struct StreamRedactor {
    net: Arc<SecretMatcher>,
    /// What has the shape of a secret is left alone.
    known_only: bool,
    /// Some bytes that were dealt with, kept for rules that look back, and those that were not.
    held: Vec<u8>,
    /// The first byte of `held` that was not looked at.
    next: usize,
    /// The first byte of `held` that was neither given out nor masked.
    given: usize,
    /// Places to mask that start at or after `given`.
    marks: Vec<Range<usize>>,
    /// Places found whose bytes may still have to be hidden from rules that look back.
    blots: Vec<Range<usize>>,
    /// How many bytes of the stream came before those held.
    forgotten: usize,
    runs: ClassRuns,
    long_runs: LongRuns,
    /// What was recognised so far.
    learned: LearnedValues,
    /// Where the last of the places found ends, and how many were looked at within it.
    covered: usize,
    nested: usize,
    /// Do not look again before this much is held.
    enough: usize,
}

impl StreamRedactor {
    pub(crate) fn new(net: Arc<SecretMatcher>) -> Self {
        Self {
            net,
            known_only: false,
            held: Vec::new(),
            next: 0,
            given: 0,
            marks: Vec::new(),
            blots: Vec::new(),
            forgotten: 0,
            runs: ClassRuns::default(),
            long_runs: LongRuns::default(),
            learned: LearnedValues::default(),
            covered: 0,
            nested: 0,
            enough: 0,
        }
    }

    /// One that takes out known values and nothing else.
    pub(crate) fn of_known_values(net: Arc<SecretMatcher>) -> Self {
        Self {
            known_only: true,
            ..Self::new(net)
        }
    }

    /// Begins again with what was recognised, for another pass over the same text.
    pub(crate) fn again(self) -> Option<Self> {
        (!self.learned.is_empty()).then(|| Self {
            known_only: self.known_only,
            learned: self.learned,
            ..Self::new(self.net)
        })
    }

    pub fn push(&mut self, chunk: &[u8]) -> Redacted<Vec<u8>> {
        self.held.extend_from_slice(chunk);
        let mut out = Vec::new();
        if self.held.len() >= self.enough {
            self.scan(false);
            self.give(&mut out);
            self.forget();
        }
        Redacted::new(out)
    }

    /// The rest, once nothing more will come.
    pub fn finish(mut self) -> Redacted<Vec<u8>> {
        self.give_rest()
    }

    /// What was held back.
    pub(crate) fn give_rest(&mut self) -> Redacted<Vec<u8>> {
        let mut out = Vec::new();
        self.scan(true);
        self.give(&mut out);
        Redacted::new(out)
    }

    fn scan(&mut self, last: bool) {
        self.enough = 0;
        while let Some(mut candidate) = self.next_candidate(last) {
            let at = candidate.at;
            self.next = at;
            self.blot();
            candidate.is_covered = self.known_only || self.is_covered(at);
            let rest = StreamRest {
                bytes: &self.held[at..],
                last,
                place: self.forgotten + at,
                runs: &self.runs,
            };
            let behind = &self.held[..at];
            let Ok(found) = self.net.look(behind, rest, candidate, &self.learned) else {
                // Looking again at every byte that arrives would make a long candidate quadratic.
                let waiting = self.held.len() - at;
                self.enough = self.held.len() + waiting / 8;
                return;
            };
            // Counted once it was looked at: waiting for more bytes must not change the result.
            self.nested = if at < self.covered {
                self.nested + 1
            } else {
                0
            };
            let place = |mark: Range<usize>| mark.start + at..mark.end + at;
            for shape in &found.places[found.known..] {
                let value = &self.held[place(shape.clone())];
                self.learned.learn(value, self.net.filter());
            }
            for mark in found.places.into_iter().map(place) {
                self.covered = self.covered.max(mark.end);
                join(&mut self.blots, mark.clone());
                join(&mut self.marks, mark);
            }
            self.next = at + 1;
        }
        // Nothing that is looked for begins with fewer than three bytes; two that are left may be
        // its first ones.
        let unfinished = if last { 0 } else { 2 };
        self.next = self.next.max(self.held.len().saturating_sub(unfinished));
    }

    fn next_candidate(&mut self, last: bool) -> Option<SecretCandidate> {
        let filter = self.learned.filter().unwrap_or(self.net.filter());
        let shapes = self.net.looks_for_shapes() && !self.known_only;
        let run = shapes.then(|| self.long_runs.next(&self.held, self.next, last));
        let run = run.flatten();
        // What lies behind the run is looked at after it: searching it now would mean doing so twice.
        let end = run.map_or(self.held.len(), |run| self.held.len().min(run + 4));
        let start = filter.next(&self.held[..end], self.next);
        let at = start.into_iter().chain(run).min()?;
        Some(SecretCandidate {
            at,
            may_start: start == Some(at),
            starts_run: run == Some(at),
            is_covered: false,
        })
    }

    /// Whether a place lies within one that was found, behind many others. What a rule would find there
    /// is hidden already, and a text made of nothing but beginnings would cost thousands of looks.
    fn is_covered(&self, at: usize) -> bool {
        // What begins near the end may reach beyond it.
        self.nested >= MOST_NESTED && at + NEAR_END < self.covered
    }

    /// Overwrites what was masked and passed. A rule that looks back then sees what a reader of the
    /// result will see, a bracket, and redacting the result once more changes nothing.
    fn blot(&mut self) {
        let (held, next) = (&mut self.held, self.next);
        self.blots.retain_mut(|blot| {
            let passed = blot.start.min(next)..blot.end.min(next);
            blot.start = passed.end.max(blot.start);
            held[passed].fill(b']');
            blot.end > next
        });
    }

    /// Gives out what lies before `next`: no mark that is still to be found starts there.
    fn give(&mut self, out: &mut Vec<u8>) {
        // A rule may mark what stands well behind its place, so they were not found in their order.
        self.marks.sort_unstable_by_key(|mark| mark.start);
        let ready = self.marks.partition_point(|mark| mark.start < self.next);
        for mark in self.marks.drain(..ready) {
            // A mark that starts within the one before only prolongs it.
            if mark.start >= self.given {
                out.extend_from_slice(&self.held[self.given..mark.start]);
                out.extend_from_slice(MASK.as_bytes());
            }
            self.given = self.given.max(mark.end);
        }
        if self.given < self.next {
            out.extend_from_slice(&self.held[self.given..self.next]);
            self.given = self.next;
        }
    }

    fn forget(&mut self) {
        let gone = self.next.saturating_sub(BEHIND);
        self.held.drain(..gone);
        self.forgotten += gone;
        self.long_runs.forget(gone);
        self.covered = self.covered.saturating_sub(gone);
        self.next -= gone;
        self.given -= gone;
        self.enough = self.enough.saturating_sub(gone);
        for mark in &mut self.marks {
            *mark = mark.start - gone..mark.end - gone;
        }
        for blot in &mut self.blots {
            *blot = blot.start.saturating_sub(gone)..blot.end.saturating_sub(gone);
        }
    }
}

/// A place that deserves a closer look, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SecretCandidate {
    at: usize,
    /// Something that is looked for may begin here.
    pub(crate) may_start: bool,
    /// A long run of the characters of keys begins here.
    pub(crate) starts_run: bool,
    /// Only known values are looked for: whatever else begins here is hidden, or is to stay.
    pub(crate) is_covered: bool,
}

/// How many places within one that was found are looked at by every rule.
const MOST_NESTED: usize = 64;

/// How far from its end all of them are.
const NEAR_END: usize = 256;

/// Adds a place; one that starts within the last only prolongs it.
fn join(places: &mut Vec<Range<usize>>, place: Range<usize>) {
    match places.last_mut() {
        Some(last) if last.contains(&place.start) => last.end = last.end.max(place.end),
        _ => places.push(place),
    }
}

impl fmt::Debug for StreamRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is held back may be a secret.
        f.debug_struct("StreamRedactor")
            .field("held", &self.held.len())
            .finish_non_exhaustive()
    }
}
