//! Patterns that somebody waits for in a process's output, and how often they may be told.

use std::time::Duration;

use tokio::time::Instant;

/// Between two hits of one process.
const APART: Duration = Duration::from_secs(15);
/// After so many such spans in a row with more hits than may be told, it is not watched any more.
const STRIKES: u32 = 3;
/// For all processes together: so many within a span, then silence.
const MANY: usize = 15;
const SPAN: Duration = Duration::from_secs(10);
const ALARM_SILENCE: Duration = Duration::from_secs(30);

/// A line longer than this is looked at in pieces.
const LONGEST_WATCHED_LINE: usize = 64 << 10;

/// Looks for one process's patterns in its output.
#[derive(Debug)]
pub(crate) struct PatternWatch {
    patterns: Vec<String>,
    line: Vec<u8>,
    told: Option<Instant>,
    /// Hits since then that were not told.
    untold: u32,
    strikes: u32,
}

/// What is done about a line that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternHit {
    /// To be told: the pattern, and how many hits were swallowed before it.
    Tell { pattern: String, untold: u32 },
    /// It hits all the time. From now on only the end is told.
    Enough,
}

/// Bounds the notices of all processes together.
#[derive(Debug, Default)]
pub(crate) struct NoticeLimit {
    lately: Vec<Instant>,
    silent_until: Option<Instant>,
}

impl PatternWatch {
    pub(crate) fn new(patterns: Vec<String>) -> Self {
        Self {
            patterns,
            line: Vec::new(),
            told: None,
            untold: 0,
            strikes: 0,
        }
    }

    /// Looks at what was written, line by line as it would be shown. The first hit that has to be told
    /// comes back.
    pub(crate) fn look(
        &mut self,
        bytes: &[u8],
        now: Instant,
        shown: impl Fn(&[u8]) -> String,
    ) -> Option<PatternHit> {
        let mut hit = None;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.line.len() >= LONGEST_WATCHED_LINE {
                let line = shown(&std::mem::take(&mut self.line));
                hit = hit.or(self.look_at_line(&line, now));
            }
        }
        hit
    }

    fn look_at_line(&mut self, line: &str, now: Instant) -> Option<PatternHit> {
        let pattern = self
            .patterns
            .iter()
            .find(|pattern| line.contains(*pattern))?;
        let waited = self.told.map(|told| now.duration_since(told));
        if waited.is_some_and(|waited| waited < APART) {
            self.untold = self.untold.saturating_add(1);
            return None;
        }
        self.strikes = if self.untold > 0 { self.strikes + 1 } else { 0 };
        if self.strikes >= STRIKES {
            self.patterns.clear();
            return Some(PatternHit::Enough);
        }
        self.told = Some(now);
        Some(PatternHit::Tell {
            pattern: pattern.clone(),
            untold: std::mem::take(&mut self.untold),
        })
    }
}

impl NoticeLimit {
    /// Whether one more may be told.
    pub(crate) fn may_ring(&mut self, now: Instant) -> bool {
        if self.silent_until.is_some_and(|until| now < until) {
            return false;
        }
        self.silent_until = None;
        self.lately.retain(|at| now.duration_since(*at) < SPAN);
        if self.lately.len() >= MANY {
            self.lately.clear();
            self.silent_until = Some(now + ALARM_SILENCE);
            return false;
        }
        self.lately.push(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> PatternWatch {
        PatternWatch::new(vec!["ERROR".to_owned(), "ready".to_owned()])
    }

    fn look(watch: &mut PatternWatch, text: &str, now: Instant) -> Option<PatternHit> {
        watch.look(text.as_bytes(), now, |line| {
            String::from_utf8_lossy(line).into_owned()
        })
    }

    fn told(pattern: &str, untold: u32) -> Option<PatternHit> {
        Some(PatternHit::Tell {
            pattern: pattern.to_owned(),
            untold,
        })
    }

    #[test]
    fn a_line_in_pieces_is_one_line() {
        let (mut watch, now) = (watch(), Instant::now());
        assert_eq!(look(&mut watch, "server re", now), None);
        assert_eq!(look(&mut watch, "ady\n", now), told("ready", 0));
    }

    #[test]
    fn hits_too_close_are_counted_and_told_with_the_next() {
        let (mut watch, now) = (watch(), Instant::now());
        assert_eq!(look(&mut watch, "ERROR\n", now), told("ERROR", 0));
        assert_eq!(look(&mut watch, "ERROR\nERROR\n", now + SPAN), None);
        assert_eq!(look(&mut watch, "ready\n", now + APART), told("ready", 2));
    }

    #[test]
    fn who_hits_all_the_time_is_not_watched_any_more() {
        let (mut watch, mut now) = (watch(), Instant::now());
        assert_eq!(look(&mut watch, "ERROR\n", now), told("ERROR", 0));
        let mut hits = Vec::new();
        for _ in 0..200 {
            now += Duration::from_secs(1);
            hits.extend(look(&mut watch, "ERROR\n", now));
        }
        assert_eq!(hits.len(), 3, "{hits:?}");
        assert_eq!(hits[2], PatternHit::Enough);
    }

    #[test]
    fn an_alarm_that_rings_too_often_is_silent_for_a_while() {
        let (mut alarm, now) = (NoticeLimit::default(), Instant::now());
        let rung = (0..100).filter(|_| alarm.may_ring(now)).count();
        assert_eq!(rung, MANY);
        assert!(!alarm.may_ring(now + ALARM_SILENCE - SPAN));
        assert!(alarm.may_ring(now + ALARM_SILENCE));
    }
}
