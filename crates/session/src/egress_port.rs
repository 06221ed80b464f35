//! A sandbox's way out: a port on its own loopback, whose connections are served here.
//!
//! Whose they are is known by the socket or the link they came over, and everything about them is decided
//! on this side of it.

mod arrivals;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use hermetic_egress::{CertificateBundle, ConversationEgress, Egress, EgressOwner};
use hermetic_sandbox::Sandbox;
use hermetic_types::ConversationKey;
use hermetic_warden::client::{WardenCallError, WardenServices};
use hermetic_warden::protocol::{PathAt, WriteRequest};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::arrivals::EgressListener;
use crate::spending::{SpendingBook, SpendingSum};

/// Where programs in a sandbox find the proxy.
pub const PROXY_PORT: u16 = 3128;

/// Somebody inside, or another program of ours, has the port. It is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// The port of the one before this, on its way out still, is free in a moment.
const PORT_RETRY_PAUSE: Duration = Duration::from_millis(20);
const SOON_TIMES: u32 = 5;

/// How soon connections that stand hear of a rule that was changed, and how often sums are written.
const RULE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// For what takes a warden a millisecond.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Dropping it cuts every connection; [`EgressPort::close`] also waits until they are gone.
#[derive(Debug)]
pub struct EgressPort {
    egress: Arc<Egress>,
    conversation: Arc<ConversationEgress>,
    serving: JoinHandle<()>,
    _cut: DropGuard,
}

impl EgressPort {
    /// The port is there when this returns, or the log says why not and it is tried again. Where there is
    /// no `spending`, a budget is for the life of this port.
    pub fn open<'a>(
        sandbox: &'a Sandbox,
        conversation: &'a ConversationKey,
        egress: &'a Arc<Egress>,
        spending: Option<&'a SpendingBook>,
        port: u16,
        works: &'a TaskTracker,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Self> {
        Box::pin(async move {
            let cut = stop.child_token();
            let warden = sandbox.warden().clone();
            // Before the port is there: the first connection may be one that a certificate is
            // needed for.
            if let Some(bundle) = egress.bundle()
                && let Err(error) = in_time(hand_over(&warden, bundle)).await
            {
                tracing::warn!(%conversation, %error, "the sandbox has no certificates for credentials");
            }
            let whose = egress.conversation(conversation);
            let server = EgressServer {
                sum: match spending.filter(|_| egress.proxy().limits().budget.is_some()) {
                    Some(spending) => Some(spending.resume(&whose).await),
                    None => None,
                },
                egress: Arc::clone(egress),
                conversation: whose,
                port,
                cut: cut.clone(),
            };
            // The listening socket that the backend made before anything ran inside, where there is
            // one: nobody inside can have taken that port first.
            let first = match sandbox.take_exit().and_then(EgressListener::on) {
                Some(own) => Some(own),
                None => server.first(&warden).await,
            };
            let conversation = Arc::clone(&server.conversation);
            let serving = works.spawn(server.serve(warden, first));
            Self {
                egress: Arc::clone(egress),
                conversation,
                serving,
                _cut: cut.drop_guard(),
            }
        })
    }

    /// Counts what is opened here from now on as this owner's.
    pub fn leaves_for(&self, owner: EgressOwner) {
        self.egress.note_owner(&self.conversation, owner);
    }

    /// Cuts every connection and waits until none is left. Whoever holds what comes back keeps the
    /// conversation's budget and answers for the next port.
    pub async fn close(self) -> Arc<ConversationEgress> {
        let Self {
            conversation,
            serving,
            _cut,
            ..
        } = self;
        // The cut first; the other way round this would wait for connections that nobody ends.
        drop(_cut);
        // It ends by the cut; a panic in it has been told by the runtime.
        let _ = serving.await;
        conversation
    }
}

struct EgressServer {
    egress: Arc<Egress>,
    conversation: Arc<ConversationEgress>,
    /// Where there is a budget.
    sum: Option<SpendingSum>,
    port: u16,
    cut: CancellationToken,
}

impl EgressServer {
    async fn first(&self, warden: &WardenServices) -> Option<EgressListener> {
        let mut first = self.listen(warden).await;
        for _ in 0..SOON_TIMES {
            if first.is_ok() {
                break;
            }
            sleep(PORT_RETRY_PAUSE).await;
            first = self.listen(warden).await;
        }
        if let Err(error) = &first {
            let conversation = self.conversation.key();
            tracing::warn!(%conversation, %error, "the sandbox has no way out yet");
        }
        first.ok()
    }

    async fn listen(&self, warden: &WardenServices) -> Result<EgressListener, WardenCallError> {
        in_time(EgressListener::over(warden, self.port)).await
    }

    /// Until the cut or the end of the link.
    async fn serve(mut self, warden: WardenServices, mut arrivals: Option<EgressListener>) {
        let connections = TaskTracker::new();
        let mut beat = interval(RULE_CHECK_INTERVAL);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            match &mut arrivals {
                Some(open) => {
                    // The beat is only for connections that stand and sums that are not written.
                    // With neither, a gateway full of idle sandboxes does not wake up for each of
                    // them every second.
                    let busy = !connections.is_empty() || self.is_behind();
                    let arrived = tokio::select! {
                        arrived = open.next() => arrived,
                        () = self.cut.cancelled() => break,
                        () = warden.closed() => break,
                        _ = beat.tick(), if busy => {
                            self.egress.refresh();
                            self.save().await;
                            continue;
                        }
                    };
                    let Some(arrival) = arrived else { break };
                    // For each new connection, besides the beat: a rule that was just taken away
                    // holds for the next connection, not for the next second.
                    self.egress.refresh();
                    let (proxy, cut) = (self.egress.proxy().clone(), self.cut.clone());
                    let conversation = Arc::clone(&self.conversation);
                    connections.spawn(async move {
                        let handled = arrival.serve(&proxy, conversation, cut.clone());
                        cut.run_until_cancelled(handled).await;
                    });
                }
                None => {
                    let again = async {
                        sleep(RETRY).await;
                        self.listen(&warden).await
                    };
                    arrivals = tokio::select! {
                        tried = again => tried.ok(),
                        () = self.cut.cancelled() => break,
                        () = warden.closed() => break,
                    };
                }
            }
        }
        // The link is gone or was let go: nobody is left to talk to.
        self.cut.cancel();
        drop(arrivals);
        connections.close();
        connections.wait().await;
        self.save().await;
    }

    fn is_behind(&self) -> bool {
        self.sum.as_ref().is_some_and(SpendingSum::is_behind)
    }

    async fn save(&mut self) {
        if let Some(sum) = &mut self.sum {
            sum.save().await;
        }
    }
}

/// A warden that keeps silent has lost its sandbox the way out, not us our time.
async fn in_time<T>(
    asked: impl Future<Output = Result<T, WardenCallError>>,
) -> Result<T, WardenCallError> {
    timeout(LISTEN_TIMEOUT, asked)
        .await
        .unwrap_or(Err(WardenCallError::LinkLost))
}

/// Puts the certificates where the environment says they are.
async fn hand_over(
    warden: &WardenServices,
    bundle: &CertificateBundle,
) -> Result<(), WardenCallError> {
    let mut write = WriteRequest::new(PathAt::anywhere(bundle.path.as_str()));
    write.parents = true;
    let mut file = warden.write_file(write).await?;
    file.write(bundle.pem.as_bytes()).await?;
    file.finish().await
}
