//! A port of the inside, made reachable from outside.
//!
//! A container that is on an internal network only cannot publish a port. In a deployment whose one door is
//! the proxy, the proxy therefore carries the dashboard's port too: bytes in, to one fixed place, back.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hermetic_listen::{BoundedListener, TrackedConnection};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::account::TrafficAccount;
use crate::audit::ByteMeter;
use crate::relay::relay;
use crate::rules::Authority;
use crate::stream::PeekedStream;

const DIAL: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(600);

/// Carries connections of `listener` to `to` until `stop`, then cuts them.
pub async fn publish(mut listener: BoundedListener, to: Authority, stop: CancellationToken) {
    let to = Arc::new(to);
    let account = TrafficAccount::new(usize::MAX, None);
    let connections = TaskTracker::new();
    while let Some((stream, _, tracked)) = stop.run_until_cancelled(listener.accept()).await {
        let (to, account, stop) = (Arc::clone(&to), Arc::clone(&account), stop.clone());
        connections.spawn(async move {
            let tracked = Arc::new(tracked);
            let carrying = carry(stream, &tracked, &to, account);
            let carried = tokio::select! {
                carried = stop.run_until_cancelled(carrying) => carried,
                () = tracked.over() => None,
            };
            if let Some(Err(error)) = carried {
                tracing::debug!(%to, %error, "a published connection ended");
            }
        });
    }
    connections.close();
    connections.wait().await;
}

/// Nothing is dialled for whoever says nothing, and only what was answered from inside counts as a
/// request: who sends half of one is cut when his time is over, or when there is no room.
async fn carry(
    client: TcpStream,
    tracked: &Arc<TrackedConnection>,
    to: &Authority,
    account: Arc<TrafficAccount>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    client.readable().await?;
    let dial = TcpStream::connect((to.host.as_str(), to.port));
    let inside = timeout(DIAL, dial)
        .await
        .map_err(|_| io::ErrorKind::TimedOut)??;
    inside.set_nodelay(true)?;
    let meter = ByteMeter::new(account);
    let client = PeekedStream::new(client).tracked_by(Arc::clone(tracked));
    relay(client, PeekedStream::new(inside), &meter, IDLE, None)
        .await
        .map_err(io::Error::other)
}
