//! A sandbox that somebody has business with from before.

use std::sync::{Arc, PoisonError};

use futures::future::BoxFuture;
use hermetic_sandbox::Sandbox;
use hermetic_types::{ConversationKey, SandboxId};

use crate::slot::SandboxSlot;
use crate::{SandboxLease, Sandboxes};

impl Sandboxes {
    /// The conversation's sandbox if it is still this one and answers. Never makes one, and brings none
    /// back.
    pub fn lease_living<'a>(
        &'a self,
        conversation: &'a ConversationKey,
        id: &'a SandboxId,
    ) -> BoxFuture<'a, Option<SandboxLease>> {
        Box::pin(async move {
            let slot = {
                let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(slots.get(conversation)?)
            };
            slot.take_lease();
            match self.living(&slot, id).await {
                Some(sandbox) => Some(SandboxLease::counted(
                    sandbox,
                    slot,
                    Arc::clone(&self.changed),
                )),
                None => {
                    slot.return_lease();
                    None
                }
            }
        })
    }

    async fn living(&self, slot: &SandboxSlot, id: &SandboxId) -> Option<Arc<Sandbox>> {
        let mut tenant = slot.gate.lock().await;
        let found = tenant.as_mut().filter(|tenant| tenant.spec.id == *id)?;
        self.meet(found).await.ok()
    }
}
