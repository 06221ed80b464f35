//! `hermetic gateway run`: configuration, lock, parts, then serving until a signal.

use std::convert::Infallible;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use hermetic_app as app;
use hermetic_config::{Config, ResolvedBackend, resolve_gateway_backend};
use hermetic_gateway::{DrainOutcome, EarlyHealth, GatewayCondition, serve};
use hermetic_session::Sandboxes;
use hermetic_types::RunId;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info, info_span, warn};

use super::patient_start::{HealthPort, PatientStart};
use super::state_recorder::StateRecorder;
use crate::cli::CommandLine;
use crate::commands::{first_link, load};
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::gateway_state::{GatewayLock, GatewayState, KeptLimit, LockError};
use crate::log;
use crate::output;
use crate::service;

/// How long an end by failure waits for what cannot be cut.
const LAST_ACTS: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(crate) struct GatewayRunArgs {
    /// Leave the terminal and say on stdout when it is ready: how `gateway start` starts it
    #[arg(long, hide = true)]
    detached: bool,
}

pub(crate) fn run(cli: &CommandLine, args: &GatewayRunArgs) -> Result<ExitReason, CommandFailure> {
    if args.detached {
        // Fails only for who leads a group already, and then there is nothing to leave.
        let _ = rustix::process::setsid();
    }
    // Before anything is derived from it.
    let open_files = hermetic_listen::descriptors::raise();
    let config = load(cli)?;
    let resolved = resolve_gateway_backend(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?;
    let id = RunId::random();
    let span = info_span!("gateway", run = %id);
    let mut state = GatewayState::of_this_process(
        id.to_string(),
        resolved.backend.to_string(),
        resolved.image.clone(),
    );
    state.service = service::own_name();

    let begun = begin(&config, &resolved, &state, open_files).instrument(span.clone());
    let Some((lock, start, stop)) = runtime.block_on(begun)? else {
        return Ok(ExitReason::Ok);
    };
    let chronicle = Arc::new(StateRecorder::begin(lock, state, args.detached));
    let living = live(&config, &resolved, &chronicle, start, stop).instrument(span);
    let ended = runtime.block_on(living);
    // Before the description says that it ended: no task of it is at work by then, and none holds
    // the recorder.
    // Whoever lost its place has nothing to finish, and nobody waits for what it began.
    match &ended {
        Ok(()) => drop(runtime),
        Err(_) => runtime.shutdown_timeout(LAST_ACTS),
    }
    if let Some(chronicle) = Arc::into_inner(chronicle) {
        chronicle.end(&ended);
    }
    ended.map(|()| ExitReason::Ok)
}

/// Takes the lock and describes this gateway, both as soon as the disk has room. Returns nothing when it was
/// told to end before.
async fn begin(
    config: &Config,
    resolved: &ResolvedBackend,
    state: &GatewayState,
    open_files: u64,
) -> Result<Option<(GatewayLock, PatientStart, CancellationToken)>, CommandFailure> {
    // Before the lock is tried: also a start that waits for room has to end when it is told to.
    let stop = stop_on_signal().map_err(|error| {
        CommandFailure::new(
            format!("cannot wait for signals: {error}"),
            "report this as a bug",
        )
    })?;
    let mut start = PatientStart::new(config, resolved.backend.to_string(), stop.clone());
    let take = async || Ok(GatewayLock::take(config.home())?);
    let Some(lock) = start.once_there_is_room(take).await? else {
        return Ok(None);
    };
    announce(config, resolved, open_files);
    let describe = async || {
        let described = lock.describe(state);
        described.map_err(|error| CommandFailure::file("write to", &config.home().state(), &error))
    };
    let described = start.once_there_is_room(describe).await?;
    Ok(described.map(|()| (lock, start, stop)))
}

async fn live(
    config: &Config,
    resolved: &ResolvedBackend,
    chronicle: &Arc<StateRecorder>,
    mut start: PatientStart,
    stop: CancellationToken,
) -> Result<(), CommandFailure> {
    let redactor = app::redactor(config);
    log::hide(&redactor);
    let surroundings = app::Surroundings {
        stop: stop.clone(),
        ..app::Surroundings::default()
    };
    let standing_by = surroundings.standing_by.subscribe();
    let open = async || {
        let surroundings = surroundings.clone();
        let opened = app::gateway(config, resolved, redactor.clone(), surroundings);
        Ok(Box::pin(opened).await?)
    };
    // Before anything is opened: two that want one port are told about it at once.
    let port = start.open_health().await?.listener.as_fd();
    let port = port.try_clone_to_owned();
    let port = port.map_err(|error| CommandFailure::caused(&error, "free some descriptors"))?;
    let told = tell_of_standing_by(standing_by.clone(), chronicle, &port, resolved);
    let opened = tokio::select! {
        opened = start.once_there_is_room(open) => opened,
        never = told => match never {},
    };
    drop(port);
    let parts = match opened {
        Ok(Some(parts)) => parts,
        Ok(None) => return Ok(()),
        // Told to end while it stood by, which is no failure.
        Err(_) if stop.is_cancelled() && *standing_by.borrow() => {
            info!("stopped");
            return Ok(());
        }
        Err(failure) => return Err(failure),
    };
    info!(model = parts.settings.model, "the model");
    let HealthPort { listener, watchdog } = start.into_health().await?;
    tell_of_dashboard(config);
    chronicle.note_limits(kept_limits(&parts.sandboxes).await);
    let note = Arc::clone(chronicle);
    let report = Box::new(move |condition: &GatewayCondition| note.note(condition));
    let drained = serve(parts, listener, stop, report).await;
    if let Some(watchdog) = watchdog {
        watchdog.abort();
    }
    let drained = drained?;
    match drained {
        DrainOutcome::Clean => info!("stopped"),
        DrainOutcome::CutShort { turns } => warn!(turns, "stopped; turns were interrupted"),
    }
    Ok(())
}

/// An engine that says nothing now holds no start up for this.
const KEPT_LIMITS_TIMEOUT: Duration = Duration::from_secs(2);

async fn kept_limits(sandboxes: &Sandboxes) -> Vec<KeptLimit> {
    let told = timeout(KEPT_LIMITS_TIMEOUT, sandboxes.memory_and_disk()).await;
    let told = told.unwrap_or_default().into_iter();
    told.flat_map(|(backend, layers)| {
        let limits = layers.into_iter();
        limits.map(move |layer| KeptLimit::of(backend, layer))
    })
    .collect()
}

/// Whoever started this gateway, and whoever asks its port, hears that it waits for another one to end.
async fn tell_of_standing_by(
    mut standing_by: watch::Receiver<bool>,
    chronicle: &StateRecorder,
    port: &OwnedFd,
    resolved: &ResolvedBackend,
) -> Infallible {
    let mut _answering = None;
    loop {
        if standing_by.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        if *standing_by.borrow_and_update() {
            chronicle.stands_by();
            let answered = EarlyHealth::standing_by(port, &resolved.backend.to_string());
            if let Err(error) = &answered {
                warn!(%error, "health is not answered meanwhile");
            }
            _answering = answered.ok();
        } else {
            _answering = None;
        }
    }
}

/// Says how to look at it. The link itself is for a person at a terminal: a log has other readers.
fn tell_of_dashboard(config: &Config) {
    if !config.gateway().dashboard.enabled {
        return;
    }
    match io::stdout().is_terminal().then(|| first_link(config)) {
        Some(Some(link)) => {
            let _ = output::print(&format!("dashboard, once: {link}\n"));
        }
        _ => info!("`hermetic dashboard link` prints a link to the dashboard"),
    }
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

fn announce(config: &Config, resolved: &ResolvedBackend, open_files: u64) {
    let bounds = app::SandboxBounds::of(config);
    info!(
        sandboxes = bounds.max_sandboxes,
        each_person = bounds.max_sandboxes_per_user,
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

impl From<LockError> for CommandFailure {
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
