//! The singularity backend, from the configuration.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermetic_config::Config;
use hermetic_sandbox::Backend;
use hermetic_singularity::{ApptainerRuntime, BuildListener, BuildProgress, SingularityBackend};
use hermetic_types::{BackendKind, InstallationId};
use rustix::fs::{Access, access};

use super::BackendCaller;
use crate::AppFailure;

/// Where shared machines keep what is large and may be lost.
const SHARED_SCRATCH: &str = "/scratch";

pub(super) fn singularity(
    config: &Config,
    installation: &InstallationId,
    caller: BackendCaller,
) -> Result<Arc<dyn Backend>, AppFailure> {
    let image = super::sandbox_plan::image(config, BackendKind::Singularity, caller);
    let scratch = scratch(config, &|name| env::var(name).ok());
    let singularity = SingularityBackend::open(hermetic_singularity::SingularityConfig {
        state: config.home().state(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
        runtime: ApptainerRuntime::find(&|name| env::var_os(name)),
        image: image.unwrap_or_default(),
        scratch: scratch.join("hermetic-overlays"),
        cache: scratch.join("hermetic-images"),
        tell: tell(caller),
    })?;
    Ok(Arc::new(singularity))
}

/// What is written, else the machine's scratch disk, else the folder for sandboxes.
fn scratch(config: &Config, look: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let terminal = config.terminal();
    if let Some(written) = &terminal.scratch_dir {
        return written.clone();
    }
    if let Some(user) = look("USER").filter(|user| is_plain(user)) {
        let shared = Path::new(SHARED_SCRATCH).join(user);
        if access(&shared, Access::WRITE_OK).is_ok() {
            return shared.join("hermes-agent");
        }
    }
    let written = terminal.sandbox_dir.clone();
    written.unwrap_or_else(|| config.home().state().join("singularity"))
}

/// A name, and no way to another folder.
fn is_plain(user: &str) -> bool {
    !user.is_empty() && user != "." && user != ".." && !user.contains('/')
}

fn tell(caller: BackendCaller) -> BuildListener {
    BuildListener::new(move |progress| caller.report(&said(progress), progress.done))
}

fn said(progress: &BuildProgress) -> String {
    let image = &progress.image;
    if progress.done {
        return format!("built {image}");
    }
    format!("building {image}: {}", progress.said)
}
