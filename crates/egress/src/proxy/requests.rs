//! Plain HTTP requests, one after the other on a kept connection, each checked anew.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Proxy;
use super::admit::Admitted;
use super::footing::Footing;
use super::intercept::Intercepted;
use super::rewrite::{absolute_target, check_host, origin_target, outgoing, wants_json};
use super::tunnel::Tunnel;
use crate::audit::How;
use crate::conversation::Conversation;
use crate::credential::{FrameRedactor, Redactor};
use crate::http::exchange::{self, Ended, ExchangeError, Failed};
use crate::http::framing::Framing;
use crate::http::head::RequestHead;
use crate::http::source::Source;
use crate::refusal::Refusal;
use crate::rules::{Authority, Via};
use crate::stream::Wire;

/// Where requests come from.
pub(super) enum Front {
    /// Straight from the sandbox: each names its own target.
    Proxy,
    /// Out of a tunnel whose TLS ended here: all have one target.
    Intercepted(Box<Intercepted>),
}

/// A connection that may serve the next request to the same target.
struct Kept {
    target: Authority,
    wire: Wire,
    address: SocketAddr,
}

enum Next {
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
        mut client: Wire,
        first: Option<RequestHead>,
        front: Front,
        conversation: &Arc<Conversation>,
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
                        Ok(Next::Again) if !stop.is_cancelled() => {
                            client.answered();
                            continue;
                        }
                        Ok(Next::Again | Next::End) => {
                            super::linger(client).await;
                            return None;
                        }
                        Ok(Next::Broken) => return None,
                        Ok(Next::Tunnel(parts)) => return Some(Tunnel { client, ..*parts }),
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
        client: &mut Wire,
        stop: &CancellationToken,
    ) -> Result<Option<RequestHead>, Refusal> {
        let (stream, ahead) = client.parts();
        let mut source = Source::new(stream, ahead);
        let arrived = stop
            .run_until_cancelled(source.first_byte(self.0.limits.idle))
            .await;
        match arrived {
            Some(Some(Ok(true))) => self.read_request(client).await,
            _ => Ok(None),
        }
    }

    async fn serve(
        &self,
        client: &mut Wire,
        head: RequestHead,
        front: &Front,
        kept: &mut Option<Kept>,
        conversation: &Arc<Conversation>,
    ) -> Result<Next, Refusal> {
        let (target, path) = front.target(&head)?;
        check_host(&head, &target, front.default_port())?;
        if matches!(head.method.as_str(), "TRACE" | "CONNECT") {
            return Err(Refusal::method(&target, &head.method));
        }
        let framing = Framing::of_request(&head)
            .map_err(|error| Refusal::bad_request(&target.to_string(), error.to_string()))?;
        let admitted = match front {
            Front::Proxy => {
                self.admit(conversation, target.clone(), Via::PlainHttp)
                    .await?
            }
            Front::Intercepted(intercepted) => {
                self.admit_again(conversation, intercepted.admitted())
                    .await?
            }
        };
        let (mut upstream, address, admitted) =
            self.upstream(conversation, admitted, front, kept).await?;

        let request = outgoing(
            head,
            &target,
            front.default_port(),
            &path,
            framing,
            front.credentials(),
        );
        let ticket = self.ticket(conversation, &admitted, address, front.how());
        let redactor = front.redactor();
        let limits = &self.0.limits;
        let footing = || Footing::new(self, conversation, &admitted, address);
        let exchanged = exchange::run(
            client,
            &mut upstream,
            &request,
            &ticket.meter,
            limits,
            redactor.clone(),
        );
        let ended = tokio::select! {
            ended = exchanged => ended,
            why = footing().lost() => {
                ticket.fault(why);
                return Ok(Next::Broken);
            }
        };
        match ended {
            Ok(Ended::Upgraded) => {
                let client = Wire::new(tokio::io::empty());
                Ok(Next::Tunnel(Box::new(Tunnel {
                    client,
                    upstream,
                    ticket,
                    redactor: redactor.as_ref().map(FrameRedactor::new),
                    footing: footing(),
                })))
            }
            Ok(Ended::Answered {
                keep_client,
                keep_upstream,
            }) => {
                if keep_upstream {
                    *kept = Some(Kept {
                        target,
                        wire: upstream,
                        address,
                    });
                }
                Ok(if keep_client { Next::Again } else { Next::End })
            }
            Err(Failed { error, begun }) => {
                ticket.fault(&error);
                if begun {
                    Ok(Next::Broken)
                } else {
                    Err(told(&target, &error))
                }
            }
        }
    }

    /// The kept connection where it is to the same target and still quiet, else a new one.
    async fn upstream(
        &self,
        conversation: &Conversation,
        admitted: Admitted,
        front: &Front,
        kept: &mut Option<Kept>,
    ) -> Result<(Wire, SocketAddr, Admitted), Refusal> {
        if let Some(mut kept) = kept.take().filter(|kept| kept.target == *admitted.target())
            && kept.wire.is_quiet().await
        {
            return Ok((kept.wire, kept.address, admitted));
        }
        match front {
            Front::Proxy => {
                let found = self.find(conversation, admitted).await?;
                let (wire, address) = self.reach(&found).await?;
                Ok((wire, address, found.into_admitted()))
            }
            Front::Intercepted(intercepted) => {
                let (wire, address) = self.reach_over_tls(intercepted).await?;
                Ok((wire, address, admitted))
            }
        }
    }
}

const HEALTHY: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";

/// What the sandbox learns of an exchange that failed before its answer began.
fn told(target: &Authority, error: &ExchangeError) -> Refusal {
    match error {
        ExchangeError::Request(error) => {
            Refusal::bad_request(&target.to_string(), error.to_string())
        }
        ExchangeError::Budget(spent) => Refusal::budget(target, *spent),
        ExchangeError::Slow { .. } => Refusal::slow(target),
        error => Refusal::bad_gateway(target, format!("{target}: {error}")),
    }
}

impl Front {
    fn target(&self, head: &RequestHead) -> Result<(Authority, String), Refusal> {
        match self {
            Self::Proxy => absolute_target(&head.target),
            Self::Intercepted(intercepted) => {
                let target = intercepted.target();
                let path = origin_target(&head.target).ok_or_else(|| {
                    Refusal::bad_request(&target.to_string(), "the request target is malformed")
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

    fn how(&self) -> How {
        match self {
            Self::Proxy => How::Http,
            Self::Intercepted(_) => How::Credential,
        }
    }

    fn credentials(&self) -> &[crate::credential::Credential] {
        match self {
            Self::Proxy => &[],
            Self::Intercepted(intercepted) => intercepted.credentials(),
        }
    }

    fn redactor(&self) -> Option<Redactor> {
        match self {
            Self::Proxy => None,
            Self::Intercepted(intercepted) => Some(intercepted.redactor()),
        }
    }
}
