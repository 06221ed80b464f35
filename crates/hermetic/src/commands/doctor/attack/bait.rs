//! What stands on the host while a sandbox is attacked.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use hermetic_attack::BaitTarget;
use hermetic_config::Config;
use hermetic_types::SandboxId;

use crate::failure::CommandFailure;

/// A file, a process and two servers, gone when dropped.
pub(super) struct HostBait {
    token: String,
    file: PathBuf,
    process: Child,
    server: TcpListener,
    abstract_server: UnixListener,
}

impl HostBait {
    pub(super) fn lay(config: &Config) -> Result<Self, CommandFailure> {
        let token = SandboxId::random().to_string();
        let laid =
            |error: io::Error| CommandFailure::caused(&error, "free some processes and ports");
        let address =
            SocketAddr::from_abstract_name(BaitTarget::abstract_name(&token)).map_err(laid)?;
        let abstract_server = UnixListener::bind_addr(&address).map_err(laid)?;
        // Whether somebody came is asked at the end, and nobody is waited for.
        abstract_server.set_nonblocking(true).map_err(laid)?;
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(laid)?;
        server.set_nonblocking(true).map_err(laid)?;
        let process = Command::new("sh")
            // Two commands, or the shell would become the first.
            .args(["-c", "read line; exit", &token])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(laid)?;
        // Before the file is written: whatever fails from here on takes all of it away again.
        let bait = Self {
            file: config.home().state().join(format!("bait-{token}")),
            token,
            process,
            server,
            abstract_server,
        };
        fs::write(&bait.file, &bait.token)
            .map_err(|error| CommandFailure::file("write", &bait.file, &error))?;
        Ok(bait)
    }

    pub(super) fn bait(&self) -> BaitTarget {
        let address = self.server.local_addr();
        BaitTarget {
            token: self.token.clone(),
            port: address.map_or(0, |address| address.port()),
            file: self.file.display().to_string(),
        }
    }

    /// Whether anybody connected.
    pub(super) fn was_found(&self) -> bool {
        self.server.accept().is_ok() || self.abstract_server.accept().is_ok()
    }
}

impl Drop for HostBait {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.file);
    }
}
