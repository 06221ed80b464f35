//! A port of the inside, made reachable from outside.
//!
//! A container that is on an internal network only cannot publish a port. In a deployment whose one door is
//! the proxy, the proxy therefore carries the dashboard's port too: bytes in, to one fixed place, back.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::account::Account;
use crate::audit::Meter;
use crate::relay::relay;
use crate::rules::Authority;
use crate::stream::Wire;

const MOST_CONNECTIONS: usize = 256;
const DIAL: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(600);
/// See [`crate::serve`]: a rest where the system is out of descriptors.
const REST: Duration = Duration::from_millis(100);

/// Carries connections of `listener` to `to` until `stop`, then cuts them.
pub async fn publish(listener: TcpListener, to: Authority, stop: CancellationToken) {
    let to = Arc::new(to);
    let account = Account::new(MOST_CONNECTIONS, None);
    let connections = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let Ok((stream, _)) = accepted else {
            sleep(REST).await;
            continue;
        };
        let Some(slot) = account.open() else { continue };
        let (to, account, stop) = (Arc::clone(&to), Arc::clone(&account), stop.clone());
        connections.spawn(async move {
            let _slot = slot;
            let carried = stop.run_until_cancelled(carry(stream, &to, account)).await;
            if let Some(Err(error)) = carried {
                tracing::debug!(%to, %error, "a published connection ended");
            }
        });
    }
    connections.close();
    connections.wait().await;
}

async fn carry(client: TcpStream, to: &Authority, account: Arc<Account>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let dial = TcpStream::connect((to.host.as_str(), to.port));
    let inside = timeout(DIAL, dial)
        .await
        .map_err(|_| io::ErrorKind::TimedOut)??;
    inside.set_nodelay(true)?;
    let meter = Meter::new(account);
    relay(Wire::new(client), Wire::new(inside), &meter, IDLE, None)
        .await
        .map_err(io::Error::other)
}
