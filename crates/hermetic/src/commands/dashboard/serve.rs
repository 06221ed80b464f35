//! `hermetic dashboard serve`: the dashboard as a process of its own.

use std::net::SocketAddr;
use std::time::Duration;

use hermetic_app as app;
use hermetic_config::Config;
use hermetic_listen::{BoundedListener, ConnectionBounds, descriptors, serve_http};
use tokio::net::{TcpListener, lookup_host};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

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
