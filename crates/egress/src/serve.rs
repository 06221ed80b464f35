//! The proxy on a listener of its own, where a whole deployment shares one set of rules.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::conversation::Conversation;
use crate::nearby::unpaced;
use crate::proxy::Proxy;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    Clean,
    CutShort { connections: usize },
}

/// How long to rest when the system has no file descriptors left: accepting again at once would spin.
const REST: Duration = Duration::from_millis(100);

/// Serves until `stop`; then takes no more, gives what is open `grace` to end, and cuts the rest.
pub fn serve(
    listener: TcpListener,
    proxy: Proxy,
    conversation: Arc<Conversation>,
    stop: CancellationToken,
    grace: Duration,
) -> BoxFuture<'static, Drained> {
    run(listener, proxy, conversation, stop, grace).boxed()
}

async fn run(
    listener: TcpListener,
    proxy: Proxy,
    conversation: Arc<Conversation>,
    stop: CancellationToken,
    grace: Duration,
) -> Drained {
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                // Fails only on a socket that is gone already, which the first read will tell.
                let _ = stream.set_nodelay(true);
                unpaced(&stream);
                let (proxy, conversation) = (proxy.clone(), Arc::clone(&conversation));
                let (stop, cut) = (stop.clone(), cut.clone());
                connections.spawn(async move {
                    cut.run_until_cancelled(proxy.handle(stream, conversation, stop))
                        .await;
                });
            }
            Err(error) if passes_by(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(REST).await;
            }
        }
    }
    drop(listener);

    connections.close();
    if timeout(grace, connections.wait()).await.is_ok() {
        return Drained::Clean;
    }
    let unfinished = connections.len();
    cut.cancel();
    connections.wait().await;
    Drained::CutShort {
        connections: unfinished,
    }
}

/// The peer gave up before it was accepted.
fn passes_by(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
