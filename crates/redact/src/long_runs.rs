//! Where long runs of the characters that keys are made of begin.
//!
//! A key whose vendor nobody told us about has no beginning to look for, but it is long and nothing
//! divides it. Words are short: looking at the last of the characters a run needs, and going back from
//! there, passes over most of ordinary text without reading it.

use crate::byte_class::ByteClass;

/// How long a run is at the least.
pub(crate) const SHORTEST_RUN: usize = 20;

/// Finds the beginnings of runs, in order, in a text that grows and is forgotten from the front.
#[derive(Debug, Default)]
pub(crate) struct LongRuns {
    /// No run that was not found yet begins before this place.
    searched: usize,
    /// The bytes from there on belong to a run that was found before.
    inside: bool,
    found: Option<usize>,
}

impl LongRuns {
    /// The first run that begins at or after `from`. One that the end of the text cuts short counts, as
    /// long as more may come.
    ///
    /// Bytes that were not searched yet are never ones that were overwritten in the meantime, so the
    /// answer does not depend on how the text arrived.
    pub(crate) fn next(&mut self, text: &[u8], from: usize, last: bool) -> Option<usize> {
        if let Some(found) = self.found {
            if found >= from {
                return Some(found);
            }
            self.found = None;
            self.inside = true;
        }
        if self.inside {
            let rest = text.get(self.searched..)?;
            let Some(length) = rest.iter().position(|byte| !is_part(*byte)) else {
                self.searched = text.len();
                return None;
            };
            self.searched += length;
            self.inside = false;
        }
        self.search(text, last)
    }

    fn search(&mut self, text: &[u8], last: bool) -> Option<usize> {
        let mut at = self.searched;
        while let Some(run) = text.get(at..at + SHORTEST_RUN) {
            match run.iter().rposition(|byte| !is_part(*byte)) {
                Some(divider) => at += divider + 1,
                None => {
                    self.searched = at;
                    self.found = Some(at);
                    return self.found;
                }
            }
        }
        let rest = text.get(at..).unwrap_or_default();
        let divider = rest.iter().rposition(|byte| !is_part(*byte));
        self.searched = at + divider.map_or(0, |divider| divider + 1);
        (!last && self.searched < text.len()).then_some(self.searched)
    }

    /// The first `gone` bytes of the text were forgotten.
    pub(crate) fn forget(&mut self, gone: usize) {
        self.searched = self.searched.saturating_sub(gone);
        if let Some(found) = self.found {
            self.found = found.checked_sub(gone);
            self.inside |= self.found.is_none();
        }
    }
}

fn is_part(byte: u8) -> bool {
    ByteClass::Drawn.fits(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<usize> {
        let mut runs = LongRuns::default();
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = runs.next(text, from, true) {
            found.push(at);
            from = at + 1;
        }
        found
    }

    #[test]
    fn runs_begin_where_nothing_of_them_stands_before() {
        let long = "x".repeat(SHORTEST_RUN);
        let longer = "y".repeat(3 * SHORTEST_RUN);
        let short = "z".repeat(SHORTEST_RUN - 1);
        assert_eq!(all(format!("{long} {short} {longer}").as_bytes()), [0, 41]);
        assert_eq!(all(short.as_bytes()), [] as [usize; 0]);
        assert_eq!(all(format!("={long}").as_bytes()), [1]);
    }

    #[test]
    fn a_run_that_is_cut_counts_until_nothing_more_comes() {
        let mut runs = LongRuns::default();
        assert_eq!(runs.next(b"ab cd", 0, false), Some(3));
        assert_eq!(runs.next(b"ab cde ", 3, false), None);
        assert_eq!(runs.next(b"ab cde fg", 7, true), None);
    }

    #[test]
    fn a_run_longer_than_what_is_held_is_found_once() {
        let mut runs = LongRuns::default();
        let mut text = vec![b'x'; 100];
        assert_eq!(runs.next(&text, 0, false), Some(0));
        assert_eq!(runs.next(&text, 1, false), None);
        runs.forget(50);
        text.drain(..50);
        text.extend(vec![b'x'; 100]);
        assert_eq!(runs.next(&text, 50, false), None);
        text.extend(b" ");
        text.extend(vec![b'y'; 30]);
        assert_eq!(runs.next(&text, 150, false), Some(151));
    }
}
