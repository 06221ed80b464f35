//! A start on a disk without room for a byte: it waits for room, and says so meanwhile.
//!
//! The lock, the description for `status`, the store and the copy of `/etc` are all needed before there is a
//! gateway that could wait by itself, as it does from then on (`hermetic-gateway`, `run/room.rs`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use hermetic_config::Config;
use hermetic_gateway::EarlyHealth;
use hermetic_types::{Clock as _, SystemClock};
use sd_notify::NotifyState;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::room_probe::has_room;
use super::state_recorder::tell_systemd;
use super::watchdog;
use crate::failure::CommandFailure;

/// Often enough for a person who made room and watches.
const LOOK_AGAIN: Duration = Duration::from_millis(600);

/// A start that tries again what fails for lack of room.
pub(super) struct PatientStart {
    host: String,
    port: u16,
    backend: String,
    state: PathBuf,
    stop: CancellationToken,
    health: Option<HealthPort>,
    has_waited: bool,
}

/// The port of health, open from the first need on, and who tells systemd that it is answered.
pub(super) struct HealthPort {
    pub(super) listener: TcpListener,
    pub(super) watchdog: Option<JoinHandle<()>>,
}

impl PatientStart {
    pub(super) fn new(config: &Config, backend: String, stop: CancellationToken) -> Self {
        let dashboard = &config.gateway().dashboard;
        Self {
            host: dashboard.host.clone(),
            port: dashboard.port,
            backend,
            state: config.home().state(),
            stop,
            health: None,
            has_waited: false,
        }
    }

    /// Attempts it until it succeeds or fails for another reason than lack of room. Returns nothing when the
    /// start was told to end meanwhile.
    pub(super) async fn once_there_is_room<T>(
        &mut self,
        attempt: impl AsyncFn() -> Result<T, CommandFailure>,
    ) -> Result<Option<T>, CommandFailure> {
        // Room may return between a failure and the look at the disk, so one that has waited tries once more.
        let mut tries_with_room = usize::from(self.has_waited);
        loop {
            let failure = match attempt().await {
                // Another failure is told at once, unless there is no room: then nobody knows which
                // of the two it was.
                Ok(done) => return Ok(Some(done)),
                Err(failure) => failure,
            };
            if !self.has_room().await {
                if !self.wait(&failure).await? {
                    return Ok(None);
                }
                tries_with_room = 1;
            } else if tries_with_room == 0 {
                return Err(failure);
            } else {
                tries_with_room -= 1;
            }
        }
    }

    /// Opens the port of health, unless it is open.
    pub(super) async fn open_health(&mut self) -> Result<&HealthPort, CommandFailure> {
        let health = match self.health.take() {
            Some(health) => health,
            None => self.listen().await?,
        };
        Ok(self.health.insert(health))
    }

    /// For whoever serves from now on.
    pub(super) async fn into_health(mut self) -> Result<HealthPort, CommandFailure> {
        match self.health.take() {
            Some(health) => Ok(health),
            None => self.listen().await,
        }
    }

    /// Returns whether there is room; if not, it was told to end.
    async fn wait(&mut self, failure: &CommandFailure) -> Result<bool, CommandFailure> {
        let (backend, since) = (self.backend.clone(), SystemClock.now());
        let health = self.open_health().await?;
        warn!(error = %failure, "waits until the disk has room");
        let answering = EarlyHealth::without_room(&health.listener, &backend, since);
        if let Err(error) = &answering {
            warn!(%error, "health is not answered meanwhile");
        }
        self.has_waited = true;
        // It would end us for being late.
        tell_systemd(NotifyState::Ready);
        while !self.has_room().await {
            let pause = self.stop.run_until_cancelled(sleep(LOOK_AGAIN));
            if pause.await.is_none() {
                return Ok(false);
            }
        }
        info!("the disk has room again");
        Ok(true)
    }

    async fn has_room(&self) -> bool {
        let folder = nearest_folder(&self.state);
        let looked = tokio::task::spawn_blocking(move || has_room(&folder)).await;
        looked.unwrap_or(true)
    }

    async fn listen(&self) -> Result<HealthPort, CommandFailure> {
        let (host, port) = (self.host.as_str(), self.port);
        let listener = TcpListener::bind((host, port)).await.map_err(|error| {
            CommandFailure::new(
                format!("cannot listen on {host}:{port} for health: {error}"),
                "end whoever has that port, or write another gateway.dashboard.port",
            )
        })?;
        if let Ok(address) = listener.local_addr() {
            info!(%address, "health is answered on /health");
        }
        let watchdog = watchdog::start(&listener);
        Ok(HealthPort { listener, watchdog })
    }
}

/// The folder itself, or the one that it would be made in.
fn nearest_folder(path: &Path) -> PathBuf {
    let there = path.ancestors().find(|folder| folder.is_dir());
    there.unwrap_or(path).to_owned()
}
