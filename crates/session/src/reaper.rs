//! The reaper: lets idle sandboxes go, and does not forget a destroy that failed.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::BoxFuture;
use hermetic_store::{LedgerEntry, LedgerState, RowOwner};
use hermetic_types::SandboxId;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{LetGoError, Sandboxes};

/// A failed destroy is tried again after this, and twice as long each time.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LONGEST_REAP_RETRY: Duration = Duration::from_secs(300);

/// With nothing to do, look again after this: the ledger may have been changed by the command line.
const REAP_INTERVAL: Duration = Duration::from_secs(60);

type Retries = HashMap<SandboxId, (Instant, Duration)>;

impl Sandboxes {
    /// Runs until `stop`. What lives then goes on living: the next start adopts it.
    pub fn reap(&self, stop: CancellationToken) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut retries = Retries::new();
            loop {
                let next = self.round(&mut retries).await;
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.changed.notified() => {}
                    () = sleep_until(next) => {}
                }
            }
        })
    }

    /// One look at everything; when to look again.
    async fn round(&self, retries: &mut Retries) -> Instant {
        let mut next = Instant::now() + REAP_INTERVAL;
        for (conversation, slot) in self.everyone() {
            let Some(since) = slot.idle_since() else {
                continue;
            };
            let due = since + self.plan.lifetime;
            let vacant = slot.gate.try_lock().is_ok_and(|tenant| tenant.is_none());
            if vacant {
                if due <= Instant::now() {
                    self.forget_vacant(&conversation);
                }
            } else if due > Instant::now() {
                next = next.min(due);
            } else if let Err(error) = self.let_go(&conversation, since).await {
                tracing::warn!(%conversation, %error, "an idle sandbox could not be let go");
            }
        }
        if let Some(due) = self.see_out_late().await {
            next = next.min(due);
        }
        self.trim_pool().await;
        self.fill_pool();
        next.min(self.retry(retries).await)
    }

    /// An empty slot whose conversation has been silent costs memory for nothing.
    fn forget_vacant(&self, conversation: &hermetic_types::ConversationKey) {
        let mut slots = self
            .slots
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let vacant = slots.get(conversation).is_some_and(|slot| {
            // Nobody else holds the slot: only the map's own reference is left.
            std::sync::Arc::strong_count(slot) == 1
                && slot.gate.try_lock().is_ok_and(|tenant| tenant.is_none())
        });
        if vacant {
            slots.remove(conversation);
        }
    }

    async fn retry(&self, retries: &mut Retries) -> Instant {
        let far = Instant::now() + REAP_INTERVAL;
        let entries = match self.ledger.entries(RowOwner::ThisGateway).await {
            Ok(entries) => entries,
            Err(error) => {
                tracing::error!(%error, "the ledger cannot be read");
                return far;
            }
        };
        self.metrics.counted_anew(&entries);
        let stuck: Vec<_> = entries.into_iter().filter(is_stuck).collect();
        retries.retain(|id, _| stuck.iter().any(|entry| &entry.id == id));
        let mut next = far;
        for entry in stuck {
            let (due, wait) = *retries
                .entry(entry.id.clone())
                .or_insert((Instant::now() + FIRST_RETRY, FIRST_RETRY));
            if due > Instant::now() {
                next = next.min(due);
                continue;
            }
            if self.try_again(&entry).await {
                retries.remove(&entry.id);
            } else {
                let wait = (wait * 2).min(LONGEST_REAP_RETRY);
                retries.insert(entry.id, (Instant::now() + wait, wait));
                next = next.min(Instant::now() + wait);
            }
        }
        next
    }

    async fn try_again(&self, entry: &LedgerEntry) -> bool {
        let tried = match entry.state {
            LedgerState::Stopping => self.stop_again(entry).await,
            _ => self.destroy(&entry.id, entry.backend).await,
        };
        if let Err(error) = &tried {
            tracing::warn!(sandbox = %entry.id, tries = entry.failures + 1, %error, "still there");
        }
        tried.is_ok()
    }
}

impl Sandboxes {
    /// Unless the conversation has started it again meanwhile.
    async fn stop_again(&self, entry: &LedgerEntry) -> Result<(), LetGoError> {
        let slot = self.slot(&entry.conversation);
        let _nobody_moves_in = slot.gate.lock().await;
        match self.ledger.find(&entry.id).await? {
            Some(now) if now.state == LedgerState::Stopping => {
                self.stop(&entry.id, entry.backend).await
            }
            _ => Ok(()),
        }
    }
}

/// On its way out and has failed at least once: nobody else is at work on it.
fn is_stuck(entry: &LedgerEntry) -> bool {
    entry.failures > 0 && matches!(entry.state, LedgerState::Stopping | LedgerState::Destroying)
}
