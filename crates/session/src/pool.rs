//! Sandboxes that wait, made and greeted, for conversations that do not exist yet.
//!
//! One that waits is in the ledger like any other, under a name that is no conversation's. Whoever
//! takes it gives it his own, in one step, so that a crash finds it either waiting or taken. One
//! that waited for an earlier process is destroyed: it may be what an earlier configuration asked
//! for.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_sandbox::{Sandbox, SandboxSpec};
use hermetic_types::{ConversationKey, SandboxId};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{LeaseError, Sandboxes};

#[derive(Debug, Default)]
pub(crate) struct WarmPool {
    warm: Mutex<VecDeque<WarmSandbox>>,
    filling: AtomicBool,
    last_taken: Mutex<Option<Instant>>,
}

/// Whoever takes one has a command to run. Making another at that moment would take the engine and
/// the processor from it.
const REFILL_PAUSE: Duration = Duration::from_secs(1);

const AFTER_FAILURE: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct WarmSandbox {
    spec: SandboxSpec,
    sandbox: Arc<Sandbox>,
}

/// The one task that fills the pool. However it ends, the next one may begin.
struct FillingPool(Arc<WarmPool>);

impl Drop for FillingPool {
    fn drop(&mut self) {
        self.0.filling.store(false, Ordering::SeqCst);
    }
}

/// No conversation's key begins so.
const NOBODY: &str = "pool:";

pub(crate) fn is_nobodys(conversation: &ConversationKey) -> bool {
    conversation.as_str().starts_with(NOBODY)
}

impl WarmPool {
    fn warm(&self) -> MutexGuard<'_, VecDeque<WarmSandbox>> {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self) -> usize {
        self.warm().len()
    }

    fn take(&self) -> Option<WarmSandbox> {
        self.warm().pop_front()
    }

    fn note_taken(&self) {
        *self.last_taken() = Some(Instant::now());
    }

    fn last_taken(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last_taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends when nobody has taken one for a moment.
    async fn rest(&self) {
        loop {
            let due = self.last_taken().map(|taken| taken + REFILL_PAUSE);
            match due.filter(|due| *due > Instant::now()) {
                Some(due) => sleep_until(due).await,
                None => return,
            }
        }
    }
}

impl Sandboxes {
    /// A waiting sandbox, now this conversation's. Nothing where none waits.
    pub(crate) async fn take_warm(
        &self,
        conversation: &ConversationKey,
    ) -> Result<Option<(SandboxSpec, Arc<Sandbox>)>, LeaseError> {
        while let Some(WarmSandbox { mut spec, sandbox }) = self.pool.take() {
            self.pool.note_taken();
            self.changed.notify_one();
            if !sandbox.is_reachable() {
                self.give_up(&spec.id).await;
                continue;
            }
            let wanted = self.spec(conversation);
            if spec.mounts != wanted.mounts {
                // It was made before something was installed or removed, and shows what was there then.
                self.give_up(&spec.id).await;
                continue;
            }
            if spec.env != wanted.env {
                // A credential of this conversation's alone has its place in the environment, which
                // a living sandbox cannot be given any more.
                self.pool.warm().push_front(WarmSandbox { spec, sandbox });
                return Ok(None);
            }
            // While it is nobody's: refused or broken, it is given up as one that waited.
            if let Err(error) = self.tell_epoch(conversation, &sandbox).await {
                tracing::warn!(sandbox = %spec.id, %error, "a waiting sandbox was not taken");
                self.give_up(&spec.id).await;
                continue;
            }
            spec.conversation = conversation.clone();
            // Row and name change in one step, below. Only then is it the conversation's; until
            // then a crash finds one that waits.
            let text = serde_json::to_string(&spec)?;
            let now = self.now();
            let given = self.ledger.give(&spec.id, conversation, &text, now).await;
            if let Err(error) = given {
                self.give_up(&spec.id).await;
                return Err(error.into());
            }
            tracing::info!(sandbox = %spec.id, %conversation, "a waiting sandbox was taken");
            return Ok(Some((spec, sandbox)));
        }
        Ok(None)
    }

    /// Makes what is missing, in the background; one at a time, so that nobody who needs one now
    /// waits behind those who may.
    pub(crate) fn fill_pool(&self) {
        // One task fills; whoever comes meanwhile finds it at work and need not wait.
        if self.pool_room() == 0 || self.pool.filling.swap(true, Ordering::SeqCst) {
            return;
        }
        let this = self.clone();
        let filling = FillingPool(Arc::clone(&self.pool));
        self.works.spawn(async move {
            let _filling = filling;
            while !this.works.is_closed() && this.pool_room() > 0 {
                if this
                    .cut
                    .run_until_cancelled(this.pool.rest())
                    .await
                    .is_none()
                {
                    break;
                }
                let nobody = ConversationKey::new(format!("{NOBODY}{}", SandboxId::random()));
                match this.make(&nobody).await {
                    Ok((spec, sandbox)) => {
                        this.pool.warm().push_back(WarmSandbox { spec, sandbox });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "no sandbox could be made to wait");
                        // A failure may wake the reaper, which fills the pool: not at full speed.
                        this.cut.run_until_cancelled(sleep(AFTER_FAILURE)).await;
                        break;
                    }
                }
            }
        });
    }

    /// Those that wait give way where the bound on all is reached.
    pub(crate) async fn trim_pool(&self) {
        // Those that are at work were claimed first and never give way; what only waits does.
        while self.claimed() + self.pool.len() > self.max_sandboxes()
            && let Some(warm) = self.pool.take()
        {
            self.give_up(&warm.spec.id).await;
        }
    }

    pub(crate) async fn empty_pool(&self) {
        while let Some(warm) = self.pool.take() {
            self.give_up(&warm.spec.id).await;
        }
    }

    fn pool_room(&self) -> usize {
        // What waits takes room that those who work do not have.
        if self.is_disk_low() {
            return 0;
        }
        let waiting = self.pool.len();
        let free = self
            .max_sandboxes()
            .saturating_sub(self.claimed() + waiting);
        self.plan.pool.saturating_sub(waiting).min(free)
    }

    async fn give_up(&self, id: &SandboxId) {
        if let Err(error) = self.destroy(id, self.plan.backend).await {
            tracing::warn!(sandbox = %id, %error, "a waiting sandbox could not be removed yet");
        }
    }
}
