//! The latest output of a process that goes on.

use std::collections::VecDeque;

use hermetic_redact::{Redacted, Redactor};

use crate::ansi;

/// As much as Hermes keeps.
pub(crate) const MOST_ROLLING_CHARS: usize = 200_000;
/// Most text is ASCII; of other text fewer characters may be kept.
const MOST_ROLLING_BYTES: usize = 2 * MOST_ROLLING_CHARS;
/// Thrown away at the beginning once something was: half a secret may stand there.
const EDGE: usize = 8 << 10;

/// Raw bytes, in bounded memory: they are made legible when somebody looks, so that a secret that came
/// in two pieces is seen as one.
#[derive(Debug, Default)]
pub(crate) struct RollingOutput {
    bytes: VecDeque<u8>,
    total: u64,
}

impl RollingOutput {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(MOST_ROLLING_BYTES)..];
        let over = (self.bytes.len() + bytes.len()).saturating_sub(MOST_ROLLING_BYTES);
        self.bytes.drain(..over);
        self.bytes.extend(bytes);
    }

    /// Bytes that were lost before they came here. What is kept would not be one piece, so it goes.
    pub(crate) fn skip(&mut self, lost: u64) {
        self.total = self.total.saturating_add(lost);
        if lost > 0 {
            self.bytes.clear();
        }
    }

    /// How much was written so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Without escapes and secrets.
    pub(crate) fn text(&self, redactor: &Redactor) -> Redacted<String> {
        let (one, two) = self.bytes.as_slices();
        let plain = ansi::plain(&[one, two].concat());
        let text = redactor.redact(String::from_utf8_lossy(&plain));
        let mut shown = text.as_str();
        if self.total > self.bytes.len() as u64 {
            shown = &shown[shown.ceil_char_boundary(EDGE.min(shown.len()))..];
        }
        let chars = shown.chars().count();
        if let Some((at, _)) = shown
            .char_indices()
            .nth(chars.saturating_sub(MOST_ROLLING_CHARS))
            .filter(|(at, _)| *at > 0)
        {
            shown = &shown[at..];
        }
        if shown.len() == text.as_str().len() {
            return text;
        }
        // The second pass only proves what the first did.
        redactor.redact(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermetic_types::Secret;

    fn redactor() -> Redactor {
        let known = [Secret::new("correct-horse-battery")];
        Redactor::new(known, hermetic_redact::RedactorSettings::default())
    }

    #[test]
    fn the_latest_is_kept_in_bounded_memory() {
        let mut rolling = RollingOutput::default();
        for number in 0..200_000 {
            rolling.push(format!("{number}\n").as_bytes());
        }
        assert!(rolling.bytes.len() <= MOST_ROLLING_BYTES);
        let text = rolling.text(&redactor());
        assert!(text.as_str().ends_with("199998\n199999\n"));
        assert!(text.as_str().chars().count() <= MOST_ROLLING_CHARS);
    }

    #[test]
    fn a_secret_in_two_pieces_or_at_the_edge_does_not_show() {
        let mut rolling = RollingOutput::default();
        rolling.push(b"correct-\x1b[1mhorse");
        rolling.push(b"-battery done");
        assert_eq!(rolling.text(&redactor()).as_str(), "[redacted] done");
        for cut in 0..21 {
            let mut rolling = RollingOutput::default();
            rolling.push(b"correct-horse-battery");
            rolling.push(&vec![b'.'; MOST_ROLLING_BYTES - cut]);
            let text = rolling.text(&redactor()).into_inner();
            assert!(text.chars().all(|c| c == '.'), "half of it shows");
        }
    }
}
