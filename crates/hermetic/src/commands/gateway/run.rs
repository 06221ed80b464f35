//! `hermetic gateway run`: configuration, lock, parts, then serving until a signal.

use std::io;
use std::sync::Arc;

use hermetic_app as app;
use hermetic_config::{Config, Resolved, resolve_gateway_backend};
use hermetic_gateway::{Condition, Drained, serve};
use hermetic_types::RunId;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info, info_span, warn};

use super::chronicle::Chronicle;
use super::watchdog;
use crate::cli::Cli;
use crate::commands::load;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gateway_state::{GatewayLock, GatewayState, LockError};
use crate::log;
use crate::service;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Leave the terminal and say on stdout when it is ready: how `gateway start` starts it
    #[arg(long, hide = true)]
    detached: bool,
}

pub(crate) fn run(cli: &Cli, args: &Args) -> Result<Exit, Failure> {
    if args.detached {
        // Fails only for who leads a group already, and then there is nothing to leave.
        let _ = rustix::process::setsid();
    }
    // Before anything is derived from it.
    let open_files = hermetic_listen::descriptors::raise();
    let config = load(cli)?;
    let resolved = resolve_gateway_backend(&config)?;
    let lock = GatewayLock::take(config.home())?;
    let id = RunId::random();
    let span = info_span!("gateway", run = %id);

    span.in_scope(|| announce(&config, &resolved, open_files));
    let mut state = GatewayState::of_this_process(
        id.to_string(),
        resolved.backend.to_string(),
        resolved.image.clone(),
    );
    state.service = service::own_name();
    let chronicle = Chronicle::begin(lock, state, args.detached)
        .map_err(|error| Failure::file("write to", &config.home().state(), &error))?;
    let chronicle = Arc::new(chronicle);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::caused(&error, "free some memory or processes"))?;
    let ended = runtime.block_on(live(&config, &resolved, &chronicle).instrument(span));
    drop(runtime);
    if let Some(chronicle) = Arc::into_inner(chronicle) {
        chronicle.end(&ended);
    }
    ended.map(|()| Exit::Ok)
}

async fn live(
    config: &Config,
    resolved: &Resolved,
    chronicle: &Arc<Chronicle>,
) -> Result<(), Failure> {
    let stop = stop_on_signal().map_err(|error| {
        Failure::new(
            format!("cannot wait for signals: {error}"),
            "report this as a bug",
        )
    })?;
    let health = listen(config).await?;
    let redactor = app::redactor(config);
    log::hide(&redactor);
    let surroundings = app::Surroundings::default();
    let parts = app::gateway(config, resolved, redactor, surroundings).await?;
    info!(model = parts.settings.model, "the model");
    let watchdog = watchdog::start(&health);
    let note = Arc::clone(chronicle);
    let report = Box::new(move |condition: &Condition| note.note(condition));
    let drained = serve(parts, health, stop, report).await;
    if let Some(watchdog) = watchdog {
        watchdog.abort();
    }
    let drained = drained?;
    match drained {
        Drained::Clean => info!("stopped"),
        Drained::CutShort { turns } => warn!(turns, "stopped; turns were interrupted"),
    }
    Ok(())
}

/// The port of health, and later of the dashboard.
async fn listen(config: &Config) -> Result<TcpListener, Failure> {
    let dashboard = &config.gateway().dashboard;
    let (host, port) = (dashboard.host.as_str(), dashboard.port);
    let listener = TcpListener::bind((host, port)).await.map_err(|error| {
        Failure::new(
            format!("cannot listen on {host}:{port} for health: {error}"),
            "end whoever has that port, or write another gateway.dashboard.port",
        )
    })?;
    if let Ok(address) = listener.local_addr() {
        info!(%address, "health is answered on /health");
    }
    Ok(listener)
}

fn stop_on_signal() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let cancel = stop.clone();
    tokio::spawn(
        async move {
            let signal = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            info!(signal, "stopping");
            cancel.cancel();
        }
        .in_current_span(),
    );
    Ok(stop)
}

fn announce(config: &Config, resolved: &Resolved, open_files: u64) {
    let bounds = app::SandboxBounds::of(config);
    info!(
        sandboxes = bounds.all,
        each_person = bounds.each,
        open_files,
        "how many sandboxes may live at once"
    );
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
    for warning in resolved.warnings(app::boundary) {
        warn!("⚠ {warning}");
    }
    for warning in config.warnings() {
        warn!(
            place = warning.place().as_deref().unwrap_or("nowhere"),
            "{}",
            warning.what()
        );
    }
    for notice in app::notices(config) {
        warn!("{notice}");
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        match &error {
            LockError::Taken { pid: Some(pid) } => Self::new(
                error.to_string(),
                format!("end it first (`hermetic gateway stop`, pid {pid}), or use another --home"),
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
