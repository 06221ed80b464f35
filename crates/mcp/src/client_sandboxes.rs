//! Where the clients' sandboxes are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hermetic_audit::AuditLog;
use hermetic_egress::{Egress, EgressClient};
use hermetic_sandbox::{Backend, NetworkMode, Sandbox, SandboxSpec};
use hermetic_session::{EgressPort, PROXY_PORT};
use hermetic_tools::ToolKit;
use hermetic_types::{Boundary, Clock, ConversationKey, SandboxId, SharedClock};
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
    /// Sandboxes being made and being taken down: neither is cut in the middle.
    works: TaskTracker,
    /// Cuts every way out.
    stop: CancellationToken,
}

#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// Sandboxes at once.
    pub most: usize,
    /// How long a question at a client waits for its answer.
    pub patience: Duration,
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
            bounds,
            clock,
            taken: AtomicUsize::new(0),
            next: AtomicUsize::new(1),
            works: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
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
