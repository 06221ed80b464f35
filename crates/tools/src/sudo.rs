//! `sudo` with the operator's password, on backends that are the real machine.
//!
//! The command's text stays as it was judged. A shell function of that name adds `-A`, and the program
//! that `-A` asks is a small file that exists while the command runs and only its owner can read. It also
//! goes when whoever waits for the command does not any more; a gateway that is killed leaves it. So
//! stdin stays the command's own, and neither a command line nor an environment shows the password.
//! What runs as the same user can read the file meanwhile: whoever sets `SUDO_PASSWORD` has given it to
//! the agent.

use hermetic_sandbox::Sandbox;
use hermetic_types::{Command, RunId, Secret};
use hermetic_warden::client::{WardenCallError, WardenServices};
use hermetic_warden::protocol::{PathAt, WriteRequest};
use tokio::runtime::Handle;

const ASKPASS: &str = "SUDO_ASKPASS";

/// Has every `sudo` in the command's text ask the file that [`AskpassFile::place`] puts there.
pub(crate) fn equip(command: &mut Command) {
    let path = format!("/tmp/.hermetic-askpass-{}", RunId::random());
    command.env.insert(ASKPASS.to_owned(), path);
    let function = "() { command sudo -A \"$@\"; }";
    command
        .env
        .insert("BASH_FUNC_sudo%%".to_owned(), function.to_owned());
}

/// The file, while it is there. Dropping this removes it in the background.
#[derive(Debug)]
pub(crate) struct AskpassFile {
    warden: WardenServices,
    /// Absent when it was removed.
    path: Option<String>,
}

impl AskpassFile {
    /// `None` for a command that was not equipped.
    pub(crate) async fn place(
        sandbox: &Sandbox,
        command: &Command,
        password: &Secret,
    ) -> Result<Option<Self>, WardenCallError> {
        let Some(path) = command.env.get(ASKPASS).cloned() else {
            return Ok(None);
        };
        let mut write = WriteRequest::new(PathAt::anywhere(path.as_str()));
        write.mode = 0o700;
        let quoted = password.expose().replace('\'', r"'\''");
        let script = format!("#!/bin/sh\nprintf '%s\\n' '{quoted}'\n");
        let mut file = sandbox.warden().write_file(write).await?;
        // From here on it may be there, also where the rest of it is not written.
        let placed = Self {
            warden: sandbox.warden().clone(),
            path: Some(path),
        };
        file.write(script.as_bytes()).await?;
        file.finish().await?;
        Ok(Some(placed))
    }

    pub(crate) async fn remove(mut self) {
        if let Some(path) = self.path.clone() {
            remove(&self.warden, &path).await;
        }
        // Only now: whoever gives up meanwhile leaves it to the drop.
        self.path = None;
    }
}

impl Drop for AskpassFile {
    fn drop(&mut self) {
        let (Some(path), Ok(runtime)) = (self.path.take(), Handle::try_current()) else {
            return;
        };
        let warden = self.warden.clone();
        runtime.spawn(async move { remove(&warden, &path).await });
    }
}

async fn remove(warden: &WardenServices, path: &str) {
    if let Err(error) = warden.remove(PathAt::anywhere(path)).await {
        tracing::warn!(%error, "a file with the sudo password could not be removed");
    }
}
