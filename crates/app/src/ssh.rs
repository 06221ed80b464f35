//! The remote host, from the configuration.

use std::sync::Arc;

use hermetic_config::Config;
use hermetic_sandbox::Backend;
use hermetic_ssh::SshBackend;
use hermetic_types::InstallationId;

use crate::AppFailure;

pub(crate) fn ssh(
    config: &Config,
    installation: &InstallationId,
) -> Result<Arc<dyn Backend>, AppFailure> {
    let terminal = config.terminal();
    let host = terminal.ssh.host.clone().ok_or_else(|| {
        AppFailure::new(
            "no remote host is written",
            "write terminal.ssh_host and terminal.ssh_user",
        )
    })?;
    Ok(Arc::new(SshBackend::new(hermetic_ssh::SshConfig {
        host,
        user: terminal.ssh.user.clone(),
        port: terminal.ssh.port,
        key: terminal.ssh.key.clone(),
        config_file: terminal.ssh.config_file.clone(),
        workdir: terminal.cwd.clone(),
        installation: installation.clone(),
        program: hermetic_embedded::WARDEN,
    })))
}

/// Where the remote account's files are, as far as one can tell from here.
pub(crate) fn home(config: &Config) -> String {
    match config.terminal().ssh.user.as_deref() {
        None | Some("root") => "/root".to_owned(),
        Some(user) => format!("/home/{user}"),
    }
}
