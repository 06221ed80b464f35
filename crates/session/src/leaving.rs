//! Sandboxes let go: stopped, destroyed, given up.

use std::sync::Arc;

use hermetic_sandbox::SandboxPersistence;
use hermetic_store::{LedgerEntry, LedgerState, StoreError};
use hermetic_types::{BackendKind, ConversationKey, SandboxId};
use tokio::time::Instant;

use crate::slot::{SandboxSlot, SlotSandbox};
use crate::{LetGoError, Sandboxes};

impl Sandboxes {
    /// Stops or destroys an idle conversation's sandbox, unless it was used after `since`.
    pub(crate) async fn let_go(
        &self,
        conversation: &ConversationKey,
        since: Instant,
    ) -> Result<(), LetGoError> {
        let slot = self.slot(conversation);
        // Asked again behind the gate: somebody may have come while this waited for it, and whoever
        // enters is counted before they wait for the gate.
        let mut tenant = slot.gate.lock().await;
        if slot.idle_since().is_none_or(|idle| idle > since) {
            return Ok(());
        }
        let Some(leaving) = tenant.take() else {
            return Ok(());
        };
        let (kind, persistence) = (leaving.backend, leaving.spec.persistence);
        self.end_tenant(&slot, &mut tenant, leaving, persistence)
            .await?;
        self.metrics.reaped(kind);
        Ok(())
    }

    /// Stops or destroys the conversation's sandbox whether it is used or not.
    pub async fn end_tenancy(&self, conversation: &ConversationKey) -> Result<(), LetGoError> {
        let (this, conversation) = (self.clone(), conversation.clone());
        self.to_the_end(async move { this.end_tenancy_now(&conversation).await })
            .await
    }

    /// Runs this as a task of its own: whoever asked may go away, and a stop or a destroy that is cut in the
    /// middle leaves a sandbox half gone in a row that nobody is at work on.
    pub(crate) async fn to_the_end(
        &self,
        act: impl Future<Output = Result<(), LetGoError>> + Send + 'static,
    ) -> Result<(), LetGoError> {
        let act = self.works.spawn(act);
        // Lost only by a panic, or with the whole program.
        act.await.unwrap_or(Err(LetGoError::BrokeOff))
    }

    async fn end_tenancy_now(&self, conversation: &ConversationKey) -> Result<(), LetGoError> {
        let slot = self.slot(conversation);
        let mut tenant = slot.gate.lock().await;
        let Some(leaving) = tenant.take() else {
            return Ok(());
        };
        let persistence = leaving.spec.persistence;
        self.end_tenant(&slot, &mut tenant, leaving, persistence)
            .await
    }

    /// Destroys one sandbox of a conversation with its files: the one in use, whatever runs in it, or one that
    /// was set aside. The conversation has no sandbox then until it needs one. May be asked for twice.
    pub async fn destroy_one(
        &self,
        conversation: &ConversationKey,
        id: &SandboxId,
    ) -> Result<(), LetGoError> {
        let (this, conversation, id) = (self.clone(), conversation.clone(), id.clone());
        self.to_the_end(async move { this.destroy_one_now(&conversation, &id).await })
            .await
    }

    async fn destroy_one_now(
        &self,
        conversation: &ConversationKey,
        id: &SandboxId,
    ) -> Result<(), LetGoError> {
        let slot = self.slot(conversation);
        // Also for one that was set aside: behind the gate nobody takes it back into use meanwhile.
        let mut tenant = slot.gate.lock().await;
        if let Some(leaving) = tenant.take_if(|tenant| tenant.spec.id == *id) {
            let leaves = SandboxPersistence::Ephemeral;
            return self.end_tenant(&slot, &mut tenant, leaving, leaves).await;
        }
        let Some(entry) = self.ledger.find(id).await? else {
            return Ok(());
        };
        self.destroy_entry(&entry).await
    }

    /// Destroys what a row names. Where its backend is not open here, the row says that it is to go.
    pub(crate) async fn destroy_entry(&self, entry: &LedgerEntry) -> Result<(), LetGoError> {
        let gone = self.destroy(&entry.id, entry.backend).await;
        if let Err(error @ LetGoError::NoBackend(_)) = &gone {
            // The start that can open it again sees it out.
            self.mark(&entry.id, entry.backend, LedgerState::Destroying)
                .await?;
            let why = error.to_string();
            self.ledger.note_failure(&entry.id, &why).await?;
        }
        gone
    }

    async fn end_tenant(
        &self,
        slot: &SandboxSlot,
        tenant: &mut Option<SlotSandbox>,
        leaving: SlotSandbox,
        persistence: SandboxPersistence,
    ) -> Result<(), LetGoError> {
        let (spec, kind) = (Arc::clone(&leaving.spec), leaving.backend);
        // The way out first: what it relayed is counted and written down before the sandbox that it
        // belongs to is gone.
        leaving.close_outlet().await;
        let gone = match persistence {
            SandboxPersistence::Ephemeral => self.destroy(&spec.id, kind).await,
            SandboxPersistence::Kept => self.stop(&spec.id, kind).await,
        };
        if let Err(LetGoError::Ledger(_)) = gone {
            // No row says that it is to go, so nobody else would try again.
            *tenant = Some(SlotSandbox {
                backend: kind,
                spec,
                sandbox: None,
                egress_port: None,
            });
            return gone;
        }
        // Also after a failure: the reaper goes on trying, the conversation may start afresh.
        slot.vacate();
        gone
    }

    /// Writes down how a sandbox stands, and counts it there.
    pub(crate) async fn mark(
        &self,
        id: &SandboxId,
        kind: BackendKind,
        state: LedgerState,
    ) -> Result<(), StoreError> {
        self.ledger.mark(id, state).await?;
        self.metrics.stands(id, kind, state);
        Ok(())
    }

    pub(crate) async fn stop(&self, id: &SandboxId, kind: BackendKind) -> Result<(), LetGoError> {
        let backend = self
            .backends
            .get(&kind)
            .ok_or(LetGoError::NoBackend(kind))?;
        let _at_work = self.ending.begin(id);
        // The row says what is going to happen before it does. Killed in between, the next start
        // finds it on its way out and brings that to its end.
        self.mark(id, kind, LedgerState::Stopping).await?;
        match backend.stop(id).await {
            Ok(()) => {
                self.mark(id, kind, LedgerState::Stopped).await?;
                tracing::info!(sandbox = %id, "sandbox stopped, files kept");
                Ok(())
            }
            Err(source) => {
                self.metrics.end_failed(kind);
                self.ledger.note_failure(id, &source.to_string()).await?;
                self.changed.notify_one();
                Err(LetGoError::Destroy {
                    id: id.clone(),
                    source,
                })
            }
        }
    }

    /// The row goes when the thing was seen to be gone, not before. Once asked for it is tried until then,
    /// whether that could be written down or not.
    pub(crate) async fn destroy(
        &self,
        id: &SandboxId,
        kind: BackendKind,
    ) -> Result<(), LetGoError> {
        let destroyed = self.try_destroy(id, kind).await;
        match &destroyed {
            Ok(()) => self.unfinished.seen(id),
            // The start that can open it again sees it out.
            Err(LetGoError::NoBackend(_)) => {}
            Err(_) => {
                self.unfinished.note(id, kind);
                self.changed.notify_one();
            }
        }
        destroyed
    }

    async fn try_destroy(&self, id: &SandboxId, kind: BackendKind) -> Result<(), LetGoError> {
        let backend = self
            .backends
            .get(&kind)
            .ok_or(LetGoError::NoBackend(kind))?;
        let _at_work = self.ending.begin(id);
        // Before the first file goes: half a sandbox must not be found by somebody as one that
        // runs.
        self.mark(id, kind, LedgerState::Destroying).await?;
        match backend.destroy(id).await {
            Ok(()) => {
                self.metrics.destroyed(kind);
                // Last of all. Where this fails the row stays, and the next try destroys something
                // that is gone, which every backend takes for done.
                self.ledger.forget(id).await?;
                self.metrics.gone(id);
                tracing::info!(sandbox = %id, "sandbox destroyed");
                Ok(())
            }
            Err(source) => {
                self.metrics.end_failed(kind);
                self.note_failed_end(id, &source.to_string()).await;
                Err(LetGoError::Destroy {
                    id: id.clone(),
                    source,
                })
            }
        }
    }

    /// What failed is told whether it can be written down or not.
    async fn note_failed_end(&self, id: &SandboxId, failure: &str) {
        if let Err(error) = self.ledger.note_failure(id, failure).await {
            tracing::error!(sandbox = %id, %error, failure, "a failure could not be written down");
        }
    }

    /// Gives a row up: destroyed now, or marked so that the reaper tries until it is gone.
    pub(crate) async fn write_off(&self, entry: &LedgerEntry) {
        if let Err(error) = self.destroy(&entry.id, entry.backend).await {
            tracing::warn!(sandbox = %entry.id, %error, "an old sandbox could not be removed yet");
        }
    }
}
