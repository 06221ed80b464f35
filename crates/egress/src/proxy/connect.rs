//! HTTP CONNECT.

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use super::Proxy;
use super::rewrite::wants_json;
use super::tunnel::{Greeter, Tunnel};
use crate::audit::How;
use crate::conversation::Conversation;
use crate::http::framing::Framing;
use crate::http::head::RequestHead;
use crate::refusal::Refusal;
use crate::rules::Authority;
use crate::stream::Wire;

impl Proxy {
    pub(super) async fn connect(
        &self,
        client: Wire,
        head: RequestHead,
        conversation: &Arc<Conversation>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        let greeter = Greeter::Http {
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
        mut client: Wire,
        greeter: Greeter,
        conversation: &Conversation,
        refusal: &Refusal,
    ) {
        match greeter {
            Greeter::Http { as_json } => {
                self.turn_away(client, conversation, How::Connect, refusal, as_json)
                    .await;
            }
            Greeter::Socks => {
                self.note(conversation, How::Socks, refusal);
                let reply = super::socks::reply(refusal.socks_reply);
                if client.write_all(&reply).await.is_ok() {
                    super::linger(client).await;
                }
            }
        }
    }
}

fn checked_target(head: &RequestHead) -> Result<Authority, Refusal> {
    let target = Authority::parse(&head.target)
        .map_err(|error| Refusal::bad_target(&head.target, error.to_string()))?;
    if head.fields.has("host") {
        let same = head
            .fields
            .only("host")
            .and_then(|host| std::str::from_utf8(host).ok())
            .and_then(|host| Authority::parse_with_default(host, target.port).ok())
            .is_some_and(|host| host == target);
        if !same {
            return Err(Refusal::bad_request(
                &head.target,
                "the Host header is not the CONNECT target",
            ));
        }
    }
    match Framing::of_request(head) {
        Ok(Framing::Empty) => Ok(target),
        Ok(_) => Err(Refusal::bad_request(
            &head.target,
            "a CONNECT request has no body",
        )),
        Err(error) => Err(Refusal::bad_request(&head.target, error.to_string())),
    }
}
