//! Backends, opened as the configuration describes them.

mod local;
mod native;

use std::io::{self, IsTerminal};
use std::sync::Arc;

use hermetic_config::{Config, HomeFolder};
use hermetic_native::{EarlyStart, NativeBackend, PendingHeadStart};
use hermetic_sandbox::Backend;
use hermetic_types::{BackendKind, InstallationId, SharedClock, SystemClock};

use self::native::native_config;
pub(super) use self::native::native_settings;
#[cfg(feature = "kubernetes")]
use super::kubernetes;
use super::{AppFailure, daytona, docker, known_installation, modal, singularity, ssh};

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
    pub(super) fn report(self, line: &str, done: bool) {
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
pub(super) fn timed_backend(
    config: &Config,
    installation: &InstallationId,
    kind: BackendKind,
    caller: BackendCaller,
    clock: &SharedClock,
) -> Result<Arc<dyn Backend>, AppFailure> {
    match kind {
        BackendKind::Native => native::native(config, installation, early_start(caller), clock),
        BackendKind::Daytona => daytona::daytona(config, installation, caller),
        BackendKind::Docker => docker::docker(config, installation, caller, clock),
        BackendKind::Local => local::local(config),
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
pub(super) fn backends(
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
