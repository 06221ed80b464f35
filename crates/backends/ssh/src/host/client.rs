//! The user's own `ssh`, and what we tell it.
//!
//! His configuration, keys, agent and jump hosts hold. What would give commands on the remote host
//! something of this one does not: no agent, no display and no port is forwarded, whatever his file
//! says.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use hermetic_types::InstallationId;
use tokio::process::Command;

#[derive(Clone, Debug)]
pub struct SshConfig {
    pub host: String,
    pub user: Option<String>,
    /// As the user's ssh configuration has it, if absent.
    pub port: Option<u16>,
    /// The only key that is tried, where one is given.
    pub key: Option<PathBuf>,
    /// Instead of the user's own configuration file.
    pub config_file: Option<PathBuf>,
    /// Where commands start; a folder of the sandbox's own if absent.
    pub workdir: Option<String>,
    pub installation: InstallationId,
    /// The embedded warden program.
    pub program: &'static [u8],
}

/// Options of the connection itself. The first word for an option wins, so these stand before the
/// user's file.
const CONNECTION: [&str; 14] = [
    "ControlMaster=yes",
    // It lives as long as we hold it, see `SshConnection`.
    "ControlPersist=no",
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=3",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "Tunnel=no",
    "RequestTTY=no",
    "RemoteCommand=none",
    // Says that the connection stands and listens for channels.
    "PermitLocalCommand=yes",
    "LocalCommand=echo",
];

/// Ends the client when our end of its stdin closes, whichever way we ended: a killed gateway leaves
/// no connection, and not the folder of its socket, which is `$0`. The streams are closed here so
/// that their end is the client's end.
const LEASH: &str =
    r#""$@" & exec >&- 2>&-; read -r _; kill $!; wait $!; rm -f "$0/c"; rmdir "$0""#;

impl SshConfig {
    /// As a person would write it.
    pub(super) fn destination(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}@{}", self.host),
            None => self.host.clone(),
        }
    }

    /// A connection that waits for channels at `c` in the folder.
    pub(super) fn connect(&self, folder: &Path, strict: bool) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", LEASH])
            .arg(folder)
            .args(["ssh", "-N", "-T", "-S"])
            .arg(folder.join("c"));
        for option in CONNECTION {
            command.args(["-o", option]);
        }
        if !strict {
            command.args(["-o", "StrictHostKeyChecking=accept-new"]);
        }
        self.address(&mut command);
        command
            // The user's shell may be anything; the local command needs a plain one.
            .env("SHELL", "/bin/sh")
            .env_remove("SSH_ASKPASS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Signals of our terminal are ours, not the connection's.
            .process_group(0);
        command
    }

    /// What the user's configuration comes to for this host.
    pub(super) fn show(&self) -> Command {
        let mut command = Command::new("ssh");
        self.address(command.arg("-G"));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// One channel on a connection that stands. No file is read and no way but the socket is there:
    /// without these words a client that is refused a channel would connect anew by itself.
    pub(super) fn channel(&self, control: &Path, line: &str) -> Command {
        let mut command = Command::new("ssh");
        command
            .args(["-F", "none", "-T", "-S"])
            .arg(control)
            .args(["-o", "ControlMaster=no", "-o", "BatchMode=yes"])
            .args(["-o", "ProxyCommand=exec false", "--", &self.host, line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        command
    }

    fn address(&self, command: &mut Command) {
        if let Some(file) = &self.config_file {
            command.arg("-F").arg(file);
        }
        if let Some(user) = &self.user {
            command.args(["-l", user]);
        }
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        if let Some(key) = &self.key {
            command.args(["-o", "IdentitiesOnly=yes", "-i"]).arg(key);
        }
        command.args(["--", &self.host]);
    }
}
