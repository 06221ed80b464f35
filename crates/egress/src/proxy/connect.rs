//! HTTP CONNECT.

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use super::Proxy;
use super::rewrite::wants_json;
use super::tunnel::{Tunnel, TunnelProtocol};
use crate::audit::EgressMethod;
use crate::conversation::ConversationEgress;
use crate::http::framing::BodyFraming;
use crate::http::head::RequestHead;
use crate::refusal::ProxyRefusal;
use crate::rules::Authority;
use crate::stream::PeekedStream;

impl Proxy {
    pub(super) async fn connect(
        &self,
        client: PeekedStream,
        head: RequestHead,
        conversation: &Arc<ConversationEgress>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        let greeter = TunnelProtocol::Http {
            as_json: wants_json(&head.fields),
        };
        match checked_target(&head) {
            Ok(target) => {
                self.tunnel(client, target, greeter, conversation, stop)
                    .await
            }
            Err(refusal) => {
                self.say_no(client, greeter, conversation, &refusal).await;
                None
            }
        }
    }

    pub(super) async fn say_no(
        &self,
        mut client: PeekedStream,
        greeter: TunnelProtocol,
        conversation: &ConversationEgress,
        refusal: &ProxyRefusal,
    ) {
        match greeter {
            TunnelProtocol::Http { as_json } => {
                self.turn_away(
                    client,
                    conversation,
                    EgressMethod::Connect,
                    refusal,
                    as_json,
                )
                .await;
            }
            TunnelProtocol::Socks => {
                self.note(conversation, EgressMethod::Socks, refusal);
                let reply = super::socks::reply(refusal.socks_reply);
                if client.write_all(&reply).await.is_ok() {
                    super::linger(client).await;
                }
            }
        }
    }
}

fn checked_target(head: &RequestHead) -> Result<Authority, ProxyRefusal> {
    let target = Authority::parse(&head.target)
        .map_err(|error| ProxyRefusal::bad_target(&head.target, error.to_string()))?;
    if head.fields.has("host") {
        let same = head
            .fields
            .only("host")
            .and_then(|host| std::str::from_utf8(host).ok())
            .and_then(|host| Authority::parse_with_default(host, target.port).ok())
            .is_some_and(|host| host == target);
        if !same {
            return Err(ProxyRefusal::bad_request(
                &head.target,
                "the Host header is not the CONNECT target",
            ));
        }
    }
    match BodyFraming::of_request(head) {
        Ok(BodyFraming::Empty) => Ok(target),
        Ok(_) => Err(ProxyRefusal::bad_request(
            &head.target,
            "a CONNECT request has no body",
        )),
        Err(error) => Err(ProxyRefusal::bad_request(&head.target, error.to_string())),
    }
}
