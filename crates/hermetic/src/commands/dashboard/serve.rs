//! `hermetic dashboard serve`: the dashboard as a process of its own.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use hermetic_app as app;
use hermetic_config::Config;
use hermetic_listen::{BoundedListener, ConnectionBounds, descriptors, serve_http};
use tokio::net::{TcpListener, lookup_host};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::failure::CommandFailure;

pub(super) const HELP: &str = "\
It shows what the gateway of this home tells it, over a socket in the home that no other account can
open. While no gateway runs, it shows what the store has. It needs no way out.

Examples:
  hermetic dashboard serve
  hermetic dashboard serve --listen 127.0.0.1:9120";

#[derive(Debug, clap::Args)]
pub(super) struct DashboardServeArgs {
    /// Listen on this address, instead of gateway.dashboard.host and port
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
}

/// Connections at once, where there are descriptors for them. Each may have a second one, to the gateway.
const MOST_CONNECTIONS: usize = 512;

/// How long answers may go on when we are asked to end.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Where it listens. Locked for as long as it does, so that what is left of one that was killed leads nobody to
/// whoever has its port then.
const PLACE: &str = "dashboard-serve";

/// No address is longer.
const MOST_ADDRESS_BYTES: u64 = 100;

/// Where a dashboard of its own listens for this home, if there is one.
pub(super) fn served_at(config: &Config) -> Option<SocketAddr> {
    let file = File::open(config.home().state().join(PLACE)).ok()?;
    // A shared lock, so that two who look at once do not take each other for one that serves.
    let Err(TryLockError::WouldBlock) = file.try_lock_shared() else {
        return None;
    };
    let mut text = String::new();
    file.take(MOST_ADDRESS_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    text.trim().parse().ok()
}

/// Says where it listens for as long as the file is open. Of several that are served the first is found.
fn note_place(config: &Config, address: SocketAddr) -> Option<File> {
    let noted = || -> io::Result<Option<File>> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(config.home().state().join(PLACE))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        file.set_len(0)?;
        writeln!(file, "{address}")?;
        Ok(Some(file))
    };
    noted().unwrap_or_else(|error| {
        warn!(%error, "`hermetic dashboard link` will not find this dashboard while no gateway runs");
        None
    })
}

pub(super) fn run(config: &Config, args: &DashboardServeArgs) -> Result<(), CommandFailure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::caused(&error, "free some memory or processes"))?
        .block_on(serve(config, args))
}

async fn serve(config: &Config, args: &DashboardServeArgs) -> Result<(), CommandFailure> {
    let stop = stop_on_signal()?;
    let dashboard = &config.gateway().dashboard;
    let (host, address) = match args.listen {
        Some(address) => (address.ip().to_string(), address),
        None => {
            let place = (dashboard.host.as_str(), dashboard.port);
            let found = lookup_host(place).await.ok().and_then(|mut all| all.next());
            let found = found.ok_or_else(|| {
                CommandFailure::new(
                    format!("{} is no address of this machine", dashboard.host),
                    "write gateway.dashboard.host: 127.0.0.1",
                )
            })?;
            (dashboard.host.clone(), found)
        }
    };
    let pages = app::dashboard_front(config, &host, &stop).await?;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        CommandFailure::caused(
            &error,
            "the gateway may listen there itself: choose another port with --listen, or write \
             gateway.dashboard.port",
        )
    })?;
    let files = usize::try_from(descriptors::raise()).unwrap_or(usize::MAX);
    let most = MOST_CONNECTIONS.min(files / 8);
    let address = listener.local_addr().unwrap_or(address);
    let _place = note_place(config, address);
    info!(%address, "the dashboard is served");
    let listener = BoundedListener::new(listener, ConnectionBounds::of(most));
    serve_http(listener, pages, stop, LAST_ANSWERS).await;
    Ok(())
}

fn stop_on_signal() -> Result<CancellationToken, CommandFailure> {
    let failed = |error: std::io::Error| CommandFailure::caused(&error, "report this as a bug");
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stopping.cancel();
    });
    Ok(stop)
}
