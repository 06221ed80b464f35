//! What every sandbox of this gateway is like.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_sandbox::{Lifeline, Mount, Network, Persistence, Spec, SystemView};
use hermetic_types::{BackendKind, ConversationKey, InstallationId, Limits, SandboxId};

#[derive(Clone, Debug)]
pub struct Plan {
    pub backend: BackendKind,
    pub system: SystemView,
    pub limits: Limits,
    pub mounts: Vec<Mount>,
    pub env: BTreeMap<String, String>,
    pub network: Network,
    pub persistence: Persistence,
    /// Idle time after which a sandbox is let go.
    pub lifetime: Duration,
    /// How many may live at once.
    pub most: usize,
    /// How many of them may be one person's.
    pub most_each: usize,
    /// How many wait, ready, for conversations that are still to come.
    pub pool: usize,
}

/// How much longer than its idle lifetime a sandbox outlives a gateway that never comes back.
const ORPHAN_FACTOR: u32 = 2;

impl Plan {
    pub(crate) fn spec(
        &self,
        installation: &InstallationId,
        conversation: &ConversationKey,
    ) -> Spec {
        Spec {
            installation: installation.clone(),
            conversation: conversation.clone(),
            id: SandboxId::random(),
            system: self.system.clone(),
            limits: self.limits.clone(),
            mounts: self.mounts.clone(),
            env: self.env.clone(),
            network: self.network.clone(),
            persistence: self.persistence,
            lifeline: Lifeline::Ledger,
            lifetime: self.lifetime.saturating_mul(ORPHAN_FACTOR),
        }
    }
}
