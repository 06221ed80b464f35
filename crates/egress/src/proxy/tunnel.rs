//! A tunnel, from an admitted name to relayed bytes.
//!
//! For TLS the order is: resolve and check (so that a refusal can still be put into words), say yes to
//! the sandbox, read its ClientHello, compare the name, and only then dial. Nothing is sent to a host
//! before the bytes that would go there have been seen to be meant for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Proxy;
use super::admit::CheckedTarget;
use super::first_flight::{FirstFlight, check_hello};
use super::revocation::RevocationWatch;
use crate::audit::{ConnectionRecord, EgressMethod};
use crate::conversation::ConversationEgress;
use crate::credential::FrameRedactor;
use crate::refusal::ProxyRefusal;
use crate::relay::relay;
use crate::rules::{AllowedTransport, Authority, ProxyMethod};
use crate::stream::PeekedStream;
use crate::tls::alert::{TlsAlert, fatal};

/// Two connections whose bytes may now be relayed.
pub(super) struct Tunnel {
    pub(super) client: PeekedStream,
    pub(super) upstream: PeekedStream,
    pub(super) record: ConnectionRecord,
    pub(super) redactor: Option<FrameRedactor>,
    pub(super) revocation: RevocationWatch,
}

/// The protocol in which the sandbox asked for the tunnel.
#[derive(Clone, Copy)]
pub(super) enum TunnelProtocol {
    Http { as_json: bool },
    Socks,
}

impl Tunnel {
    pub(super) async fn run(self, idle: Duration) {
        let Self {
            client,
            upstream,
            record,
            redactor,
            revocation,
        } = self;
        tokio::select! {
            relayed = relay(client, upstream, &record.meter, idle, redactor) => {
                if let Err(error) = relayed {
                    record.fault(error);
                }
            }
            why = revocation.ended() => record.fault(why),
        }
    }
}

impl Proxy {
    pub(super) async fn tunnel(
        &self,
        client: PeekedStream,
        target: Authority,
        protocol: TunnelProtocol,
        conversation: &Arc<ConversationEgress>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        let found = match self.admit(conversation, target, ProxyMethod::Tunnel).await {
            Ok(admitted) => self.find(conversation, admitted).await,
            Err(refusal) => Err(refusal),
        };
        match found {
            Err(refusal) => {
                self.say_no(client, protocol, conversation, &refusal).await;
                None
            }
            Ok(found) if found.admitted().transport() == AllowedTransport::Tcp => {
                self.plain_tunnel(client, &found, protocol, conversation)
                    .await
            }
            Ok(found) => {
                self.tls_tunnel(client, found, protocol, conversation, stop)
                    .await
            }
        }
    }

    /// Any bytes, because a rule says so. The server may speak first, so it is dialled first.
    async fn plain_tunnel(
        &self,
        mut client: PeekedStream,
        found: &CheckedTarget,
        protocol: TunnelProtocol,
        conversation: &Arc<ConversationEgress>,
    ) -> Option<Tunnel> {
        match self.reach(found).await {
            Ok((upstream, peer)) => {
                client.write_all(protocol.yes()).await.ok()?;
                let record =
                    self.open_record(conversation, found.admitted(), &peer, protocol.how());
                Some(Tunnel {
                    client,
                    upstream,
                    record,
                    redactor: None,
                    revocation: RevocationWatch::new(self, conversation, found.admitted(), &peer),
                })
            }
            Err(refusal) => {
                self.say_no(client, protocol, conversation, &refusal).await;
                None
            }
        }
    }

    async fn tls_tunnel(
        &self,
        mut client: PeekedStream,
        found: CheckedTarget,
        protocol: TunnelProtocol,
        conversation: &Arc<ConversationEgress>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        client.write_all(protocol.yes()).await.ok()?;
        let host = found.admitted().target().host.clone();
        let head_time = self.0.limits.head_time;
        let length = match check_hello(&mut client, &host, head_time).await {
            Ok(length) => length,
            Err(turned) => {
                let target = found.admitted().target();
                self.cut(client, target, protocol.how(), conversation, turned)
                    .await;
                return None;
            }
        };
        let credentials = conversation.credentials_for(found.admitted().target());
        if let (Some(interception), false) = (&self.0.interception, credentials.is_empty()) {
            return self
                .intercept(client, found, interception, credentials, conversation, stop)
                .await;
        }
        let target = found.admitted().target();
        let (mut upstream, peer) = match self.reach(&found).await {
            Ok(reached) => reached,
            Err(refusal) => {
                let turned = TunnelRefusal::away(refusal.reason, TlsAlert::InternalError);
                self.cut(client, target, protocol.how(), conversation, turned)
                    .await;
                return None;
            }
        };
        // Opened before a byte is passed on: also a flight that fails has to be in the record.
        let record = self.open_record(conversation, found.admitted(), &peer, protocol.how());
        let flight = FirstFlight {
            client: &mut client,
            upstream: &mut upstream,
            meter: &record.meter,
        };
        match flight.pass_on(length, &target.host, head_time).await {
            Ok(()) => Some(Tunnel {
                client,
                upstream,
                record,
                redactor: None,
                revocation: RevocationWatch::new(self, conversation, found.admitted(), &peer),
            }),
            Err(turned) => {
                record.fault(&turned.reason);
                self.hang_up(client, turned.alert).await;
                None
            }
        }
    }

    /// Ends a tunnel that already got its yes: all that is left is a TLS alert.
    pub(super) async fn cut(
        &self,
        client: PeekedStream,
        target: &Authority,
        how: EgressMethod,
        conversation: &ConversationEgress,
        turned: TunnelRefusal,
    ) {
        let mut refusal = ProxyRefusal::bad_gateway(target, turned.reason);
        refusal.code = "tunnel";
        self.note(conversation, how, &refusal);
        self.hang_up(client, turned.alert).await;
    }

    async fn hang_up(&self, mut client: PeekedStream, alert: TlsAlert) {
        let alert = fatal(alert);
        // Bounded: a client that reads nothing would keep its place.
        let written = timeout(self.0.limits.head_time, client.write_all(&alert)).await;
        if matches!(written, Ok(Ok(()))) {
            super::linger(client).await;
        }
    }
}

/// The reason why a tunnel ends, and the alert that tells a TLS client.
pub(super) struct TunnelRefusal {
    pub(super) reason: String,
    pub(super) alert: TlsAlert,
}

impl TunnelRefusal {
    pub(super) fn away(reason: impl Into<String>, alert: TlsAlert) -> Self {
        Self {
            reason: reason.into(),
            alert,
        }
    }
}

impl TunnelProtocol {
    fn yes(self) -> &'static [u8] {
        match self {
            Self::Http { .. } => b"HTTP/1.1 200 Connection established\r\n\r\n",
            Self::Socks => &super::socks::SUCCEEDED,
        }
    }

    fn how(self) -> EgressMethod {
        match self {
            Self::Http { .. } => EgressMethod::Connect,
            Self::Socks => EgressMethod::Socks,
        }
    }
}
