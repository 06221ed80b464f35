//! What is over for long is forgotten, by a clock that no jump of the machine's can push ahead.
//!
//! What is deleted does not come back when the clock is set right. So the time by which things are old is kept
//! in the store and goes ahead with the time that was seen to pass, at most twice as fast, and by a day for
//! each start: a machine that was off for a month is a month late with forgetting, and catches up.

use std::time::Duration;

use hermetic_store::{DocumentRows, Store, StoreError};
use hermetic_types::Timestamp;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::Gateway;

/// Ended messages are kept this long, to recognise one that comes twice.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Runs of one job that are kept; a clock that is set back finds its moments among them.
const KEPT_RUNS: u32 = 400;

const DOCUMENT: &str = "forgetting-clock";
const FOR_A_START: Duration = Duration::from_secs(25 * 3600);

#[derive(Debug)]
pub(crate) struct ForgettingClock {
    documents: DocumentRows,
    /// When this process looked last.
    last_look: Mutex<Option<Instant>>,
}

impl ForgettingClock {
    pub(crate) fn new(store: &Store) -> Self {
        Self {
            documents: store.documents(),
            last_look: Mutex::default(),
        }
    }

    /// The machine's time, or an earlier one where that has jumped.
    async fn look(&self, now: Timestamp) -> Result<Timestamp, StoreError> {
        let mut last_look = self.last_look.lock().await;
        let kept = self.documents.load(DOCUMENT).await?;
        let kept = kept.and_then(|kept| kept.body.parse().ok().map(Timestamp::from_millis));
        let may_pass = match *last_look {
            Some(before) => before.elapsed() * 2,
            None => FOR_A_START,
        };
        let believed = kept.map_or(now, |kept: Timestamp| now.min(kept.plus(may_pass)));
        self.documents
            .put(DOCUMENT, &believed.millis().to_string())
            .await?;
        *last_look = Some(Instant::now());
        Ok(believed)
    }
}

impl Gateway {
    /// A gateway that is never restarted must not grow for ever.
    pub(crate) async fn forget_old(&self) -> Result<(), StoreError> {
        let now = self.forgetting.look(self.now()).await?;
        self.inbox.prune(now.minus(KEPT)).await?;
        let questions = self.approvals.questions.rows();
        questions.prune(now.minus(KEPT)).await?;
        self.store.ledger().forget_events(now.minus(KEPT)).await?;
        // Before the rows go: a job's sandbox is found by its row alone.
        self.clear_ended_jobs().await?;
        self.jobs.prune(now.minus(KEPT), KEPT_RUNS).await?;
        self.spending.forget_old().await?;
        if let Some(memory) = self.settings.memory {
            let forgotten = self.history.forget_silent(now.minus(memory)).await?;
            self.browser_chat.prune(now.minus(memory)).await?;
            if forgotten > 0 {
                tracing::info!(forgotten, "silent conversations are forgotten");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use hermetic_types::SystemClock;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

    #[tokio::test]
    async fn a_clock_that_jumps_ahead_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = Store::open(&path, SystemClock::shared()).await.unwrap();
        let today = Timestamp::from_millis(1_800_000_000_000);
        let clock = ForgettingClock::new(&store);
        assert_eq!(clock.look(today).await.unwrap(), today);
        // Within one process hardly any time went by, whatever the machine says.
        let jumped = clock.look(today.plus(14 * YEAR)).await.unwrap();
        assert!(jumped < today.plus(HOUR), "{jumped:?}");
        // Set right, it is believed again; and a start with a clock in the future has a day.
        assert_eq!(clock.look(today).await.unwrap(), today);
        let next = ForgettingClock::new(&store);
        let started = next.look(today.plus(14 * YEAR)).await.unwrap();
        assert_eq!(started, today.plus(FOR_A_START));
        // A clock that is behind is believed: it deletes less.
        let behind = today.minus(YEAR);
        assert_eq!(next.look(behind).await.unwrap(), behind);
    }
}
