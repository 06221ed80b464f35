//! Connections that were made inside a sandbox, as they come out.
//!
//! Where the backend handed out the listening socket, they are accepted here: each is a socket that only
//! this process holds, and the kernel relays what it carries. Elsewhere the warden accepts, and its link
//! carries every byte.

use std::net;
use std::sync::Arc;
use std::time::Duration;

use hermetic_egress::{ConversationEgress, Proxy};
use hermetic_warden::client::{InsideListener, RelayStream, WardenCallError, WardenServices};
use hermetic_warden::protocol::ListenEndpoint;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Connections at once; the proxy's own bound on a conversation is no larger. Further ones wait inside.
const CONCURRENT: u16 = 256;

/// When no socket can be had for a connection, asking again at once would spin.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

pub(super) enum EgressListener {
    Accepted {
        exit: TcpListener,
        room: Arc<Semaphore>,
    },
    Carried(InsideListener),
}

pub(super) enum EgressConnection {
    Socket(TcpStream, OwnedSemaphorePermit),
    Stream(RelayStream),
}

impl EgressListener {
    /// `None` where it cannot be waited on, and then it is closed.
    pub(super) fn on(exit: net::TcpListener) -> Option<Self> {
        let exit = TcpListener::from_std(exit)
            .inspect_err(|error| tracing::warn!(%error, "a way out cannot be waited on"));
        Some(Self::Accepted {
            exit: exit.ok()?,
            room: Arc::new(Semaphore::new(CONCURRENT.into())),
        })
    }

    pub(super) async fn over(warden: &WardenServices, port: u16) -> Result<Self, WardenCallError> {
        let listener = warden.listen(ListenEndpoint::Tcp(port), CONCURRENT).await?;
        Ok(Self::Carried(listener))
    }

    /// `None` when there will be no more.
    pub(super) async fn next(&mut self) -> Option<EgressConnection> {
        match self {
            Self::Carried(listener) => listener.accept().await.map(EgressConnection::Stream),
            Self::Accepted { exit, room } => {
                // Room before the connection is accepted: one that finds none waits in the kernel's
                // queue and costs no descriptor of ours. Dropped in between, nothing is lost.
                let place = Arc::clone(room).acquire_owned().await.ok()?;
                loop {
                    match exit.accept().await {
                        Ok((socket, _)) => return Some(EgressConnection::Socket(socket, place)),
                        Err(error) => {
                            tracing::debug!(%error, "a connection was not accepted");
                            sleep(ACCEPT_RETRY_PAUSE).await;
                        }
                    }
                }
            }
        }
    }
}

impl EgressConnection {
    pub(super) async fn serve(
        self,
        proxy: &Proxy,
        conversation: Arc<ConversationEgress>,
        stop: CancellationToken,
    ) {
        match self {
            Self::Stream(relay) => proxy.handle_buffered(relay, conversation, stop).await,
            Self::Socket(socket, _place) => {
                // Fails only on a socket that is gone already, which the first read will tell.
                let _ = socket.set_nodelay(true);
                proxy.handle(socket, conversation, stop).await;
            }
        }
    }
}
