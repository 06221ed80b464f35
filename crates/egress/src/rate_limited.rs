//! A record that one conversation cannot flood.
//!
//! What is kept for ever must not grow as fast as a sandbox can knock. Beyond so many entries a minute a
//! conversation's further ones are counted instead, and the count is written down.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hermetic_types::ConversationKey;

use crate::audit::{EgressDecision, EgressEntry, EgressRecorder};

/// Passes on a bounded number of each conversation's entries a minute.
pub struct RateLimitedRecorder<R> {
    inner: R,
    most: u32,
    windows: Mutex<HashMap<ConversationKey, MinuteWindow>>,
}

/// One conversation's entries of the current minute.
struct MinuteWindow {
    since: Instant,
    written: u32,
    left_out: u64,
}

const MINUTE: Duration = Duration::from_secs(60);
/// How long a count is kept for an entry that may never come.
const DAY: Duration = Duration::from_secs(24 * 3600);

impl<R: EgressRecorder> RateLimitedRecorder<R> {
    pub fn new(inner: R, entries_a_minute: u32) -> Self {
        Self {
            inner,
            most: entries_a_minute,
            windows: Mutex::default(),
        }
    }

    /// Whether this one is written, and how many were not since the last that was.
    fn judge(&self, whose: &ConversationKey, now: Instant) -> Option<u64> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let over = |window: &MinuteWindow| now.duration_since(window.since) >= MINUTE;
        // A window that still owes its count stays, but not for ever: nothing more may come of that
        // conversation, and there are always new ones.
        let owes =
            |window: &MinuteWindow| window.left_out > 0 && now.duration_since(window.since) < DAY;
        windows.retain(|key, window| key == whose || owes(window) || !over(window));
        let window = windows.entry(whose.clone()).or_insert(MinuteWindow {
            since: now,
            written: 0,
            left_out: 0,
        });
        if over(window) {
            (window.since, window.written) = (now, 0);
        }
        if window.written >= self.most {
            window.left_out += 1;
            return None;
        }
        window.written += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

impl<R> fmt::Debug for RateLimitedRecorder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitedRecorder")
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

impl<R: EgressRecorder> EgressRecorder for RateLimitedRecorder<R> {
    fn write(&self, entry: &EgressEntry) {
        let Some(left_out) = self.judge(&entry.conversation, Instant::now()) else {
            return;
        };
        if left_out > 0 {
            self.inner.write(&EgressEntry {
                host: String::new(),
                port: 0,
                address: None,
                rule: String::new(),
                verdict: EgressDecision::Refused {
                    reason: format!("{left_out} decisions before this were too many to write down"),
                },
                bytes_up: 0,
                bytes_down: 0,
                duration: Duration::ZERO,
                ..entry.clone()
            });
        }
        self.inner.write(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::LogRecorder;

    #[test]
    fn a_flood_is_counted_and_costs_nobody_else() {
        let limited = RateLimitedRecorder::new(LogRecorder, 3);
        let (a, b) = (ConversationKey::new("a"), ConversationKey::new("b"));
        let now = Instant::now();
        let written: Vec<_> = (0..5).map(|_| limited.judge(&a, now)).collect();
        assert_eq!(written, [Some(0), Some(0), Some(0), None, None]);
        assert_eq!(limited.judge(&b, now), Some(0));
        assert_eq!(limited.judge(&a, now + MINUTE), Some(2));
        assert_eq!(limited.judge(&a, now + MINUTE), Some(0));
    }

    #[test]
    fn a_conversation_that_ended_in_a_flood_is_forgotten() {
        let limited = RateLimitedRecorder::new(LogRecorder, 1);
        let now = Instant::now();
        for number in 0..100 {
            let flood = ConversationKey::new(format!("flood {number}"));
            assert_eq!(limited.judge(&flood, now), Some(0));
            assert_eq!(limited.judge(&flood, now), None);
        }
        let other = ConversationKey::new("other");
        limited.judge(&other, now + MINUTE);
        assert_eq!(limited.windows.lock().unwrap().len(), 101);
        limited.judge(&other, now + DAY);
        assert_eq!(limited.windows.lock().unwrap().len(), 1);
    }
}
