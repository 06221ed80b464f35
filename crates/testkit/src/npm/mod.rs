//! Servers and clients that others wrote, from npm: they do not share our reading of a specification.
//!
//! Each package is installed once into the target folder. Where there is no node, no npm or no
//! package, the reason is returned, and the test that wanted it is skipped aloud.

mod aimock;
mod browser;
mod discord;
mod matrix_app;
mod signal_cli;
mod slack;
mod telegram;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::timeout;

pub use aimock::Aimock;
pub use browser::BrowserScripts;
pub use discord::DiscordJsBot;
pub use matrix_app::MatrixAppScripts;
pub use signal_cli::signal_cli;
pub use slack::{BoltBot, EmulatedSlack};
pub use telegram::TelegramTestApi;

/// signal-cli has ninety megabytes.
const LONGEST_INSTALL: Duration = Duration::from_secs(480);
const LONGEST_START: Duration = Duration::from_secs(60);

/// A free port may be somebody else's a moment later.
const TRIES: usize = 3;

/// A node program that listens; it ends when dropped.
#[derive(Debug)]
struct Server {
    port: u16,
    _child: Child,
}

impl Server {
    /// Starts what `command` makes for a port, and waits until that port is answered.
    async fn start(command: impl Fn(u16) -> Command) -> Result<Self, String> {
        let mut why = String::new();
        for _ in 0..TRIES {
            let port = free_port().await?;
            match timeout(LONGEST_START, Self::try_start(command(port), port)).await {
                Ok(Ok(server)) => return Ok(server),
                Ok(Err(error)) => why = error,
                Err(_) => why = "it did not start in time".to_owned(),
            }
        }
        Err(why)
    }

    async fn try_start(mut command: Command, port: u16) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("node does not start: {error}"))?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut lines = BufReader::new(stdout).lines();
        // It says something once it listens; what it says changes between versions.
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            match lines.next_line().await {
                Ok(Some(_)) => {}
                _ => return Err("it ended early".to_owned()),
            }
        }
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self {
            port,
            _child: child,
        })
    }
}

/// The folder whose `node_modules` holds this package, for a test that runs its program elsewhere.
pub async fn package(name: &str, version: &str) -> Result<PathBuf, String> {
    install(name, version).await
}

/// The folder that holds the `node_modules` with `name` in it, shared by all tests and runs.
async fn install(name: &str, version: &str) -> Result<PathBuf, String> {
    let text = |error: std::io::Error| error.to_string();
    let folder = target_folder().join("npm").join(name).join(version);
    let modules = folder.join("node_modules");
    if modules.join(name).exists() {
        return Ok(folder);
    }
    let package = format!("{name}@{version}");
    fs::create_dir_all(&folder).map_err(text)?;
    // Installed aside and moved, so that tests which start together do not see half of it.
    let aside = tempfile::tempdir_in(&folder).map_err(text)?;
    let npm = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--silent"])
        .args([OsStr::new("--ignore-scripts"), OsStr::new("--prefix")])
        .arg(aside.path())
        .arg(&package)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status();
    let done = timeout(LONGEST_INSTALL, npm)
        .await
        .map_err(|_| format!("npm takes too long to install {package}"))?
        .map_err(|error| format!("npm does not start: {error}"))?;
    if !done.success() {
        return Err(format!("npm cannot install {package}"));
    }
    let moved = fs::rename(aside.path().join("node_modules"), &modules);
    if moved.is_err() && !modules.join(name).exists() {
        return Err(format!("{package} cannot be put into {}", folder.display()));
    }
    Ok(folder)
}

fn target_folder() -> PathBuf {
    let binary = std::env::current_exe().unwrap_or_default();
    // target/<profile>/deps/<binary>
    binary
        .ancestors()
        .nth(3)
        .map_or_else(std::env::temp_dir, Path::to_path_buf)
}

async fn free_port() -> Result<u16, String> {
    let text = |error: std::io::Error| error.to_string();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(text)?;
    Ok(listener.local_addr().map_err(text)?.port())
}
