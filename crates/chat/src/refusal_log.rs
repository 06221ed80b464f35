//! How often strangers who knock at a port are written down.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// One line of the log in this time, however many knock.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Refused requests of whoever cannot sign. Anybody who reaches the port can send a million of them, and the log
/// is on the disk that messages are stored on, so the first is told at once and the others once a minute, with
/// their number.
#[derive(Debug, Default)]
pub struct RefusalLog {
    state: Mutex<RefusalCount>,
}

#[derive(Debug, Default)]
struct RefusalCount {
    told_at: Option<Instant>,
    untold: u64,
}

impl RefusalLog {
    /// Counts a refused request. `Some` with the number of requests since the last line where one is due.
    pub fn refuse(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Counted before it is asked whether a line is due, so that the line's number includes this
        // one.
        state.untold += 1;
        let is_due = state
            .told_at
            .is_none_or(|told_at| told_at.elapsed() >= BETWEEN_LINES);
        is_due.then(|| {
            state.told_at = Some(Instant::now());
            std::mem::take(&mut state.untold)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_strangers_is_a_line_a_minute_with_their_number() {
        let log = RefusalLog::default();
        assert_eq!(log.refuse(), Some(1));
        for _ in 0..1_000 {
            assert_eq!(log.refuse(), None);
        }
        tokio::time::advance(BETWEEN_LINES).await;
        assert_eq!(log.refuse(), Some(1_001));
        assert_eq!(log.refuse(), None);
    }
}
