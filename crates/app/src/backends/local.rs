//! The host itself as a backend.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use hermetic_config::Config;
use hermetic_local::LocalBackend;
use hermetic_sandbox::Backend;

use crate::AppFailure;

/// What a command on the host cannot do without; nothing else of ours reaches it.
const LOGIN_VARIABLES: [&str; 6] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "SHELL"];

pub(super) fn local(config: &Config) -> Result<Arc<dyn Backend>, AppFailure> {
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
