//! Since when this gateway has a conversation, told to its sandbox.
//!
//! Gateways that share a store hand conversations to each other, each time with a higher epoch. The warden
//! is told it before anything else is asked of it, and obeys nobody who had the conversation before: what
//! the store cannot fence, because it happens inside, is fenced there. A gateway that serves alone and has others
//! stand by says since when it serves, for all conversations; one that shares with nobody says nothing.

use std::sync::{Arc, PoisonError};

use hermetic_sandbox::Sandbox;
use hermetic_types::{ConversationKey, HolderEpoch};
use hermetic_warden::client::WardenCallError;

use crate::{LeaseError, Sandboxes};

impl Sandboxes {
    /// This gateway serves since this epoch, and every conversation with it. What is said of one counts on top.
    pub fn serving_since(mut self, epoch: HolderEpoch) -> Self {
        self.serving_since = epoch;
        self
    }

    /// This gateway has the conversation since this epoch. A sandbox that is reached by an earlier one is told
    /// at its next use; what was told before never counts again.
    pub fn hold(&self, conversation: &ConversationKey, epoch: HolderEpoch) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let known = held.entry(conversation.clone()).or_default();
        *known = epoch.max(*known);
    }

    /// Whether it is known since when this gateway has it.
    pub fn holds(&self, conversation: &ConversationKey) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.contains_key(conversation)
    }

    /// Another gateway may have it from now on. The epoch is forgotten, so that a long life with many
    /// conversations costs nothing; whoever has it again says so again.
    pub fn let_go_of(&self, conversation: &ConversationKey) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.remove(conversation);
    }

    pub(crate) fn epoch_of(&self, conversation: &ConversationKey) -> HolderEpoch {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let of_it = held.get(conversation).copied().unwrap_or_default();
        HolderEpoch::new(self.serving_since.get().saturating_add(of_it.get()))
    }

    /// Tells the warden of a link that was just made.
    pub(crate) async fn tell_epoch(
        &self,
        conversation: &ConversationKey,
        sandbox: &Sandbox,
    ) -> Result<(), LeaseError> {
        let epoch = self.epoch_of(conversation);
        let told = sandbox.hold(epoch).await;
        told.map(drop).map_err(LeaseError::from_hold)
    }

    /// The sandbox of a link that stands, where its warden obeys us over it.
    pub(crate) async fn still_held(
        &self,
        conversation: &ConversationKey,
        sandbox: Option<&Arc<Sandbox>>,
    ) -> Result<Option<Arc<Sandbox>>, LeaseError> {
        let Some(sandbox) = sandbox.filter(|sandbox| sandbox.is_reachable()) else {
            return Ok(None);
        };
        if sandbox.holder() < self.epoch_of(conversation) {
            match self.tell_epoch(conversation, sandbox).await {
                // Broken by now: there may be another way to it.
                Err(LeaseError::Hold(WardenCallError::LinkLost)) => return Ok(None),
                told => told?,
            }
        }
        Ok(Some(Arc::clone(sandbox)))
    }
}

impl LeaseError {
    fn from_hold(error: WardenCallError) -> Self {
        match error {
            WardenCallError::HeldElsewhere { since } => Self::HeldElsewhere { since },
            error => Self::Hold(error),
        }
    }

    /// Nothing is known against the sandbox: it is out of reach, or somebody else's. It is not written off.
    pub(crate) fn spares_the_sandbox(&self) -> bool {
        self.is_out_of_reach() || matches!(self, Self::HeldElsewhere { .. })
    }
}
