//! How often a password may be guessed.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hermetic_types::Timestamp;

/// Counts wrong passwords, whoever typed them: addresses are cheap.
#[derive(Debug, Default)]
pub(crate) struct AttemptLimit(Mutex<VecDeque<Timestamp>>);

const WINDOW: Duration = Duration::from_secs(60);
const MOST_IN_WINDOW: usize = 10;

impl AttemptLimit {
    /// Whether another guess is heard.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back keeps nobody out for longer than the window.
        failed.retain(|at| now.distance(*at) < WINDOW);
        failed.len() < MOST_IN_WINDOW
    }

    pub(crate) fn failed(&self, now: Timestamp) {
        let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failed.push_back(now);
        while failed.len() > MOST_IN_WINDOW {
            failed.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_guesses_a_minute_are_heard() {
        let (limit, now) = (AttemptLimit::default(), Timestamp::from_seconds(100));
        for _ in 0..MOST_IN_WINDOW {
            assert!(limit.is_open(now));
            limit.failed(now);
        }
        assert!(!limit.is_open(now));
        assert!(limit.is_open(now.plus(WINDOW)));
        limit.failed(now);
        assert!(limit.is_open(now.minus(WINDOW)));
    }
}
