//! What every sandbox of this gateway is like.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hermetic_sandbox::{
    HostMount, NetworkMode, SandboxLifeline, SandboxPersistence, SandboxSpec, SystemView,
};
use hermetic_types::{BackendKind, ConversationKey, InstallationId, SandboxId, SandboxLimits};

/// Folders of the host that new sandboxes are shown besides those of their plan.
///
/// Asked each time one is made, so that what is installed while a gateway runs is there in the next. It looks at
/// files at most, and answers at once.
pub trait InstalledMounts: Send + Sync + fmt::Debug {
    fn mounts(&self, backend: BackendKind) -> Vec<HostMount>;
}

#[derive(Clone, Debug)]
pub struct SandboxPlan {
    pub backend: BackendKind,
    pub system: SystemView,
    pub limits: SandboxLimits,
    pub mounts: Vec<HostMount>,
    pub env: BTreeMap<String, String>,
    pub network: NetworkMode,
    pub persistence: SandboxPersistence,
    /// Idle time after which a sandbox is let go.
    pub lifetime: Duration,
    /// How many may live at once.
    pub max_sandboxes: usize,
    /// How many of them may be one person's.
    pub max_sandboxes_per_user: usize,
    /// How many wait, ready, for conversations that are still to come.
    pub pool: usize,
}

/// How much longer than its idle lifetime a sandbox outlives a gateway that never comes back.
const ORPHAN_FACTOR: u32 = 2;

impl SandboxPlan {
    pub(crate) fn spec(
        &self,
        installation: &InstallationId,
        conversation: &ConversationKey,
    ) -> SandboxSpec {
        SandboxSpec {
            installation: installation.clone(),
            conversation: conversation.clone(),
            id: SandboxId::random(),
            system: self.system.clone(),
            limits: self.limits.clone(),
            mounts: self.mounts.clone(),
            env: self.env.clone(),
            network: self.network.clone(),
            persistence: self.persistence,
            lifeline: SandboxLifeline::Ledger,
            lifetime: self.lifetime.saturating_mul(ORPHAN_FACTOR),
        }
    }
}
