//! Sandboxes made, brought back and met again.

use std::sync::Arc;

use hermetic_sandbox::{BackendError, NetworkMode, Sandbox, SandboxPersistence, SandboxSpec};
use hermetic_store::{LedgerEntry, LedgerState};
use hermetic_types::ConversationKey;
use tokio::time::Instant;

use crate::slot::SlotSandbox;
use crate::{LeaseError, Sandboxes};

impl Sandboxes {
    pub(crate) async fn create(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(SandboxSpec, Arc<Sandbox>), LeaseError> {
        // Those that wait are what most conversations need.
        if std::ptr::eq(self.plan_of(conversation), &*self.plan)
            && let Some(warm) = self.take_warm(conversation).await?
        {
            return Ok(warm);
        }
        self.make(conversation).await
    }

    pub(crate) async fn make(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(SandboxSpec, Arc<Sandbox>), LeaseError> {
        let backend = self.backend(self.plan_of(conversation).backend)?;
        let spec = self.spec(conversation);
        let text = serde_json::to_string(&spec)?;
        // Named before the backend hears of it, so that whatever a crash leaves behind can be found
        // and ended by its name.
        self.ledger
            .name(&spec.id, conversation, backend.kind(), &text, self.now())
            .await?;
        let kind = backend.kind();
        self.metrics.stands(&spec.id, kind, LedgerState::Creating);

        let begun = Instant::now();
        let made = async {
            let sandbox = Sandbox::create(backend.as_ref(), &spec).await?;
            Ok::<_, LeaseError>(Arc::new(sandbox.with_way_back(backend)))
        };
        match made.await {
            Ok(sandbox) => {
                self.metrics.created(backend.kind(), begun.elapsed());
                if let Err(error) = self.mark(&spec.id, kind, LedgerState::Running).await {
                    // Nobody would find it: its row says that it is still being made.
                    if let Err(rest) = self.destroy(&spec.id, backend.kind()).await {
                        tracing::warn!(sandbox = %spec.id, error = %rest, "one that could not be written down is still there");
                    }
                    return Err(error.into());
                }
                tracing::info!(
                    sandbox = %spec.id,
                    %conversation,
                    backend = %backend.kind(),
                    milliseconds = begun.elapsed().as_millis(),
                    "sandbox created"
                );
                Ok((spec, sandbox))
            }
            Err(error) => {
                self.metrics.failed(backend.kind());
                // A create that failed leaves nothing; if even that fails, the house is told.
                if let Err(rest) = self.destroy(&spec.id, backend.kind()).await {
                    tracing::warn!(sandbox = %spec.id, error = %rest, "a failed create left a rest");
                }
                Err(error)
            }
        }
    }

    pub(crate) fn spec(&self, conversation: &ConversationKey) -> SandboxSpec {
        let plan = self.plan_of(conversation);
        let mut spec = plan.spec(&self.installation, conversation);
        if let (NetworkMode::Proxied { port }, Some(egress)) = (&spec.network, &self.egress) {
            let mut env = egress.env(conversation, *port);
            // What the operator wrote counts more.
            env.extend(spec.env);
            spec.env = env;
        }
        spec
    }

    pub(crate) async fn bring_back(
        &self,
        entry: &LedgerEntry,
    ) -> Result<(SandboxSpec, Arc<Sandbox>), LeaseError> {
        let backend = self.backend(entry.backend)?;
        let spec: SandboxSpec = serde_json::from_str(&entry.spec)?;
        let link = match entry.state {
            LedgerState::Running => match backend.connect(&entry.id).await {
                // Its processes ended behind our back (an engine that was restarted, a limit); its
                // files are still somebody's work.
                Err(BackendError::NoSuchSandbox { .. })
                    if spec.persistence == SandboxPersistence::Kept =>
                {
                    backend.resume(&spec).await?
                }
                link => link?,
            },
            LedgerState::Stopping => {
                // Nobody saw how that ended.
                backend.stop(&entry.id).await?;
                backend.resume(&spec).await?
            }
            _ => backend.resume(&spec).await?,
        };
        let sandbox = match Sandbox::greet(&entry.id, backend.description(), link).await {
            // There, and not answering: what it ran is lost, its files are not.
            Err(error) if spec.persistence == SandboxPersistence::Kept => {
                tracing::warn!(sandbox = %entry.id, %error, "a sandbox is started anew");
                backend.stop(&entry.id).await?;
                let link = backend.resume(&spec).await?;
                Sandbox::greet(&entry.id, backend.description(), link).await?
            }
            greeted => greeted?,
        };
        if let Err(error) = self
            .mark(&entry.id, entry.backend, LedgerState::Running)
            .await
        {
            // Its row says that it is stopped, and so it is again: nobody would let it go when it is idle.
            if entry.state != LedgerState::Running
                && let Err(rest) = backend.stop(&entry.id).await
            {
                tracing::warn!(sandbox = %entry.id, error = %rest, "one that could not be written down still runs");
            }
            return Err(error.into());
        }
        if let Err(error) = self.ledger.touch(&entry.id, self.now()).await {
            tracing::warn!(sandbox = %entry.id, %error, "its last use could not be written down");
        }
        Ok((spec, Arc::new(sandbox.with_way_back(backend))))
    }

    /// The tenant's sandbox, over a new link if the old one is gone.
    pub(crate) async fn meet(&self, tenant: &mut SlotSandbox) -> Result<Arc<Sandbox>, LeaseError> {
        if let Some(sandbox) = &tenant.sandbox
            && sandbox.is_reachable()
        {
            return Ok(Arc::clone(sandbox));
        }
        let sandbox = self.reach(tenant).await?;
        // Held over the change: a new link is no new budget.
        // Closed before another is opened: both want the same port inside.
        let _held = match tenant.egress_port.take() {
            Some(old) => Some(old.close().await),
            None => None,
        };
        tenant.egress_port = self.open_egress_port(&tenant.spec, &sandbox).await;
        tenant.sandbox = Some(Arc::clone(&sandbox));
        Ok(sandbox)
    }

    async fn reach(&self, tenant: &SlotSandbox) -> Result<Arc<Sandbox>, LeaseError> {
        let backend = self.backend(tenant.backend)?;
        let id = &tenant.spec.id;
        let link = backend.connect(id).await?;
        let sandbox = Sandbox::greet(id, backend.description(), link).await?;
        Ok(Arc::new(sandbox.with_way_back(backend)))
    }
}
