//! The proxy: one connection of a sandbox in, checked, at most one connection to the world out.
//!
//! The order is the argument. A target is parsed, judged by the rules, put to a person where no rule
//! speaks, resolved once, and all its addresses are checked; in a tunnel the first TLS message is read
//! and compared; only then is anything dialled. Every step hands the next a value that only it can make.

mod admit;
mod connect;
mod first_flight;
mod footing;
mod intercept;
mod requests;
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

use crate::ask::Asker;
use crate::audit::{Decision, Entry, How, Record};
use crate::conversation::Conversation;
use crate::credential::{CertificateAuthority, Roots, RootsError};
use crate::crowd::Crowd;
use crate::http::head::{HeadError, RequestHead};
use crate::http::source::{ReadHeadError, Source};
use crate::limits::Limits;
use crate::refusal::Refusal;
use crate::remedy::Allowing;
use crate::resolve::Resolver;
use crate::rules::Authority;
use crate::stream::{Buffered, Stream, Wire};

use tunnel::Tunnel;

/// The only way out. Cheap to clone.
#[derive(Clone)]
pub struct Proxy(Arc<Inner>);

struct Inner {
    limits: Limits,
    resolver: Arc<dyn Resolver>,
    record: Arc<dyn Record>,
    asker: Option<Arc<dyn Asker>>,
    interception: Option<Interception>,
    allowing: Allowing,
    crowd: Arc<Crowd>,
}

struct Interception {
    authority: Arc<CertificateAuthority>,
    upstream: Arc<rustls::ClientConfig>,
}

impl Proxy {
    pub fn new(limits: Limits, resolver: Arc<dyn Resolver>, record: Arc<dyn Record>) -> Self {
        Self(Arc::new(Inner {
            crowd: Crowd::new(limits.everybody),
            limits,
            resolver,
            record,
            asker: None,
            interception: None,
            allowing: Allowing::default(),
        }))
    }

    /// Unknown hosts are put to `asker` instead of being refused at once.
    pub fn asking(self, asker: Arc<dyn Asker>) -> Self {
        self.with(|inner| inner.asker = Some(asker))
    }

    /// Refusals tell how hosts are let through here.
    pub fn advising(self, allowing: Allowing) -> Self {
        self.with(|inner| inner.allowing = allowing)
    }

    /// Hosts with a credential are terminated with certificates of `authority`; the origin behind must
    /// be vouched for by `roots`.
    pub fn intercepting(
        self,
        authority: Arc<CertificateAuthority>,
        roots: &Roots,
    ) -> Result<Self, RootsError> {
        let upstream = roots.client_config()?;
        Ok(self.with(|inner| {
            inner.interception = Some(Interception {
                authority,
                upstream,
            });
        }))
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let inner = &self.0;
        let mut inner = Inner {
            limits: inner.limits.clone(),
            resolver: Arc::clone(&inner.resolver),
            record: Arc::clone(&inner.record),
            asker: inner.asker.clone(),
            interception: inner
                .interception
                .as_ref()
                .map(|interception| Interception {
                    authority: Arc::clone(&interception.authority),
                    upstream: Arc::clone(&interception.upstream),
                }),
            allowing: inner.allowing,
            crowd: Arc::clone(&inner.crowd),
        };
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// Whether somebody is asked about unknown hosts.
    pub fn asks(&self) -> bool {
        self.0.asker.is_some()
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Serves one connection of this conversation until it ends.
    ///
    /// When `stop` is cancelled, what is under way is finished and no further request is taken.
    /// Dropping the future cuts everything.
    pub async fn handle(
        &self,
        stream: impl Stream + 'static,
        conversation: Arc<Conversation>,
        stop: CancellationToken,
    ) {
        self.tend(Wire::new(stream), conversation, stop).await;
    }

    /// The same for a connection of a port that counts them. One that is cut to make room ends.
    pub(crate) async fn handle_tracked(
        &self,
        stream: TcpStream,
        tracked: TrackedConnection,
        conversation: Arc<Conversation>,
        stop: CancellationToken,
    ) {
        let tracked = Arc::new(tracked);
        let client = Wire::new(stream).tracked_by(Arc::clone(&tracked));
        tokio::select! {
            () = self.tend(client, conversation, stop) => {}
            () = tracked.cut() => {}
        }
    }

    /// The same for a stream whose bytes are in memory already, as those out of a warden are.
    pub async fn handle_buffered(
        &self,
        stream: impl Buffered + 'static,
        conversation: Arc<Conversation>,
        stop: CancellationToken,
    ) {
        self.tend(Wire::over(stream), conversation, stop).await;
    }

    async fn tend(
        &self,
        mut client: Wire,
        conversation: Arc<Conversation>,
        stop: CancellationToken,
    ) {
        let Some(_place) = self.0.crowd.enter(conversation.account()) else {
            let refusal = Refusal::busy();
            self.note(&conversation, How::Http, &refusal);
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
        mut client: Wire,
        conversation: &Arc<Conversation>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        let first = timeout(self.0.limits.head_time, client.read_more()).await;
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
                        self.turn_away(client, conversation, How::Http, &refusal, false)
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
                        requests::Front::Proxy,
                        conversation,
                        stop,
                    )
                    .await
                }
            }
            _ => {
                let refusal = Refusal::bad_request("", "this port speaks HTTP and SOCKS5 only");
                self.turn_away(client, conversation, How::Http, &refusal, false)
                    .await;
                None
            }
        }
    }

    /// The next request head; `None` where the connection ended before one began.
    async fn read_request(&self, client: &mut Wire) -> Result<Option<RequestHead>, Refusal> {
        let limits = &self.0.limits;
        let (stream, ahead) = client.parts();
        let bytes = Source::new(stream, ahead)
            .head(limits.head_bytes, limits.head_time)
            .await;
        let bytes = match bytes {
            Ok(Some(bytes)) => bytes,
            Ok(None) | Err(ReadHeadError::Broken(_) | ReadHeadError::Cut) => return Ok(None),
            Err(ReadHeadError::TooSlow) => return Err(Refusal::too_slow()),
            Err(error @ ReadHeadError::TooLarge { .. }) => {
                return Err(Refusal::too_large(error.to_string()));
            }
        };
        client.request_came();
        let refuse = |error: HeadError| Refusal::bad_request("", error.to_string());
        RequestHead::parse(&bytes).map(Some).map_err(refuse)
    }

    /// Says no over HTTP and writes it down.
    async fn turn_away(
        &self,
        mut client: Wire,
        conversation: &Conversation,
        how: How,
        refusal: &Refusal,
        as_json: bool,
    ) {
        self.note(conversation, how, refusal);
        let response = refusal.response(as_json, self.0.allowing);
        let written = timeout(self.0.limits.head_time, client.write_all(&response)).await;
        if matches!(written, Ok(Ok(()))) {
            linger(client).await;
        }
    }

    fn note(&self, conversation: &Conversation, how: How, refusal: &Refusal) {
        let target = Authority::parse(&refusal.target).ok();
        let (host, port) = match target {
            Some(target) => (target.host.to_string(), target.port),
            None => (refusal.target.clone(), 0),
        };
        let reason = format!("{}: {}", refusal.code, refusal.reason);
        self.0.record.write(&Entry {
            conversation: conversation.key().clone(),
            host,
            port,
            address: None,
            how,
            rule: refusal.rule.clone().unwrap_or_default(),
            verdict: Decision::Refused { reason },
            bytes_up: 0,
            bytes_down: 0,
            duration: std::time::Duration::ZERO,
        });
    }
}

/// Closes so that the last words arrive: closing a socket with unread bytes resets it.
async fn linger(mut client: Wire) {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);
    const MOST_BYTES: usize = 1024 * 1024;
    let drain = async {
        let _ = client.shutdown().await;
        let mut drained = 0;
        while let Ok(read @ 1..) = client.read_more().await {
            drained += read;
            let _ = client.take_ahead(client.ahead().len());
            if drained > MOST_BYTES {
                break;
            }
        }
    };
    let _ = timeout(PATIENCE, drain).await;
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}
