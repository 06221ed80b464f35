//! A sandbox that somebody has business with from before.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use hermetic_sandbox::{Sandbox, jittered};
use hermetic_types::{ConversationKey, SandboxId};
use tokio::time::sleep;

use crate::slot::SandboxSlot;
use crate::{SandboxLease, Sandboxes};

/// Between two tries to reach a sandbox whose host does not answer.
const FIRST_REACH_PAUSE: Duration = Duration::from_millis(500);
/// A server that is back is met again within ten seconds.
const LONGEST_REACH_PAUSE: Duration = Duration::from_secs(8);

/// What is known of a sandbox from before.
enum LivingSandbox {
    Here(Arc<Sandbox>),
    OutOfReach,
    Gone,
}

/// Counts somebody who looks for a sandbox, also where they give up in the middle.
struct SlotVisit<'a>(Option<&'a SandboxSlot>);

impl<'a> SlotVisit<'a> {
    fn begin(slot: &'a SandboxSlot) -> Self {
        slot.take_lease();
        Self(Some(slot))
    }

    /// It is counted on, by the lease.
    fn becomes_a_lease(mut self) {
        self.0 = None;
    }
}

impl Drop for SlotVisit<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.return_untouched();
        }
    }
}

impl Sandboxes {
    /// The conversation's sandbox if it is still this one and answers. Never makes one, and brings none
    /// back. One that is only out of reach, because the host it is on does not answer now, is waited for:
    /// what runs there runs on.
    pub fn lease_living<'a>(
        &'a self,
        conversation: &'a ConversationKey,
        id: &'a SandboxId,
    ) -> BoxFuture<'a, Option<SandboxLease>> {
        Box::pin(async move {
            let slot = {
                let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
                // Not made where there is none: this is asked for processes of conversations that
                // may be long gone.
                Arc::clone(slots.get(conversation)?)
            };
            let mut pause = FIRST_REACH_PAUSE;
            loop {
                // Counted while it is looked for and not while it is waited for: one that nobody can reach
                // is let go when its time is over.
                let visit = SlotVisit::begin(&slot);
                match self.living(&slot, id).await {
                    LivingSandbox::Here(sandbox) => {
                        visit.becomes_a_lease();
                        let changed = Arc::clone(&self.changed);
                        return Some(SandboxLease::counted(sandbox, slot, changed));
                    }
                    LivingSandbox::Gone => return None,
                    LivingSandbox::OutOfReach => drop(visit),
                }
                // While it was looked for it counted as in use; the reaper sees again how long it
                // has been idle.
                self.changed.notify_one();
                // What is out of reach may be so for all that are followed, and is back for all at once.
                sleep(jittered(pause)).await;
                pause = (pause * 2).min(LONGEST_REACH_PAUSE);
            }
        })
    }

    async fn living(&self, slot: &SandboxSlot, id: &SandboxId) -> LivingSandbox {
        let mut tenant = slot.gate.lock().await;
        let Some(found) = tenant.as_mut().filter(|tenant| tenant.spec.id == *id) else {
            return LivingSandbox::Gone;
        };
        match self.meet(found, None).await {
            Ok(sandbox) => LivingSandbox::Here(sandbox),
            Err(error) if error.is_out_of_reach() => LivingSandbox::OutOfReach,
            Err(_) => LivingSandbox::Gone,
        }
    }
}
