//! The proxy: one connection of a sandbox in, checked, at most one connection to the world out.
//!
//! The order is the argument. A target is parsed, judged by the rules, put to a person where no rule
//! speaks, resolved once, and all its addresses are checked; in a tunnel the first TLS message is read
//! and compared; only then is anything dialled. Every step hands the next a value that only it can make.

mod admit;
mod connect;
mod first_flight;
mod intercept;
mod requests;
mod revocation;
mod rewrite;
mod socks;
mod tunnel;

use std::fmt;
use std::sync::Arc;

use hermetic_listen::TrackedConnection;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::ask::HostApprover;
use crate::audit::{EgressDecision, EgressEntry, EgressMethod, EgressRecorder};
use crate::connection_limit::ConnectionLimit;
use crate::conversation::{ConversationEgress, RefusedHost};
use crate::credential::{CertificateAuthority, TrustRoots, TrustRootsError};
use crate::http::head::{HeadError, RequestHead};
use crate::http::source::{ReadAhead, ReadHeadError};
use crate::limits::EgressLimits;
use crate::refusal::ProxyRefusal;
use crate::remedy::AllowInstructions;
use crate::resolve::Resolver;
use crate::rules::Authority;
use crate::stream::{BufferedStream, ByteStream, PeekedStream};
use crate::upstream::UpstreamRoute;

use tunnel::Tunnel;

/// Serves connections of sandboxes: the only way out. Cheap to clone.
#[derive(Clone)]
pub struct Proxy(Arc<ProxyState>);

/// What all clones of a proxy share.
struct ProxyState {
    limits: EgressLimits,
    resolver: Arc<dyn Resolver>,
    recorder: Arc<dyn EgressRecorder>,
    asker: Option<Arc<dyn HostApprover>>,
    interception: Option<TlsInterception>,
    allowing: AllowInstructions,
    upstream: Option<UpstreamRoute>,
    connection_limit: Arc<ConnectionLimit>,
}

/// What it takes to end TLS here and to begin it anew.
struct TlsInterception {
    authority: Arc<CertificateAuthority>,
    upstream: Arc<rustls::ClientConfig>,
}

impl Proxy {
    pub fn new(
        limits: EgressLimits,
        resolver: Arc<dyn Resolver>,
        recorder: Arc<dyn EgressRecorder>,
    ) -> Self {
        Self(Arc::new(ProxyState {
            connection_limit: ConnectionLimit::new(limits.everybody),
            limits,
            resolver,
            recorder,
            asker: None,
            interception: None,
            allowing: AllowInstructions::default(),
            upstream: None,
        }))
    }

    /// Unknown hosts are put to `asker` instead of being refused at once.
    pub fn asking(self, asker: Arc<dyn HostApprover>) -> Self {
        self.with(|inner| inner.asker = Some(asker))
    }

    /// Refusals tell how hosts are let through here.
    pub fn advising(self, allowing: AllowInstructions) -> Self {
        self.with(|inner| inner.allowing = allowing)
    }

    /// Leaves through a company's proxy, except for the hosts that it is not for.
    pub fn leaving_through(self, upstream: UpstreamRoute) -> Self {
        self.with(|inner| inner.upstream = Some(upstream))
    }

    /// Hosts with a credential are terminated with certificates of `authority`; the origin behind must
    /// be vouched for by `roots`.
    pub fn intercepting(
        self,
        authority: Arc<CertificateAuthority>,
        roots: &TrustRoots,
    ) -> Result<Self, TrustRootsError> {
        let upstream = roots.client_config()?;
        Ok(self.with(|inner| {
            inner.interception = Some(TlsInterception {
                authority,
                upstream,
            });
        }))
    }

    fn with(self, change: impl FnOnce(&mut ProxyState)) -> Self {
        let inner = &self.0;
        let mut inner = ProxyState {
            limits: inner.limits.clone(),
            resolver: Arc::clone(&inner.resolver),
            recorder: Arc::clone(&inner.recorder),
            asker: inner.asker.clone(),
            interception: inner
                .interception
                .as_ref()
                .map(|interception| TlsInterception {
                    authority: Arc::clone(&interception.authority),
                    upstream: Arc::clone(&interception.upstream),
                }),
            allowing: inner.allowing,
            upstream: inner.upstream.clone(),
            connection_limit: Arc::clone(&inner.connection_limit),
        };
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// Whether somebody is asked about unknown hosts.
    pub fn asks(&self) -> bool {
        self.0.asker.is_some()
    }

    pub fn limits(&self) -> &EgressLimits {
        &self.0.limits
    }

    /// Serves one connection of this conversation until it ends.
    ///
    /// When `stop` is cancelled, what is under way is finished and no further request is taken.
    /// Dropping the future cuts everything.
    pub async fn handle(
        &self,
        stream: impl ByteStream + 'static,
        conversation: Arc<ConversationEgress>,
        stop: CancellationToken,
    ) {
        self.tend(PeekedStream::new(stream), conversation, stop)
            .await;
    }

    /// The same for a connection of a port that counts them. One that is cut to make room ends.
    pub(crate) async fn handle_tracked(
        &self,
        stream: TcpStream,
        tracked: TrackedConnection,
        conversation: Arc<ConversationEgress>,
        stop: CancellationToken,
    ) {
        let tracked = Arc::new(tracked);
        let client = PeekedStream::new(stream).tracked_by(Arc::clone(&tracked));
        tokio::select! {
            () = self.tend(client, conversation, stop) => {}
            () = tracked.cut() => {}
        }
    }

    /// The same for a stream whose bytes are in memory already, as those out of a warden are.
    pub async fn handle_buffered(
        &self,
        stream: impl BufferedStream + 'static,
        conversation: Arc<ConversationEgress>,
        stop: CancellationToken,
    ) {
        self.tend(PeekedStream::over(stream), conversation, stop)
            .await;
    }

    async fn tend(
        &self,
        mut client: PeekedStream,
        conversation: Arc<ConversationEgress>,
        stop: CancellationToken,
    ) {
        // The permit before the first byte is read: whoever opens connections and says nothing
        // holds them too.
        let (account, owner) = (conversation.account(), conversation.owner());
        let Some(_permit) = self.0.connection_limit.enter(account, &owner) else {
            let refusal = ProxyRefusal::busy();
            self.note(&conversation, EgressMethod::Http, &refusal);
            let response = refusal.response(false, self.0.allowing);
            let _ = timeout(self.0.limits.head_time, client.write_all(&response)).await;
            return;
        };
        // Boxed, so that a tunnel that stands does not carry the weight of how it came about.
        let opened = Box::pin(self.open(client, &conversation, &stop)).await;
        if let Some(tunnel) = opened {
            tunnel.run(self.0.limits.idle).await;
        }
    }

    async fn open(
        &self,
        mut client: PeekedStream,
        conversation: &Arc<ConversationEgress>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        let first = timeout(self.0.limits.head_time, client.read_more()).await;
        // Somebody who says nothing is no request: there is nothing to write down, and a record of
        // it would be a way to flood one.
        let Ok(Ok(1..)) = first else { return None };
        match client.ahead().first() {
            Some(5) => self.socks(client, conversation, stop).await,
            Some(4) => {
                // SOCKS4 carries addresses, not names. Its own words for "rejected".
                let _ = client.write_all(&[0, 0x5b, 0, 0, 0, 0, 0, 0]).await;
                linger(client).await;
                None
            }
            Some(first) if first.is_ascii_alphabetic() => {
                let head = match self.read_request(&mut client).await {
                    Ok(head) => head?,
                    Err(refusal) => {
                        self.turn_away(client, conversation, EgressMethod::Http, &refusal, false)
                            .await;
                        return None;
                    }
                };
                if head.method == "CONNECT" {
                    self.connect(client, head, conversation, stop).await
                } else {
                    self.requests(
                        client,
                        Some(head),
                        requests::RequestSource::Proxy,
                        conversation,
                        stop,
                    )
                    .await
                }
            }
            _ => {
                let refusal =
                    ProxyRefusal::bad_request("", "this port speaks HTTP and SOCKS5 only");
                self.turn_away(client, conversation, EgressMethod::Http, &refusal, false)
                    .await;
                None
            }
        }
    }

    /// The next request head; `None` where the connection ended before one began.
    async fn read_request(
        &self,
        client: &mut PeekedStream,
    ) -> Result<Option<RequestHead>, ProxyRefusal> {
        let limits = &self.0.limits;
        let (stream, ahead) = client.parts();
        let bytes = ReadAhead::new(stream, ahead)
            .head(limits.head_bytes, limits.head_time)
            .await;
        let bytes = match bytes {
            Ok(Some(bytes)) => bytes,
            Ok(None) | Err(ReadHeadError::Broken(_) | ReadHeadError::Cut) => return Ok(None),
            Err(ReadHeadError::TooSlow) => return Err(ProxyRefusal::too_slow()),
            Err(error @ ReadHeadError::TooLarge { .. }) => {
                return Err(ProxyRefusal::too_large(error.to_string()));
            }
        };
        client.request_came();
        let refuse = |error: HeadError| ProxyRefusal::bad_request("", error.to_string());
        RequestHead::parse(&bytes).map(Some).map_err(refuse)
    }

    /// Says no over HTTP and writes it down.
    async fn turn_away(
        &self,
        mut client: PeekedStream,
        conversation: &ConversationEgress,
        how: EgressMethod,
        refusal: &ProxyRefusal,
        as_json: bool,
    ) {
        // Written down before it is answered: the client may hang up on the answer, and the future
        // with it.
        self.note(conversation, how, refusal);
        let response = refusal.response(as_json, self.0.allowing);
        let written = timeout(self.0.limits.head_time, client.write_all(&response)).await;
        if matches!(written, Ok(Ok(()))) {
            linger(client).await;
        }
    }

    fn note(&self, conversation: &ConversationEgress, how: EgressMethod, refusal: &ProxyRefusal) {
        let target = Authority::parse(&refusal.target).ok();
        if let (Some(target), Some(remedy), true) = (&target, &refusal.remedy, refusal.is_news()) {
            conversation.note_refused(RefusedHost {
                target: target.to_string(),
                remedy: remedy.words(self.0.allowing),
            });
        }
        let (host, port) = match target {
            Some(target) => (target.host.to_string(), target.port),
            None => (refusal.target.clone(), 0),
        };
        let reason = format!("{}: {}", refusal.code, refusal.reason);
        self.0.recorder.write(&EgressEntry {
            conversation: conversation.key().clone(),
            host,
            port,
            address: None,
            how,
            rule: refusal.rule.clone().unwrap_or_default(),
            verdict: EgressDecision::Refused { reason },
            bytes_up: 0,
            bytes_down: 0,
            duration: std::time::Duration::ZERO,
        });
    }
}

/// Closes so that the last words arrive: closing a socket with unread bytes resets it.
async fn linger(mut client: PeekedStream) {
    // A client that closes properly needs a round trip; one that does not is not waited for.
    const LINGER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);
    const MOST_DRAINED_BYTES: usize = 1024 * 1024;
    let drain = async {
        let _ = client.shutdown().await;
        let mut drained = 0;
        while let Ok(read @ 1..) = client.read_more().await {
            drained += read;
            let _ = client.take_ahead(client.ahead().len());
            if drained > MOST_DRAINED_BYTES {
                break;
            }
        }
    };
    let _ = timeout(LINGER_TIMEOUT, drain).await;
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}
