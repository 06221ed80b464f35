//! The proxy on a listener of its own, where a whole deployment shares one set of rules.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_listen::BoundedListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::conversation::ConversationEgress;
use crate::nearby::unpaced;
use crate::proxy::Proxy;

/// How serving ended: with every connection finished, or with some cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeOutcome {
    Clean,
    CutShort { connections: usize },
}

/// Serves until `stop`; then takes no more, gives what is open `grace` to end, and cuts the rest.
pub fn serve(
    listener: BoundedListener,
    proxy: Proxy,
    conversation: Arc<ConversationEgress>,
    stop: CancellationToken,
    grace: Duration,
) -> BoxFuture<'static, ServeOutcome> {
    run(listener, proxy, conversation, stop, grace).boxed()
}

async fn run(
    mut listener: BoundedListener,
    proxy: Proxy,
    conversation: Arc<ConversationEgress>,
    stop: CancellationToken,
    grace: Duration,
) -> ServeOutcome {
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    while let Some((stream, _, tracked)) = stop.run_until_cancelled(listener.accept()).await {
        // Fails only on a socket that is gone already, which the first read will tell.
        let _ = stream.set_nodelay(true);
        unpaced(&stream);
        let (proxy, conversation) = (proxy.clone(), Arc::clone(&conversation));
        let (stop, cut) = (stop.clone(), cut.clone());
        connections.spawn(async move {
            cut.run_until_cancelled(proxy.handle_tracked(stream, tracked, conversation, stop))
                .await;
        });
    }
    // The port is free for whoever starts next while the last connections end.
    drop(listener);

    connections.close();
    if timeout(grace, connections.wait()).await.is_ok() {
        return ServeOutcome::Clean;
    }
    let unfinished = connections.len();
    cut.cancel();
    connections.wait().await;
    ServeOutcome::CutShort {
        connections: unfinished,
    }
}
