//! A configuration in, a gateway out.
//!
//! This is the one place that knows every part: which backends, platforms and model dialects exist, and
//! which settings each of them gets. It prints nothing and picks no exit code; whoever calls it does. The
//! binary is one caller, a test that holds a gateway in its hands is the other.

#![forbid(unsafe_code)]

mod access;
mod agents;
mod approvals;
mod bounds;
mod dashboard;
mod dashboard_front;
mod daytona;
mod description;
mod docker;
mod egress;
mod facts;
mod failure;
mod gateway;
mod installation;
mod installed_agents;
mod keyboard;
mod kit;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod mcp_servers;
mod memory;
mod modal;
mod model;
mod platforms;
mod process_metrics;
mod redactor;
mod refusals;
mod schedules;
mod serving;
mod singularity;
mod ssh;
mod store_place;
mod surroundings;
mod telemetry;
mod terminal;
mod terminal_opener;
mod toolsets;
mod web;

use std::collections::BTreeMap;
use std::env;
use std::fs::{File, TryLockError};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermetic_audit::{AuditLog, AuditPaths};
use hermetic_config::{Config, HomeFolder};
use hermetic_egress::Egress;
use hermetic_local::LocalBackend;
use hermetic_native::{EarlyStart, NativeBackend, RequiredLayer};
use hermetic_redact::Redactor;
use hermetic_sandbox::{
    Backend, HostMount, MountMode, NetworkMode, SandboxLifeline, SandboxPersistence, SandboxSpec,
    SystemView, risk_of_showing,
};
use hermetic_session::{PROXY_PORT, SandboxPlan, Sandboxes, SpendingBook};
use hermetic_store::Store;
use hermetic_tools::{McpServers, NoWayBack, ToolKit};
use hermetic_types::{
    BackendKind, Boundary, ConversationKey, GatewayId, InstallationId, SandboxId, SharedClock,
    SystemClock,
};

pub use access::{named_on, names_operators, pairing};
pub use approvals::approvals;
pub use bounds::{SandboxBounds, machine_memory};
pub use dashboard_front::dashboard_front;
pub use description::{boundary, description};
pub use egress::{gate, gate_for, journal, rule_book, rules_text};
pub use failure::AppFailure;
pub use gateway::gateway;
#[cfg(feature = "kubernetes")]
pub use hermetic_kubernetes::{ManifestOptions, manifest as kubernetes_manifest};
pub use hermetic_native::PendingHeadStart;
pub use installation::{installation, known_installation};
pub use installed_agents::{agent_folder, agent_programs};
pub use keyboard::{KeyboardChat, KeyboardMemories, KeyboardPerson, keyboard_chat};
pub use mcp_servers::login_file;
pub use memory::{memories, owner_rule, skills};
pub use model::{
    CatalogEntry, CheckFailure, CheckedModel, ConfiguredModel, ModelCatalog, ModelRole,
    configured_models, known_providers,
};
#[cfg(feature = "matrix")]
pub use platforms::{MatrixDevice, matrix_devices};
pub use platforms::{PlatformSetup, SetupValue, check_accounts, setups, speaks};
pub use redactor::redactor;
pub use refusals::{notices, refusals};
pub use schedules::schedules;
pub use serving::sharing_gateways;
pub use store_place::StorePlace;
pub use surroundings::Surroundings;
pub use terminal::{context, policy};

/// Where the workspace is inside every sealed sandbox.
const WORKSPACE: &str = "/workspace";

/// A sandbox that lost its creator ends itself after this.
const ALONE: Duration = Duration::from_secs(60);

/// What a command on the host cannot do without; nothing else of ours reaches it.
const LOGIN_VARIABLES: [&str; 6] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "SHELL"];

/// Names who a backend is opened for.
#[derive(Clone, Copy, Debug)]
pub enum BackendCaller {
    /// A person at a keyboard, who gets what he wrote, with a warning, and is shown how far an image is.
    CommandLine(ShowProgress),
    Chats,
    /// One that lists and looks, and creates nothing that lasts.
    Onlooker,
}

/// Shows one line about long work; `true` when it is done.
pub type ShowProgress = fn(&str, bool);

impl BackendCaller {
    /// Says a line about long work where this caller looks. On a terminal one line that changes; elsewhere
    /// a line at the end.
    fn report(self, line: &str, done: bool) {
        match self {
            Self::Onlooker => {}
            Self::Chats => tracing::info!("{line}"),
            Self::CommandLine(show) => {
                if done || io::stderr().is_terminal() {
                    show(line, done);
                }
            }
        }
    }
}

/// Opens one backend, or says why it cannot be.
pub fn backend(
    config: &Config,
    installation: &InstallationId,
    kind: BackendKind,
    caller: BackendCaller,
) -> Result<Arc<dyn Backend>, AppFailure> {
    timed_backend(config, installation, kind, caller, &SystemClock::shared())
}

/// The same by the clock of whoever builds on it.
fn timed_backend(
    config: &Config,
    installation: &InstallationId,
    kind: BackendKind,
    caller: BackendCaller,
    clock: &SharedClock,
) -> Result<Arc<dyn Backend>, AppFailure> {
    match kind {
        BackendKind::Native => native(config, installation, early_start(caller), clock),
        BackendKind::Daytona => daytona::daytona(config, installation, caller),
        BackendKind::Docker => docker::docker(config, installation, caller, clock),
        BackendKind::Local => local(config),
        BackendKind::Ssh => ssh::ssh(config, installation),
        BackendKind::Singularity => singularity::singularity(config, installation, caller),
        BackendKind::Modal => modal::modal(config, installation, caller, clock),
        #[cfg(feature = "kubernetes")]
        BackendKind::Kubernetes => kubernetes::kubernetes(config, installation, caller),
        #[cfg(not(feature = "kubernetes"))]
        BackendKind::Kubernetes => Err(without_kubernetes()),
    }
}

#[cfg(not(feature = "kubernetes"))]
fn without_kubernetes() -> AppFailure {
    AppFailure::new(
        "this program was built without the kubernetes backend",
        "use one that has it: cargo build --features kubernetes",
    )
}

/// Begins to open the native backend of a home whose configuration is not read yet, for one who will create a
/// sandbox with it at once if that is the backend.
pub fn begin_native(home: &HomeFolder) -> PendingHeadStart {
    match known_installation(home) {
        Some(installation) => {
            PendingHeadStart::begin(&home.state(), &installation, hermetic_embedded::WARDEN)
        }
        None => PendingHeadStart::none(),
    }
}

/// Opens one backend for one who creates a sandbox with it at once.
pub fn backend_to_create(
    config: &Config,
    installation: &InstallationId,
    kind: BackendKind,
    caller: BackendCaller,
    begun: PendingHeadStart,
) -> Result<Arc<dyn Backend>, AppFailure> {
    match kind {
        BackendKind::Native => {
            let settings = native_config(config, installation, &SystemClock::shared())?;
            Ok(Arc::new(NativeBackend::open_begun(settings, begun)?))
        }
        _ => backend(config, installation, kind, caller),
    }
}

/// A gateway goes on creating sandboxes; others may create none.
fn early_start(caller: BackendCaller) -> EarlyStart {
    match caller {
        BackendCaller::Chats => EarlyStart::Always,
        BackendCaller::CommandLine(_) | BackendCaller::Onlooker => EarlyStart::Never,
    }
}

/// The chosen backend, and every other one that can be opened here: an earlier configuration may
/// have left sandboxes with it.
fn backends(
    config: &Config,
    installation: &InstallationId,
    chosen: BackendKind,
    caller: BackendCaller,
    clock: &SharedClock,
) -> Result<Vec<Arc<dyn Backend>>, AppFailure> {
    let open = |kind, caller| timed_backend(config, installation, kind, caller, clock);
    // Only the chosen one must open. Of the others nothing is needed but to clean up, and a Docker
    // that is not installed must keep nobody from starting.
    let mut backends = vec![open(chosen, caller)?];
    backends.extend(
        BackendKind::ALL
            .into_iter()
            .filter(|kind| *kind != chosen)
            .filter_map(|kind| open(kind, BackendCaller::Onlooker).ok()),
    );
    Ok(backends)
}

/// Every backend that can be opened here, for commands that look at all of them.
pub fn all_backends(config: &Config, installation: &InstallationId) -> Vec<Arc<dyn Backend>> {
    BackendKind::ALL
        .into_iter()
        .filter_map(|kind| backend(config, installation, kind, BackendCaller::Onlooker).ok())
        .collect()
}

/// The tools for clients whose sandboxes end with them.
pub fn clients_kit(config: &Config, kind: BackendKind, redactor: &Redactor) -> ToolKit {
    let clock = SystemClock::shared();
    let background = kit::background(config, redactor, None, Arc::new(NoWayBack), &clock);
    kit::kit(
        config,
        kind,
        redactor,
        background,
        McpServers::none(),
        None,
        &clock,
    )
}

/// The same, with the configured MCP servers, for whoever tries those.
pub fn servers_kit(config: &Config, kind: BackendKind, redactor: &Redactor) -> ToolKit {
    ToolKit {
        mcp: kit::mcp(config, kind, redactor, None, &SystemClock::shared()),
        ..clients_kit(config, kind, redactor)
    }
}

/// The store of this home, for a command beside the gateway.
///
/// A gateway of an earlier version that still runs could not read what a newer one writes, and would go
/// deaf: its store is brought up to date when it is restarted, and not by a command before that.
pub async fn store(config: &Config) -> Result<Store, AppFailure> {
    let place = StorePlace::of(config)?;
    let StorePlace::File(path) = &place else {
        // A program of the step before goes on beside one of this: see 0181.
        return open_store(place, SystemClock::shared()).await;
    };
    if is_gateway_running(config.home()) && Store::is_of_earlier_version(path).await {
        return Err(AppFailure::new(
            "the gateway that runs here is of an earlier version, and this command would change its \
             store under it",
            "restart it first: hermetic gateway restart",
        ));
    }
    open_store(place, SystemClock::shared()).await
}

/// A gateway holds its lock for as long as it lives; a shared one is tried, so that two who look at once do
/// not take each other for it.
fn is_gateway_running(home: &HomeFolder) -> bool {
    // Opened to read and never made: a look must not leave a file in a home in which no gateway
    // ever ran.
    let lock = File::open(home.state().join("gateway.lock"));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

async fn open_store(place: StorePlace, clock: SharedClock) -> Result<Store, AppFailure> {
    let opened = match &place {
        StorePlace::File(path) => Store::open(path, clock).await,
        StorePlace::Postgres(address) => {
            Store::open_postgres(address, GatewayId::sole(), clock).await
        }
    };
    opened.map_err(|error| AppFailure::caused(&error, error.remedy()))
}

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

/// Where the record of this home is, its key, and the note of where it ends.
pub fn audit_places(config: &Config) -> AuditPaths {
    let security = config.security();
    AuditPaths::beside(&config.home().state().join("audit.jsonl"))
        .with_key(security.audit_key_file.clone())
        .with_head(security.audit_head_file.clone())
}

/// The record of this home, to be added to. Its folder is there.
pub fn audit(config: &Config) -> Result<AuditLog, AppFailure> {
    Ok(AuditLog::open_at(audit_places(config))?)
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
fn image(config: &Config, backend: BackendKind, caller: BackendCaller) -> Option<String> {
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

fn native(
    config: &Config,
    installation: &InstallationId,
    early: EarlyStart,
    clock: &SharedClock,
) -> Result<Arc<dyn Backend>, AppFailure> {
    let settings = native_config(config, installation, clock)?;
    Ok(Arc::new(NativeBackend::open_starting(settings, early)?))
}

fn native_config(
    config: &Config,
    installation: &InstallationId,
    clock: &SharedClock,
) -> Result<hermetic_native::NativeConfig, AppFailure> {
    let require = native_settings(config)?;
    Ok(hermetic_native::NativeConfig {
        state: config.home().state(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        require,
        authority: egress::authority(config, clock)?.map(|ours| ours.certificate().to_owned()),
        total: hermetic_native::TotalLimits {
            memory_bytes: config.terminal().native.total_memory_bytes,
            processes: config.terminal().native.total_processes,
        },
    })
}

/// The layers that must hold, if what is written about native sandboxes can be taken.
fn native_settings(config: &Config) -> Result<Vec<RequiredLayer>, AppFailure> {
    let native = &config.terminal().native;
    for mount in &native.mounts {
        let accepted = native.accept_risks.contains(&mount.source);
        // A link may lead where nobody looked.
        let real = mount.source.canonicalize().ok();
        let risk = [Some(&mount.source), real.as_ref()]
            .into_iter()
            .flatten()
            .find_map(|source| risk_of_showing(source, mount.writable));
        if let Some(why) = risk.filter(|_| !accepted) {
            let source = mount.source.display();
            return Err(AppFailure::new(
                format!("terminal.native_mounts: {source} is not shown inside: {why}"),
                format!(
                    "take it out; to take the risk, add {source} to terminal.native_accept_risks"
                ),
            ));
        }
    }
    native.require.iter().map(|name| demand(name)).collect()
}

fn demand(name: &str) -> Result<RequiredLayer, AppFailure> {
    RequiredLayer::ALL
        .into_iter()
        .find(|demand| demand.name() == name)
        .ok_or_else(|| {
            let known: Vec<_> = RequiredLayer::ALL
                .iter()
                .map(|demand| demand.name())
                .collect();
            AppFailure::new(
                format!("terminal.native_require names no known layer: {name:?}"),
                format!("known: {}", known.join(", ")),
            )
        })
}

fn local(config: &Config) -> Result<Arc<dyn Backend>, AppFailure> {
    let env = LOGIN_VARIABLES
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), env::var(name).ok()?)))
        .collect();
    let workdir = match &config.terminal().cwd {
        Some(cwd) => PathBuf::from(cwd),
        None => env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
    };
    let local = LocalBackend::open(hermetic_local::LocalConfig {
        open_files: hermetic_listen::descriptors::ordinary(),
        state: config.home().state(),
        program: hermetic_embedded::WARDEN,
        workdir,
        env,
    })?;
    Ok(Arc::new(local))
}
