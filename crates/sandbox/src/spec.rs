//! What a sandbox is asked to be. Every tool gets its sandbox from one `SandboxSpec`, so hardening cannot
//! depend on which tool ran first.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hermetic_types::{ConversationKey, InstallationId, SandboxId, SandboxLimits};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxSpec {
    pub installation: InstallationId,
    pub conversation: ConversationKey,
    pub id: SandboxId,
    pub system: SystemView,
    pub limits: SandboxLimits,
    pub mounts: Vec<HostMount>,
    /// The whole environment of every command: nothing of the launcher's is inherited.
    pub env: BTreeMap<String, String>,
    pub network: NetworkMode,
    pub persistence: SandboxPersistence,
    pub lifeline: SandboxLifeline,
    /// How long it lives with nobody connected and nothing asked of it. The warden keeps this bound
    /// itself, so that a gateway which never comes back leaves nothing running.
    pub lifetime: Duration,
}

/// What the sandbox sees as its system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SystemView {
    /// The host's own system folders, read-only.
    Host,
    /// A root file system folder on the host, read-only.
    Rootfs(PathBuf),
    /// An image the backend knows by this name.
    Image(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMount {
    pub source: PathBuf,
    pub target: PathBuf,
    pub mode: MountMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MountMode {
    ReadOnly,
    ReadWrite,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkMode {
    /// Loopback and nothing else.
    Closed,
    /// Loopback, and a proxy port on it whose connections the warden relays to the gateway.
    Proxied { port: u16 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxPersistence {
    /// Files go when the sandbox goes.
    Ephemeral,
    /// Files are kept when the sandbox is stopped and are there again when it resumes.
    Kept,
}

/// Whose death takes the sandbox along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxLifeline {
    /// The process that created it: `hermetic exec` leaves nothing when it is killed.
    Creator,
    /// Nobody's: the ledger accounts for it and the next start adopts it.
    Ledger,
}
