//! Messages that are too old to be handed over once more.
//!
//! A signature never expires, and the store forgets what it answered after a month: who recorded a signed
//! notification could have it answered again then. Meta itself tries for a week. So a message that is older than
//! two weeks is not taken, by two clocks at once: the machine's, and that of the newest message Meta has signed.
//! One alone could be wrong, and every message would look old.

use std::sync::Arc;
use std::time::Duration;

use hermetic_chat::{AdapterState, AdapterStateError, SaveDurability};
use hermetic_types::Timestamp;
use tokio::sync::{Mutex, OnceCell};

const KEY: &str = "newest-message";
/// Twice as long as Meta tries, and half as long as the store remembers what it answered.
const OLDEST_TAKEN: Duration = Duration::from_secs(14 * 24 * 3600);
/// How far the time on the disk may lag behind: a write a day, not one for each message.
const SAVED_BEHIND: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug)]
pub(crate) struct NewestMessage {
    state: Arc<dyn AdapterState>,
    seen: OnceCell<Mutex<NewestTimes>>,
}

#[derive(Clone, Copy, Debug)]
struct NewestTimes {
    newest: Timestamp,
    saved: Timestamp,
}

impl NewestMessage {
    pub(crate) fn new(state: Arc<dyn AdapterState>) -> Self {
        Self {
            state,
            seen: OnceCell::new(),
        }
    }

    /// Whether a message that was written at this time is too old. One that is not is remembered.
    pub(crate) async fn is_stale(
        &self,
        written: Timestamp,
        now: Timestamp,
    ) -> Result<bool, AdapterStateError> {
        let mut seen = self.seen().await?.lock().await;
        let is_old = |by: Timestamp| written < by.minus(OLDEST_TAKEN);
        // Both, because a machine whose clock is years ahead would otherwise hear nobody any more.
        if is_old(now) && is_old(seen.newest) {
            return Ok(true);
        }
        seen.newest = seen.newest.max(written);
        if seen.newest > seen.saved.plus(SAVED_BEHIND) {
            let text = seen.newest.seconds().to_string();
            self.state.save(KEY, &text, SaveDurability::Soon).await?;
            // Only when it is kept: where that fails, the next message tries again.
            seen.saved = seen.newest;
        }
        Ok(false)
    }

    async fn seen(&self) -> Result<&Mutex<NewestTimes>, AdapterStateError> {
        self.seen
            .get_or_try_init(|| async {
                let saved = self.state.load(KEY).await?;
                let saved = saved.and_then(|text| text.parse().ok()).unwrap_or(0);
                let saved = Timestamp::from_seconds(saved);
                Ok(Mutex::new(NewestTimes {
                    newest: saved,
                    saved,
                }))
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use hermetic_chat::InMemoryState;

    use super::*;

    const TODAY: Timestamp = Timestamp::from_seconds(1_790_000_000);
    const DAY: Duration = Duration::from_secs(24 * 3600);

    async fn stale(newest: &NewestMessage, written: Timestamp, now: Timestamp) -> bool {
        newest.is_stale(written, now).await.unwrap()
    }

    #[tokio::test]
    async fn what_was_recorded_a_month_ago_is_not_taken_also_after_a_restart() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let newest = NewestMessage::new(Arc::clone(&state));
        let recorded = TODAY.minus(31 * DAY);
        assert!(!stale(&newest, recorded, recorded).await);
        assert!(!stale(&newest, TODAY, TODAY).await);
        assert!(stale(&newest, recorded, TODAY).await);
        // What Meta tried to hand over for a week is new to us.
        assert!(!stale(&newest, TODAY.minus(8 * DAY), TODAY).await);
        let after_restart = NewestMessage::new(state);
        assert!(stale(&after_restart, recorded, TODAY).await);
    }

    #[tokio::test]
    async fn one_clock_that_is_wrong_loses_nothing() {
        let newest = NewestMessage::new(Arc::new(InMemoryState::default()));
        let ahead = TODAY.plus(3650 * DAY);
        assert!(!stale(&newest, TODAY, ahead).await, "the machine's");
        assert!(!stale(&newest, ahead, TODAY).await, "one odd message");
        assert!(!stale(&newest, TODAY, TODAY).await, "and what follows it");
    }
}
