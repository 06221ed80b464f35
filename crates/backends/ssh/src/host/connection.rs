//! One connection to the host, which carries many channels.
//!
//! The `ssh` that holds it is our child and lives by a pipe from us: however we end, it ends. (The
//! usual way, a client in the background, would outlive a gateway that was killed.)

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_sandbox::BackendError;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::ChildStdin;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::SshConfig;
use super::place::RemoteProgram;
use super::trouble::{MOST_STDERR_BYTES, not_connected};

/// Channels on one connection. OpenSSH allows ten (`MaxSessions`) unless told otherwise.
const CHANNELS: usize = 8;

/// Longer than `ConnectTimeout`, for what comes after the connect: jump hosts, slow logins.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(40);

#[derive(Debug)]
pub(super) struct SshConnection {
    /// Private: who can write here could speak as us.
    folder: TempDir,
    /// The `ssh` ends when this closes.
    _leash: ChildStdin,
    gone: Arc<AtomicBool>,
    room: Arc<Semaphore>,
    /// How many channels it takes, as far as we know.
    capacity: AtomicUsize,
    last_use: Mutex<Instant>,
    pub(super) placed: OnceCell<RemoteProgram>,
}

impl SshConnection {
    pub(super) async fn open(config: &SshConfig) -> Result<Self, BackendError> {
        let failed = |source: io::Error| BackendError::failed("start ssh", source);
        // Short, and not in our state folder: a socket's address holds 108 bytes.
        let folder = tempfile::Builder::new()
            .prefix("hermetic-ssh-")
            .tempdir()
            .map_err(failed)?;
        let strict = wants_strict_checking(config).await;
        let mut child =
            config
                .connect(folder.path(), strict)
                .spawn()
                .map_err(|source| match source.kind() {
                    io::ErrorKind::NotFound => BackendError::Unavailable {
                        what: "there is no ssh on this machine".to_owned(),
                        remedy: "install it: apt-get install openssh-client".to_owned(),
                    },
                    _ => failed(source),
                })?;
        let (Some(leash), Some(mut stdout), Some(mut stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        // The local command's line: it is run once the login is done, when the socket takes
        // channels.
        let stands = timeout(LOGIN_TIMEOUT, stdout.read_u8()).await;
        if !matches!(stands, Ok(Ok(_))) {
            // The client ends by this, so that what it said comes to an end as well.
            drop(leash);
            let said = timeout(Duration::from_secs(2), gather(&mut stderr)).await;
            return Err(not_connected(config, &said.unwrap_or_default()));
        }
        let gone = Arc::new(AtomicBool::new(false));
        tokio::spawn(watch(stdout, stderr, Arc::clone(&gone)));
        Ok(Self {
            folder,
            _leash: leash,
            gone,
            room: Arc::new(Semaphore::new(CHANNELS)),
            capacity: AtomicUsize::new(CHANNELS),
            last_use: Mutex::new(Instant::now()),
            placed: OnceCell::new(),
        })
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Room for one channel more, if there is.
    pub(super) fn enter(self: &Arc<Self>) -> Option<ChannelPermit> {
        // Never waited for: where this one is full another connection is made.
        let permit = Arc::clone(&self.room).try_acquire_owned().ok()?;
        Some(ChannelPermit {
            connection: Arc::clone(self),
            permit: Some(permit),
        })
    }

    /// Since when nobody uses it; nothing while somebody does.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let unused = self.room.available_permits() == self.capacity.load(Ordering::SeqCst);
        unused.then(|| *self.last_use())
    }

    fn last_use(&self) -> MutexGuard<'_, Instant> {
        self.last_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn control(&self) -> PathBuf {
        self.folder.path().join("c")
    }
}

/// Permits one channel on a connection.
#[derive(Debug)]
pub(super) struct ChannelPermit {
    pub(super) connection: Arc<SshConnection>,
    permit: Option<OwnedSemaphorePermit>,
}

impl ChannelPermit {
    /// One beyond the count, for the one who looks after the connection itself.
    pub(super) fn beside(connection: &Arc<SshConnection>) -> Self {
        Self {
            connection: Arc::clone(connection),
            permit: None,
        }
    }

    /// The host did not have it after all. Says whether it has any.
    pub(super) fn refused(mut self) -> bool {
        let Some(permit) = self.permit.take() else {
            return false;
        };
        // Forgotten and not given back: the server allows fewer channels than we thought, and from
        // now on we count by that.
        permit.forget();
        self.connection.capacity.fetch_sub(1, Ordering::SeqCst) > 1
    }
}

impl Drop for ChannelPermit {
    fn drop(&mut self) {
        *self.connection.last_use() = Instant::now();
    }
}

/// Reads what the client says to nobody, and notes its end.
async fn watch(
    mut stdout: impl AsyncRead + Unpin,
    mut stderr: impl AsyncRead + Unpin,
    gone: Arc<AtomicBool>,
) {
    let (mut out, mut err) = (tokio::io::sink(), tokio::io::sink());
    let _ = tokio::join!(
        tokio::io::copy(&mut stdout, &mut out),
        tokio::io::copy(&mut stderr, &mut err),
    );
    gone.store(true, Ordering::Relaxed);
}

/// The beginning of what is said, to its end.
pub(super) async fn gather(from: &mut (impl AsyncRead + Unpin)) -> String {
    let mut said = Vec::new();
    let _ = from
        .take(MOST_STDERR_BYTES as u64)
        .read_to_end(&mut said)
        .await;
    let said = String::from_utf8_lossy(&said);
    said.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

/// A user who wants every key to be known beforehand keeps that.
async fn wants_strict_checking(config: &SshConfig) -> bool {
    // By the client itself, as only it knows which of the user's files hold and in which order.
    let Ok(shown) = config.show().output().await else {
        return false;
    };
    String::from_utf8_lossy(&shown.stdout)
        .lines()
        .filter_map(|line| line.strip_prefix("stricthostkeychecking "))
        .any(|value| matches!(value.trim(), "true" | "yes"))
}
