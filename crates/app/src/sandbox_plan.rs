//! What sandboxes of a home are like, from the configuration.

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;
use std::time::Duration;

use hermetic_config::Config;
use hermetic_egress::Egress;
use hermetic_sandbox::{
    HostMount, MountMode, NetworkMode, SandboxLifeline, SandboxPersistence, SandboxSpec, SystemView,
};
use hermetic_session::{DiskBounds, PROXY_PORT, SandboxPlan, Sandboxes, SpendingBook};
use hermetic_types::{
    BackendKind, Boundary, ConversationKey, InstallationId, SandboxId, SystemClock,
};

use super::backends::backends;
use super::{AppFailure, BackendCaller, SandboxBounds, boundary, docker, store};

/// Where the workspace is inside every sealed sandbox.
const WORKSPACE: &str = "/workspace";

/// A sandbox that lost its creator ends itself after this.
const ALONE: Duration = Duration::from_secs(60);

pub async fn sandboxes(
    config: &Config,
    installation: InstallationId,
    plan: SandboxPlan,
    caller: BackendCaller,
    gate: Option<Arc<Egress>>,
) -> Result<Sandboxes, AppFailure> {
    let clock = SystemClock::shared();
    let backends = backends(config, &installation, plan.backend, caller, &clock)?;
    let store = store(config).await?;
    super::refuse_beside_shared_work(config, &store).await?;
    let sandboxes = Sandboxes::new(plan, installation, backends, store.ledger(), clock);
    Ok(match gate {
        Some(gate) => sandboxes.with_egress(gate, SpendingBook::in_store(store.documents())),
        None => sandboxes,
    })
}

/// Whether somebody wrote that sandboxes of this kind have no way out at all.
pub fn is_closed(config: &Config, backend: BackendKind) -> bool {
    backend == BackendKind::Docker && docker::is_closed(config)
}

/// Sealed sandboxes have a proxy port where there is a gate. Elsewhere the network is the machine's.
pub fn network(config: &Config, backend: BackendKind, gate: Option<&Arc<Egress>>) -> NetworkMode {
    match (boundary(backend), gate) {
        _ if is_closed(config, backend) => NetworkMode::Closed,
        (Boundary::Sealed, Some(_)) => NetworkMode::Proxied { port: PROXY_PORT },
        _ => NetworkMode::Closed,
    }
}

/// What sandboxes leave of the disk on which the store of this home is.
pub fn disk_bounds(config: &Config) -> DiskBounds {
    DiskBounds {
        folder: config.home().state(),
        reserve_bytes: config.gateway().disk_reserve_bytes,
        most_bytes: config.gateway().sandboxes_disk_bytes,
    }
}

/// What every sandbox of this home is like, on the given backend.
pub fn plan(
    config: &Config,
    backend: BackendKind,
    lifetime: Duration,
    caller: BackendCaller,
) -> SandboxPlan {
    let terminal = config.terminal();
    let bounds = SandboxBounds::of(config);
    SandboxPlan {
        backend,
        system: system(config, backend, caller),
        limits: terminal.limits.clone(),
        mounts: mounts(config, backend),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: if terminal.persistent {
            SandboxPersistence::Kept
        } else {
            SandboxPersistence::Ephemeral
        },
        lifetime,
        max_sandboxes: bounds.max_sandboxes,
        max_sandboxes_per_user: bounds.max_sandboxes_per_user,
        pool: match caller {
            BackendCaller::Chats => config.gateway().sandbox_pool,
            BackendCaller::CommandLine(_) | BackendCaller::Onlooker => 0,
        },
    }
}

/// A sandbox for one passing use: it has no network, keeps nothing and ends with its creator.
pub fn passing(
    config: &Config,
    backend: BackendKind,
    installation: InstallationId,
    conversation: &str,
) -> SandboxSpec {
    SandboxSpec {
        installation,
        conversation: ConversationKey::new(conversation),
        id: SandboxId::random(),
        system: system_with(
            config,
            backend,
            hermetic_config::terminal_image(config, backend),
        ),
        limits: config.terminal().limits.clone(),
        mounts: mounts(config, backend),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Ephemeral,
        lifeline: SandboxLifeline::Creator,
        lifetime: ALONE,
    }
}

/// The current folder as the workspace, writable.
pub fn this_folder() -> Result<HostMount, AppFailure> {
    let here = env::current_dir()
        .map_err(|error| AppFailure::caused(&error, "go to a folder that exists"))?;
    Ok(HostMount {
        source: here,
        target: WORKSPACE.into(),
        mode: MountMode::ReadWrite,
    })
}

/// The system that a sandbox of this caller sees.
pub fn system(config: &Config, backend: BackendKind, caller: BackendCaller) -> SystemView {
    system_with(config, backend, image(config, backend, caller))
}

/// Nothing for a backend that has no images.
pub(super) fn image(
    config: &Config,
    backend: BackendKind,
    caller: BackendCaller,
) -> Option<String> {
    match caller {
        BackendCaller::CommandLine(_) => hermetic_config::terminal_image(config, backend),
        BackendCaller::Chats | BackendCaller::Onlooker => hermetic_config::image(config, backend),
    }
}

fn system_with(config: &Config, backend: BackendKind, image: Option<String>) -> SystemView {
    let rootfs = config.terminal().native.rootfs.clone();
    match (image, backend) {
        (Some(image), _) => SystemView::Image(image),
        (None, BackendKind::Native) => rootfs.map_or(SystemView::Host, SystemView::Rootfs),
        (None, _) => SystemView::Host,
    }
}

/// Mounts of the native backend; others have settings of their own.
pub fn mounts(config: &Config, backend: BackendKind) -> Vec<HostMount> {
    let mounts = config.terminal().native.mounts.iter();
    mounts
        .filter(|_| backend == BackendKind::Native)
        .map(|mount| HostMount {
            source: mount.source.clone(),
            target: mount.target.clone(),
            mode: if mount.writable {
                MountMode::ReadWrite
            } else {
                MountMode::ReadOnly
            },
        })
        .collect()
}
