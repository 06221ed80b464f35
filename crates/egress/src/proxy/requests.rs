//! Plain HTTP requests, one after the other on a kept connection, each checked anew.

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Proxy;
use super::admit::{AdmittedTarget, ReachedPeer};
use super::intercept::InterceptedTunnel;
use super::revocation::RevocationWatch;
use super::rewrite::{
    RequestAdditions, absolute_target, check_host, origin_target, outgoing, wants_json,
};
use super::tunnel::Tunnel;
use crate::audit::EgressMethod;
use crate::conversation::ConversationEgress;
use crate::credential::{Credential, CredentialRedactor, FrameRedactor};
use crate::http::exchange::{self, ExchangeEnd, ExchangeError, ExchangeFailure};
use crate::http::framing::BodyFraming;
use crate::http::head::RequestHead;
use crate::http::source::ReadAhead;
use crate::refusal::ProxyRefusal;
use crate::rules::{Authority, ProxyMethod};
use crate::stream::PeekedStream;
use crate::upstream::UpstreamRoute;

/// The connection that requests come from.
pub(super) enum RequestSource {
    /// Straight from the sandbox: each names its own target.
    Proxy,
    /// Out of a tunnel whose TLS ended here: all have one target.
    Intercepted(Box<InterceptedTunnel>),
}

/// A connection that may serve the next request to the same target.
struct IdleUpstream {
    target: Authority,
    connection: UpstreamConnection,
}

/// A connection that a request is sent over.
struct UpstreamConnection {
    wire: PeekedStream,
    peer: ReachedPeer,
    /// The proxy that reads our requests and passes them on, where one does.
    forwarder: Option<UpstreamRoute>,
}

/// What becomes of the connection after a request.
enum AfterRequest {
    /// The connection may carry another request.
    Again,
    End,
    /// An answer that had begun cannot be finished: no clean close may make it look whole.
    Broken,
    Tunnel(Box<Tunnel>),
}

impl Proxy {
    pub(super) async fn requests(
        &self,
        mut client: PeekedStream,
        first: Option<RequestHead>,
        front: RequestSource,
        conversation: &Arc<ConversationEgress>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        let mut kept = None;
        let mut head = first;
        loop {
            let request = match head.take() {
                Some(head) => Ok(Some(head)),
                None => self.next_request(&mut client, stop).await,
            };
            let (refusal, as_json) = match request {
                Ok(None) => {
                    let _ = timeout(self.0.limits.head_time, client.shutdown()).await;
                    return None;
                }
                Ok(Some(head))
                    if head.method == "GET" && head.target == "/health" && front.is_proxy() =>
                {
                    let _ = client.write_all(HEALTHY).await;
                    super::linger(client).await;
                    return None;
                }
                Ok(Some(head)) => {
                    let as_json = wants_json(&head.fields);
                    match self
                        .serve(&mut client, head, &front, &mut kept, conversation)
                        .await
                    {
                        Ok(AfterRequest::Again) if !stop.is_cancelled() => {
                            client.answered();
                            continue;
                        }
                        Ok(AfterRequest::Again | AfterRequest::End) => {
                            super::linger(client).await;
                            return None;
                        }
                        Ok(AfterRequest::Broken) => return None,
                        Ok(AfterRequest::Tunnel(parts)) => {
                            // The client comes back in here, as the request loop needed it until
                            // now.
                            return Some(Tunnel { client, ..*parts });
                        }
                        Err(refusal) => (refusal, as_json),
                    }
                }
                Err(refusal) => (refusal, false),
            };
            self.turn_away(client, conversation, front.how(), &refusal, as_json)
                .await;
            return None;
        }
    }

    async fn next_request(
        &self,
        client: &mut PeekedStream,
        stop: &CancellationToken,
    ) -> Result<Option<RequestHead>, ProxyRefusal> {
        let (stream, ahead) = client.parts();
        let mut source = ReadAhead::new(stream, ahead);
        let arrived = stop
            // Only here: a request that has begun is finished, and no other is taken.
            .run_until_cancelled(source.first_byte(self.0.limits.idle))
            .await;
        match arrived {
            Some(Some(Ok(true))) => self.read_request(client).await,
            _ => Ok(None),
        }
    }

    async fn serve(
        &self,
        client: &mut PeekedStream,
        head: RequestHead,
        front: &RequestSource,
        kept: &mut Option<IdleUpstream>,
        conversation: &Arc<ConversationEgress>,
    ) -> Result<AfterRequest, ProxyRefusal> {
        let (target, path) = front.target(&head)?;
        check_host(&head, &target, front.default_port())?;
        if matches!(head.method.as_str(), "TRACE" | "CONNECT") {
            return Err(ProxyRefusal::method(&target, &head.method));
        }
        let framing = BodyFraming::of_request(&head)
            .map_err(|error| ProxyRefusal::bad_request(&target.to_string(), error.to_string()))?;
        let admitted = match front {
            RequestSource::Proxy => {
                self.admit(conversation, target.clone(), ProxyMethod::PlainHttp)
                    .await?
            }
            RequestSource::Intercepted(intercepted) => {
                self.admit_again(conversation, intercepted.admitted())
                    .await?
            }
        };
        // Before anything is dialled: what may not be asked there is not even tried.
        let credentials = front.credentials_of(conversation, &target, (&head.method, &path))?;
        let upgrades = head.fields.lists("connection", "upgrade");
        let (upstream, admitted) = self
            .upstream(conversation, admitted, front, upgrades, kept)
            .await?;
        let UpstreamConnection {
            wire: mut upstream,
            peer,
            forwarder,
        } = upstream;

        if let Some(forwarder) = &forwarder
            && conversation.login_guesses(forwarder).is_exhausted()
        {
            return Err(ProxyRefusal::login_guessed(&target));
        }
        let request = outgoing(
            head,
            &target,
            front.default_port(),
            &path,
            framing,
            &RequestAdditions {
                credentials: &credentials,
                forwarder: forwarder.as_ref(),
            },
        );
        // Written down before a byte of the request leaves.
        let record = self.open_record(conversation, &admitted, &peer, front.how());
        let redactor = front.redactor().or_else(|| {
            let forwarder = forwarder.as_ref()?;
            forwarder.redactor(conversation.login_guesses(forwarder))
        });
        let limits = &self.0.limits;
        let revocation = || RevocationWatch::new(self, conversation, &admitted, &peer);
        let exchanged = exchange::run(
            client,
            &mut upstream,
            &request,
            &record.meter,
            limits,
            redactor.clone(),
        );
        // Also in the middle of an exchange: what is allowed no more is not carried to its end.
        let ended = tokio::select! {
            ended = exchanged => ended,
            why = revocation().ended() => {
                record.fault(why);
                return Ok(AfterRequest::Broken);
            }
        };
        match ended {
            Ok(ExchangeEnd::Upgraded) => {
                // A stand-in for the moment: the loop still holds the client, and puts it in.
                let client = PeekedStream::new(tokio::io::empty());
                Ok(AfterRequest::Tunnel(Box::new(Tunnel {
                    client,
                    upstream,
                    record,
                    redactor: redactor.as_ref().map(FrameRedactor::new),
                    revocation: revocation(),
                })))
            }
            Ok(ExchangeEnd::Answered {
                keep_client,
                keep_upstream,
            }) => {
                if keep_upstream {
                    let connection = UpstreamConnection {
                        wire: upstream,
                        peer,
                        forwarder,
                    };
                    *kept = Some(IdleUpstream { target, connection });
                }
                Ok(if keep_client {
                    AfterRequest::Again
                } else {
                    AfterRequest::End
                })
            }
            Err(ExchangeFailure { error, begun }) => {
                record.fault(&error);
                match (begun, &error, &forwarder) {
                    (true, _, _) => Ok(AfterRequest::Broken),
                    (false, ExchangeError::ProxyLogin, Some(forwarder)) => Err(
                        ProxyRefusal::by_upstream(&target, &forwarder.login_refused()),
                    ),
                    (false, error, _) => Err(told(&target, error)),
                }
            }
        }
    }

    /// The kept connection where it is to the same target and still quiet, else a new one.
    async fn upstream(
        &self,
        conversation: &ConversationEgress,
        admitted: AdmittedTarget,
        front: &RequestSource,
        upgrades: bool,
        kept: &mut Option<IdleUpstream>,
    ) -> Result<(UpstreamConnection, AdmittedTarget), ProxyRefusal> {
        let fits = |kept: &IdleUpstream| {
            // A proxy that reads requests does not let them become something else.
            let may_upgrade = !upgrades || kept.connection.forwarder.is_none();
            kept.target == *admitted.target() && may_upgrade
        };
        // Taken out either way: one that does not fit this request is closed and not kept beside
        // the next.
        if let Some(mut kept) = kept.take().filter(fits)
            && kept.connection.wire.is_quiet().await
        {
            return Ok((kept.connection, admitted));
        }
        let (wire, peer, forwarder, admitted) = match front {
            RequestSource::Proxy => {
                let found = self.find(conversation, admitted).await?;
                // Company proxies seldom let CONNECT through to a port of plain HTTP.
                let forwarder = found.upstream().filter(|_| !upgrades).cloned();
                let (wire, peer) = match &forwarder {
                    Some(route) => self.reach_forwarder(&found, route).await?,
                    None => self.reach(&found).await?,
                };
                (wire, peer, forwarder, found.into_admitted())
            }
            RequestSource::Intercepted(intercepted) => {
                let (wire, peer) = self.reach_over_tls(intercepted).await?;
                (wire, peer, None, admitted)
            }
        };
        let connection = UpstreamConnection {
            wire,
            peer,
            forwarder,
        };
        Ok((connection, admitted))
    }
}

const HEALTHY: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";

/// What the sandbox learns of an exchange that failed before its answer began.
fn told(target: &Authority, error: &ExchangeError) -> ProxyRefusal {
    match error {
        ExchangeError::Request(error) => {
            ProxyRefusal::bad_request(&target.to_string(), error.to_string())
        }
        ExchangeError::Budget(spent) => ProxyRefusal::budget(target, *spent),
        ExchangeError::Slow { .. } => ProxyRefusal::slow(target),
        error => ProxyRefusal::bad_gateway(target, format!("{target}: {error}")),
    }
}

impl RequestSource {
    fn target(&self, head: &RequestHead) -> Result<(Authority, String), ProxyRefusal> {
        match self {
            Self::Proxy => absolute_target(&head.target),
            Self::Intercepted(intercepted) => {
                let target = intercepted.target();
                let path = origin_target(&head.target).ok_or_else(|| {
                    ProxyRefusal::bad_request(
                        &target.to_string(),
                        "the request target is malformed",
                    )
                })?;
                Ok((target.clone(), path))
            }
        }
    }

    fn is_proxy(&self) -> bool {
        matches!(self, Self::Proxy)
    }

    fn default_port(&self) -> u16 {
        match self {
            Self::Proxy => 80,
            Self::Intercepted(_) => 443,
        }
    }

    fn how(&self) -> EgressMethod {
        match self {
            Self::Proxy => EgressMethod::Http,
            Self::Intercepted(_) => EgressMethod::Credential,
        }
    }

    /// The credentials that a request for this path gets. They are looked at anew for each request: one that
    /// was taken back since the tunnel was opened goes nowhere any more.
    fn credentials_of(
        &self,
        conversation: &ConversationEgress,
        target: &Authority,
        (method, path): (&str, &str),
    ) -> Result<Vec<Credential>, ProxyRefusal> {
        let Self::Intercepted(intercepted) = self else {
            return Ok(Vec::new());
        };
        let opened_with = intercepted.credentials().iter();
        let held: Vec<_> = opened_with
            .filter(|one| conversation.holds(one))
            .cloned()
            .collect();
        // Not without it: the sandbox would reach the host by a key of its own, or find out what it
        // says to strangers.
        if held.is_empty() {
            return Err(ProxyRefusal::credential_taken_back(target));
        }
        let meant: Vec<_> = held
            .into_iter()
            .filter(|one| one.covers(method, path))
            .collect();
        match meant.is_empty() {
            true => Err(ProxyRefusal::outside_paths(target)),
            false => Ok(meant),
        }
    }

    fn redactor(&self) -> Option<CredentialRedactor> {
        match self {
            Self::Proxy => None,
            Self::Intercepted(intercepted) => Some(intercepted.redactor()),
        }
    }
}
