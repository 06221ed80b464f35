//! The reaper: lets idle sandboxes go, and does not forget a destroy that failed.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::BoxFuture;
use hermetic_store::{LedgerEntry, LedgerState, RowOwner};
use hermetic_types::{BackendKind, SandboxId};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{LetGoError, Sandboxes};

/// A failed destroy is tried again after this, and twice as long each time.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LONGEST_REAP_RETRY: Duration = Duration::from_secs(300);

/// With nothing to do, look again after this: the ledger may have been changed by the command line.
const REAP_INTERVAL: Duration = Duration::from_secs(60);

type ReapRetries = HashMap<SandboxId, (Instant, Duration)>;

impl Sandboxes {
    /// Runs until `stop`. What lives then goes on living: the next start adopts it.
    pub fn reap(&self, stop: CancellationToken) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut retries = ReapRetries::new();
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
    async fn round(&self, retries: &mut ReapRetries) -> Instant {
        let mut next = Instant::now() + REAP_INTERVAL;
        for (conversation, slot) in self.everyone() {
            let Some(since) = slot.idle_since() else {
                continue;
            };
            // By the common plan: how long is one setting for all platforms.
            let due = since + self.plan.lifetime;
            // Only looked at, never waited for: one whose gate is held is being made or let go at
            // this moment.
            let vacant = slot.gate.try_lock().is_ok_and(|tenant| tenant.is_none());
            if vacant {
                // Ours would count as somebody else's.
                drop(slot);
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
        // Room is made before it is filled, or the pool would make what it takes away again.
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

    async fn retry(&self, retries: &mut ReapRetries) -> Instant {
        let far = Instant::now() + REAP_INTERVAL;
        let entries = match self.ledger.entries(RowOwner::ThisGateway).await {
            Ok(entries) => entries,
            Err(error) => {
                tracing::error!(%error, "the ledger cannot be read");
                return far;
            }
        };
        self.metrics.counted_anew(&entries);
        let mut stuck: Vec<_> = entries
            .into_iter()
            .filter(|entry| is_on_its_way_out(entry) && !self.ending.contains(&entry.id))
            .map(StuckEnd::InLedger)
            .collect();
        for (id, backend) in self.unfinished.all() {
            if stuck.iter().all(|stuck| *stuck.id() != id) {
                stuck.push(StuckEnd::Unwritten(id, backend));
            }
        }
        retries.retain(|id, _| stuck.iter().any(|stuck| stuck.id() == id));
        let mut next = far;
        for stuck in stuck {
            let (due, wait) = *retries
                .entry(stuck.id().clone())
                // Not at once: it has just failed.
                .or_insert((Instant::now() + FIRST_RETRY, FIRST_RETRY));
            if due > Instant::now() {
                next = next.min(due);
                continue;
            }
            if self.end_again(&stuck).await {
                retries.remove(stuck.id());
            } else {
                let wait = (wait * 2).min(LONGEST_REAP_RETRY);
                retries.insert(stuck.id().clone(), (Instant::now() + wait, wait));
                next = next.min(Instant::now() + wait);
            }
        }
        next
    }

    async fn end_again(&self, stuck: &StuckEnd) -> bool {
        match stuck {
            StuckEnd::InLedger(entry) => self.try_again(entry).await,
            StuckEnd::Unwritten(id, backend) => {
                let tried = self.destroy(id, *backend).await;
                if let Err(error) = &tried {
                    tracing::warn!(sandbox = %id, %error, "still there");
                }
                tried.is_ok()
            }
        }
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
        // Held over the look and the stop: in between, the conversation could start the very
        // sandbox that this stops.
        let _nobody_moves_in = slot.gate.lock().await;
        match self.ledger.find(&entry.id).await? {
            Some(now) if now.state == LedgerState::Stopping => {
                self.stop(&entry.id, entry.backend).await
            }
            _ => Ok(()),
        }
    }
}

/// A sandbox on its way out that did not get there.
enum StuckEnd {
    InLedger(LedgerEntry),
    /// The ledger does not say so.
    Unwritten(SandboxId, BackendKind),
}

impl StuckEnd {
    fn id(&self) -> &SandboxId {
        match self {
            Self::InLedger(entry) => &entry.id,
            Self::Unwritten(id, _) => id,
        }
    }
}

/// Whether it has failed before or not: whoever was at work on it may have broken off without a word.
fn is_on_its_way_out(entry: &LedgerEntry) -> bool {
    matches!(entry.state, LedgerState::Stopping | LedgerState::Destroying)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use hermetic_sandbox::{Backend, NetworkMode, SandboxPersistence, SystemView};
    use hermetic_store::Store;
    use hermetic_testkit::backend::{Commands, StandInBackend};
    use hermetic_types::{
        BackendDescription, ConversationKey, InstallationId, SandboxLimits, SystemClock,
    };

    use super::*;
    use crate::SandboxPlan;

    #[tokio::test]
    async fn the_place_of_a_conversation_that_fell_silent_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = Store::open(&path, SystemClock::shared()).await.unwrap();
        let plan = SandboxPlan {
            backend: BackendKind::Native,
            system: SystemView::Host,
            limits: SandboxLimits::default(),
            mounts: Vec::new(),
            env: BTreeMap::new(),
            network: NetworkMode::Closed,
            persistence: SandboxPersistence::Ephemeral,
            lifetime: Duration::from_millis(1),
            max_sandboxes: 10,
            max_sandboxes_per_user: 10,
            pool: 0,
        };
        let description = BackendDescription::sealed(BackendKind::Native);
        let backend: Arc<dyn Backend> =
            Arc::new(StandInBackend::new(description, Commands::Silent));
        let (installation, ledger) = (InstallationId::random(), store.ledger());
        let sandboxes =
            Sandboxes::new(plan, installation, [backend], ledger, SystemClock::shared());
        for who in 0..5 {
            let key = ConversationKey::new(format!("user{who}"));
            drop(sandboxes.lease(&key).await.unwrap());
        }
        assert_eq!(sandboxes.everyone().len(), 5);
        let mut retries = ReapRetries::new();
        // The first round lets the sandboxes go, a later one forgets their places.
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            sandboxes.round(&mut retries).await;
        }
        assert_eq!(sandboxes.everyone().len(), 0);
    }
}
