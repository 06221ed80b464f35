//! Sandboxes made, brought back and met again.

use std::sync::Arc;

use hermetic_sandbox::{
    Backend, BackendError, NetworkMode, Sandbox, SandboxPersistence, SandboxSpec, WardenLink,
};
use hermetic_store::{LedgerEntry, LedgerState};
use hermetic_types::ConversationKey;
use tokio::time::Instant;

use crate::slot::{SandboxHolder, SlotSandbox};
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
            self.tell_epoch(conversation, &sandbox).await?;
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
                // A create that failed leaves nothing; if even that fails, the reaper is told.
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
        if let Some(installed) = &self.installed {
            spec.mounts.extend(installed.mounts(plan.backend));
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
        let sandbox = greet_or_resume(backend, &spec, link).await?;
        // Before its row says anything: one that somebody else has is not ours to write about.
        if let Err(error) = self.tell_epoch(&entry.conversation, &sandbox).await {
            if entry.state != LedgerState::Running
                && !error.spares_the_sandbox()
                && let Err(rest) = backend.stop(&entry.id).await
            {
                tracing::warn!(sandbox = %entry.id, error = %rest, "one that did not come back still runs");
            }
            return Err(error);
        }
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

    /// The tenant's sandbox for whoever uses it now, over a new link if the old one is gone.
    pub(crate) async fn meet(
        &self,
        tenant: &mut SlotSandbox,
        holder: Option<&SandboxHolder>,
    ) -> Result<Arc<Sandbox>, LeaseError> {
        let sandbox = self.linked(tenant).await?;
        tenant.leaves_for(holder);
        Ok(sandbox)
    }

    async fn linked(&self, tenant: &mut SlotSandbox) -> Result<Arc<Sandbox>, LeaseError> {
        let conversation = &tenant.spec.conversation;
        let at_hand = tenant.sandbox.as_ref();
        if let Some(sandbox) = self.still_held(conversation, at_hand).await? {
            return Ok(sandbox);
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
        self.tell_epoch(&tenant.spec.conversation, &sandbox).await?;
        Ok(Arc::new(sandbox.with_way_back(backend)))
    }
}

/// The sandbox at the end of a link. One that is there and does not answer is started anew where its files are kept:
/// what it ran is lost, they are not.
async fn greet_or_resume(
    backend: &Arc<dyn Backend>,
    spec: &SandboxSpec,
    link: WardenLink,
) -> Result<Sandbox, LeaseError> {
    match Sandbox::greet(&spec.id, backend.description(), link).await {
        Err(error) if spec.persistence == SandboxPersistence::Kept => {
            tracing::warn!(sandbox = %spec.id, %error, "a sandbox is started anew");
            backend.stop(&spec.id).await?;
            let link = backend.resume(spec).await?;
            Ok(Sandbox::greet(&spec.id, backend.description(), link).await?)
        }
        greeted => Ok(greeted?),
    }
}
