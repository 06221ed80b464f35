//! `hermetic gateway run`: configuration, lock, backend, then waiting for a signal.

use std::io;

use hermetic_config::{Config, Resolved, resolve_gateway_backend};
use hermetic_types::RunId;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, info_span, warn};

use crate::cli::Cli;
use crate::commands::load;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gateway_state::{GatewayLock, GatewayState, LockError};

pub(crate) fn run(cli: &Cli) -> Result<Exit, Failure> {
    let config = load(cli)?;
    let resolved = resolve_gateway_backend(&config)?;
    let lock = GatewayLock::take(config.home())?;
    let id = RunId::random();
    let _span = info_span!("gateway", run = %id).entered();

    announce(&config, &resolved);
    lock.describe(&state(&config, &resolved, &id))
        .map_err(|error| Failure::file("write to", &config.home().state(), &error))?;
    serve()?;
    drop(lock);
    Ok(Exit::Ok)
}

fn announce(config: &Config, resolved: &Resolved) {
    info!(
        backend = %resolved.backend,
        image = resolved.image.as_deref().unwrap_or("none"),
        lifetime_seconds = config.gateway().sandbox_lifetime.as_secs(),
        "{}",
        resolved.note()
    );
    for (platform, backend) in &resolved.platforms {
        info!(%platform, %backend, "this platform's commands run elsewhere");
    }
    for warning in resolved.warnings() {
        warn!("⚠ {warning}");
    }
    for warning in config.warnings() {
        warn!(
            place = warning.place().as_deref().unwrap_or("nowhere"),
            "{}",
            warning.what()
        );
    }
    for platform in config.platforms().enabled() {
        warn!(
            platform = platform.name,
            "configured, but this version does not speak to it yet"
        );
    }
    warn!(
        "not there yet: chats, agent, sandboxes, egress; this process holds the home's lock and waits"
    );
}

/// Until somebody asks us to end.
fn serve() -> Result<(), Failure> {
    let wait = || -> io::Result<&'static str> {
        tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?
            .block_on(async {
                let mut terminate = signal(SignalKind::terminate())?;
                let mut interrupt = signal(SignalKind::interrupt())?;
                info!("ready");
                Ok(tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                })
            })
    };
    let signal = wait().map_err(|error| {
        Failure::new(
            format!("cannot wait for signals: {error}"),
            "report this as a bug",
        )
    })?;
    info!(signal, "stopped");
    Ok(())
}

fn state(config: &Config, resolved: &Resolved, run: &RunId) -> GatewayState {
    GatewayState {
        pid: std::process::id(),
        started: GatewayState::now(),
        run: run.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        backend: resolved.backend.to_string(),
        image: resolved.image.clone(),
        platforms: config
            .platforms()
            .enabled()
            .map(|p| p.name.to_owned())
            .collect(),
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        match &error {
            LockError::Taken { pid: Some(pid) } => Self::new(
                error.to_string(),
                format!("end it first (kill {pid}), or use another --home"),
            ),
            LockError::Taken { pid: None } => {
                Self::new(error.to_string(), "end it first, or use another --home")
            }
            LockError::Io { .. } => Self::new(
                error.to_string(),
                "check its permissions and the space left",
            ),
        }
    }
}
