//! Where the clients' sandboxes are.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_audit::AuditLog;
use hermetic_egress::{Egress, EgressClient};
use hermetic_sandbox::{Backend, NetworkMode, Sandbox, SandboxSpec};
use hermetic_session::{
    DiskBounds, DiskGuard, DiskTenant, DiskTenants, EgressPort, PROXY_PORT, UnknownTenants,
};
use hermetic_tools::ToolKit;
use hermetic_types::{Boundary, Clock, ConversationKey, SandboxId, SharedClock, Timestamp};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What all clients share. Clones share it too.
#[derive(Clone, Debug)]
pub struct ClientSandboxes(Arc<ClientSandboxesState>);

#[derive(Debug)]
struct ClientSandboxesState {
    kit: ToolKit,
    backend: Arc<dyn Backend>,
    spec: SandboxSpec,
    /// The sandboxes' way out, if they have one.
    egress: Option<Arc<Egress>>,
    audit: AuditLog,
    bounds: ClientLimits,
    clock: SharedClock,
    taken: AtomicUsize,
    next: AtomicUsize,
    /// Keeps room for the store on the disk that sandboxes share with it.
    disk: DiskGuard,
    /// The sandboxes there are, for whoever counts what they have on the disk.
    living: Mutex<HashMap<SandboxId, ConversationKey>>,
    /// Sandboxes being made and being taken down: neither is cut in the middle.
    works: TaskTracker,
    /// Cuts every way out.
    stop: CancellationToken,
}

#[derive(Clone, Debug)]
pub struct ClientLimits {
    /// Sandboxes at once.
    pub most: usize,
    /// How long a question at a client waits for its answer.
    pub patience: Duration,
    /// What sandboxes leave of the disk on which the store is.
    pub disk: DiskBounds,
}

impl ClientSandboxes {
    /// Every sandbox is made from `spec`, under a name of its own.
    pub fn new(
        kit: ToolKit,
        backend: Arc<dyn Backend>,
        spec: SandboxSpec,
        egress: Option<Arc<Egress>>,
        audit: AuditLog,
        bounds: ClientLimits,
        clock: SharedClock,
    ) -> Self {
        Self(Arc::new(ClientSandboxesState {
            kit,
            backend,
            spec,
            egress,
            audit,
            disk: DiskGuard::new(bounds.disk.clone()),
            bounds,
            clock,
            taken: AtomicUsize::new(0),
            next: AtomicUsize::new(1),
            living: Mutex::default(),
            works: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// Looks after the disk until [`close`](Self::close).
    pub(crate) fn guard_disk(&self) {
        let (sandboxes, stop) = (self.clone(), self.0.stop.clone());
        self.0
            .works
            .spawn(async move { sandboxes.0.disk.watch(&sandboxes, stop).await });
    }

    pub(crate) fn disk(&self) -> &DiskGuard {
        &self.0.disk
    }

    /// Counts what this one has on the disk from now on.
    pub(crate) fn note_living(&self, id: &SandboxId, conversation: &ConversationKey) {
        self.living().insert(id.clone(), conversation.clone());
    }

    pub(crate) fn note_gone(&self, id: &SandboxId) {
        self.living().remove(id);
    }

    fn living(&self) -> MutexGuard<'_, HashMap<SandboxId, ConversationKey>> {
        self.0.living.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when every sandbox is gone. No client may be there any more.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.works.close();
        self.0.works.wait().await;
    }

    pub(crate) fn kit(&self) -> &ToolKit {
        &self.0.kit
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.0.clock.as_ref()
    }

    pub(crate) fn works(&self) -> &TaskTracker {
        &self.0.works
    }

    pub(crate) fn next_client(&self) -> ConversationKey {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        ConversationKey::new(format!("mcp:{}:{number}", std::process::id()))
    }

    pub(crate) fn spec(&self, conversation: &ConversationKey) -> SandboxSpec {
        let mut spec = SandboxSpec {
            conversation: conversation.clone(),
            id: SandboxId::random(),
            ..self.0.spec.clone()
        };
        if let Some(egress) = &self.0.egress {
            spec.network = NetworkMode::Proxied { port: PROXY_PORT };
            spec.env.extend(egress.env(conversation, PROXY_PORT));
        }
        spec
    }

    /// Opens a sandbox's way out.
    pub(crate) async fn egress_port(
        &self,
        sandbox: &Sandbox,
        conversation: &ConversationKey,
    ) -> Option<EgressPort> {
        let ClientSandboxesState {
            egress,
            works,
            stop,
            ..
        } = &*self.0;
        let egress = egress.as_ref()?;
        Some(EgressPort::open(sandbox, conversation, egress, None, PROXY_PORT, works, stop).await)
    }

    /// The way out of tools beside the sandbox.
    pub(crate) fn egress_client(&self, conversation: &ConversationKey) -> Option<EgressClient> {
        let egress = self.0.egress.as_ref()?;
        Some(EgressClient::new(Arc::clone(egress), conversation))
    }

    pub(crate) fn audit(&self) -> &AuditLog {
        &self.0.audit
    }

    pub(crate) fn patience(&self) -> Duration {
        self.0.bounds.patience
    }

    /// What a client is told of the network.
    pub(crate) fn reach(&self) -> &'static str {
        match (self.0.backend.description().boundary, &self.0.egress) {
            (Boundary::Judged, _) => "Its network is that of the machine it is on.",
            (Boundary::Sealed, Some(_)) => {
                "It reaches what the operator allows, by the proxy that its environment names."
            }
            (Boundary::Sealed, None) => "It has no network but its own loopback.",
        }
    }

    /// Whether commands reach anything but the sandbox they run in.
    pub(crate) fn reaches_out(&self) -> bool {
        self.0.egress.is_some() || self.0.backend.description().boundary == Boundary::Judged
    }

    /// Says whether there is room for one more.
    pub(crate) fn take_place(&self) -> bool {
        let more = |taken: usize| (taken < self.0.bounds.most).then_some(taken + 1);
        let taken = &self.0.taken;
        taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .is_ok()
    }

    pub(crate) fn give_place_back(&self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

impl DiskTenants for ClientSandboxes {
    fn tenants(&self) -> BoxFuture<'_, Result<Vec<DiskTenant>, UnknownTenants>> {
        let backend = self.0.backend.kind();
        let living = self.living();
        let tenants = living.iter().map(|(id, conversation)| DiskTenant {
            id: id.clone(),
            conversation: conversation.clone(),
            backend,
            is_running: true,
        });
        future::ready(Ok(tenants.collect())).boxed()
    }

    fn disk_use<'a>(
        &'a self,
        tenants: &'a [DiskTenant],
        folder: &'a Path,
    ) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        async move {
            let ids: Vec<_> = tenants.iter().map(|tenant| tenant.id.clone()).collect();
            self.0.backend.disk_use_on(&ids, folder).await
        }
        .boxed()
    }

    /// Destroyed and not only stopped: nobody keeps the files of a client, so they would only lie there until
    /// it goes.
    fn stop<'a>(&'a self, tenant: &'a DiskTenant) -> BoxFuture<'a, ()> {
        async move {
            if let Err(error) = self.0.backend.destroy(&tenant.id).await {
                tracing::warn!(sandbox = %tenant.id, %error, "a sandbox that fills the disk was not ended");
            }
        }
        .boxed()
    }

    fn now(&self) -> Timestamp {
        self.0.clock.now()
    }
}
