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
use super::admit::Found;
use super::first_flight::{FirstFlight, check_hello};
use super::footing::Footing;
use crate::audit::{How, Ticket};
use crate::conversation::Conversation;
use crate::credential::FrameRedactor;
use crate::refusal::Refusal;
use crate::relay::relay;
use crate::rules::{Authority, Transport, Via};
use crate::stream::Wire;
use crate::tls::alert::{Alert, fatal};

/// Two connections that may now talk.
pub(super) struct Tunnel {
    pub(super) client: Wire,
    pub(super) upstream: Wire,
    pub(super) ticket: Ticket,
    pub(super) redactor: Option<FrameRedactor>,
    pub(super) footing: Footing,
}

/// In which protocol the sandbox asked for the tunnel.
#[derive(Clone, Copy)]
pub(super) enum Greeter {
    Http { as_json: bool },
    Socks,
}

impl Tunnel {
    pub(super) async fn run(self, idle: Duration) {
        let Self {
            client,
            upstream,
            ticket,
            redactor,
            footing,
        } = self;
        tokio::select! {
            relayed = relay(client, upstream, &ticket.meter, idle, redactor) => {
                if let Err(error) = relayed {
                    ticket.fault(error);
                }
            }
            why = footing.lost() => ticket.fault(why),
        }
    }
}

impl Proxy {
    pub(super) async fn tunnel(
        &self,
        client: Wire,
        target: Authority,
        greeter: Greeter,
        conversation: &Arc<Conversation>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        let found = match self.admit(conversation, target, Via::Tunnel).await {
            Ok(admitted) => self.find(conversation, admitted).await,
            Err(refusal) => Err(refusal),
        };
        match found {
            Err(refusal) => {
                self.say_no(client, greeter, conversation, &refusal).await;
                None
            }
            Ok(found) if found.admitted().transport() == Transport::Tcp => {
                self.plain_tunnel(client, &found, greeter, conversation)
                    .await
            }
            Ok(found) => {
                self.tls_tunnel(client, found, greeter, conversation, stop)
                    .await
            }
        }
    }

    /// Any bytes, because a rule says so. The server may speak first, so it is dialled first.
    async fn plain_tunnel(
        &self,
        mut client: Wire,
        found: &Found,
        greeter: Greeter,
        conversation: &Arc<Conversation>,
    ) -> Option<Tunnel> {
        match self.reach(found).await {
            Ok((upstream, address)) => {
                client.write_all(greeter.yes()).await.ok()?;
                let ticket = self.ticket(conversation, found.admitted(), address, greeter.how());
                Some(Tunnel {
                    client,
                    upstream,
                    ticket,
                    redactor: None,
                    footing: Footing::new(self, conversation, found.admitted(), address),
                })
            }
            Err(refusal) => {
                self.say_no(client, greeter, conversation, &refusal).await;
                None
            }
        }
    }

    async fn tls_tunnel(
        &self,
        mut client: Wire,
        found: Found,
        greeter: Greeter,
        conversation: &Arc<Conversation>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        client.write_all(greeter.yes()).await.ok()?;
        let host = found.admitted().target().host.clone();
        let head_time = self.0.limits.head_time;
        let length = match check_hello(&mut client, &host, head_time).await {
            Ok(length) => length,
            Err(turned) => {
                let target = found.admitted().target();
                self.cut(client, target, greeter.how(), conversation, turned)
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
        let (mut upstream, address) = match self.reach(&found).await {
            Ok(reached) => reached,
            Err(refusal) => {
                let turned = Turned::away(refusal.reason, Alert::InternalError);
                self.cut(client, target, greeter.how(), conversation, turned)
                    .await;
                return None;
            }
        };
        let ticket = self.ticket(conversation, found.admitted(), address, greeter.how());
        let flight = FirstFlight {
            client: &mut client,
            upstream: &mut upstream,
            meter: &ticket.meter,
        };
        match flight.pass_on(length, &target.host, head_time).await {
            Ok(()) => Some(Tunnel {
                client,
                upstream,
                ticket,
                redactor: None,
                footing: Footing::new(self, conversation, found.admitted(), address),
            }),
            Err(turned) => {
                ticket.fault(&turned.reason);
                self.hang_up(client, turned.alert).await;
                None
            }
        }
    }

    /// Ends a tunnel that already got its yes: all that is left is a TLS alert.
    pub(super) async fn cut(
        &self,
        client: Wire,
        target: &Authority,
        how: How,
        conversation: &Conversation,
        turned: Turned,
    ) {
        let mut refusal = Refusal::bad_gateway(target, turned.reason);
        refusal.code = "tunnel";
        self.note(conversation, how, &refusal);
        self.hang_up(client, turned.alert).await;
    }

    async fn hang_up(&self, mut client: Wire, alert: Alert) {
        let alert = fatal(alert);
        let written = timeout(self.0.limits.head_time, client.write_all(&alert)).await;
        if matches!(written, Ok(Ok(()))) {
            super::linger(client).await;
        }
    }
}

/// Why a tunnel ends, and how a TLS client is told.
pub(super) struct Turned {
    pub(super) reason: String,
    pub(super) alert: Alert,
}

impl Turned {
    pub(super) fn away(reason: impl Into<String>, alert: Alert) -> Self {
        Self {
            reason: reason.into(),
            alert,
        }
    }
}

impl Greeter {
    fn yes(self) -> &'static [u8] {
        match self {
            Self::Http { .. } => b"HTTP/1.1 200 Connection established\r\n\r\n",
            Self::Socks => &super::socks::SUCCEEDED,
        }
    }

    fn how(self) -> How {
        match self {
            Self::Http { .. } => How::Connect,
            Self::Socks => How::Socks,
        }
    }
}
