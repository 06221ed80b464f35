//! SOCKS5 (RFC 1928): names only, no authentication, CONNECT only.
//!
//! A client that resolves names itself would need DNS, which a sandbox does not have; one that sends an
//! address is told so by the reply meant for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Proxy;
use super::tunnel::{Tunnel, TunnelProtocol};
use crate::conversation::ConversationEgress;
use crate::refusal::ProxyRefusal;
use crate::rules::{Authority, HostName};
use crate::stream::PeekedStream;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NONE_ACCEPTABLE: u8 = 0xff;
const COMMAND_CONNECT: u8 = 1;
const ADDRESS_V4: u8 = 1;
const ADDRESS_NAME: u8 = 3;
const ADDRESS_V6: u8 = 4;
const REPLY_NO_COMMAND: u8 = 7;
const REPLY_NO_ADDRESS_TYPE: u8 = 8;

pub(super) const SUCCEEDED: [u8; 10] = reply(0);

/// A reply with an empty bound address: where we dial from is nobody's business.
pub(super) const fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, ADDRESS_V4, 0, 0, 0, 0, 0, 0]
}

/// What a SOCKS client asked for.
enum SocksRequest {
    Target(Authority),
    Refused(ProxyRefusal),
    /// Not worth an answer, or already answered.
    Gone,
}

impl Proxy {
    pub(super) async fn socks(
        &self,
        mut client: PeekedStream,
        conversation: &Arc<ConversationEgress>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        let asked = timeout(self.0.limits.head_time, negotiate(&mut client)).await;
        match asked.unwrap_or(SocksRequest::Gone) {
            SocksRequest::Target(target) => {
                client.request_came();
                self.tunnel(client, target, TunnelProtocol::Socks, conversation, stop)
                    .await
            }
            SocksRequest::Refused(refusal) => {
                self.say_no(client, TunnelProtocol::Socks, conversation, &refusal)
                    .await;
                None
            }
            SocksRequest::Gone => {
                let _ = timeout(Duration::from_secs(1), client.shutdown()).await;
                None
            }
        }
    }
}

async fn negotiate(client: &mut PeekedStream) -> SocksRequest {
    match greet(client).await {
        Some(true) => {}
        Some(false) | None => return SocksRequest::Gone,
    }
    request(client).await.unwrap_or(SocksRequest::Gone)
}

/// `Some(true)` when the client accepts to come without authentication.
async fn greet(client: &mut PeekedStream) -> Option<bool> {
    let [version, count] = take(client).await?;
    if version != VERSION {
        return None;
    }
    let methods = take_some(client, count.into()).await?;
    let accepted = methods.contains(&NO_AUTHENTICATION);
    let method = if accepted {
        NO_AUTHENTICATION
    } else {
        NONE_ACCEPTABLE
    };
    client.write_all(&[VERSION, method]).await.ok()?;
    Some(accepted)
}

async fn request(client: &mut PeekedStream) -> Option<SocksRequest> {
    let [version, command, reserved, kind] = take(client).await?;
    if version != VERSION || reserved != 0 {
        return None;
    }
    let name = match kind {
        ADDRESS_V4 => SocksAddress::Literal(take_some(client, 4).await?),
        ADDRESS_V6 => SocksAddress::Literal(take_some(client, 16).await?),
        ADDRESS_NAME => {
            let [length] = take(client).await?;
            SocksAddress::Name(take_some(client, length.into()).await?)
        }
        _ => return Some(refused("", "unknown address type", REPLY_NO_ADDRESS_TYPE)),
    };
    let port = u16::from_be_bytes(take(client).await?);
    // The address is read to its end first, or its bytes would be taken for the next message.
    if command != COMMAND_CONNECT {
        return Some(refused(
            &name.text(),
            "only CONNECT is spoken here",
            REPLY_NO_COMMAND,
        ));
    }
    let SocksAddress::Name(bytes) = &name else {
        let reason = "literal addresses are refused: let the proxy resolve names (socks5h)";
        return Some(refused(&name.text(), reason, REPLY_NO_ADDRESS_TYPE));
    };
    let target = std::str::from_utf8(bytes).ok().map(HostName::parse);
    Some(match target {
        Some(Ok(host)) if port != 0 => SocksRequest::Target(Authority::new(host, port)),
        Some(Err(error)) => {
            SocksRequest::Refused(ProxyRefusal::bad_target(&name.text(), error.to_string()))
        }
        Some(Ok(_)) | None => SocksRequest::Refused(ProxyRefusal::bad_target(
            &name.text(),
            "the host or its port is malformed",
        )),
    })
}

/// The kinds of addresses that a SOCKS client may send.
enum SocksAddress {
    Name(Vec<u8>),
    Literal(Vec<u8>),
}

impl SocksAddress {
    fn text(&self) -> String {
        match self {
            Self::Name(name) => String::from_utf8_lossy(name).into_owned(),
            Self::Literal(bytes) => match <[u8; 4]>::try_from(bytes.as_slice()) {
                Ok(v4) => std::net::Ipv4Addr::from(v4).to_string(),
                Err(_) => <[u8; 16]>::try_from(bytes.as_slice())
                    .map(|v6| std::net::Ipv6Addr::from(v6).to_string())
                    .unwrap_or_default(),
            },
        }
    }
}

fn refused(target: &str, reason: &str, reply: u8) -> SocksRequest {
    let mut refusal = ProxyRefusal::bad_target(target, reason);
    refusal.socks_reply = reply;
    SocksRequest::Refused(refusal)
}

async fn take<const N: usize>(client: &mut PeekedStream) -> Option<[u8; N]> {
    take_some(client, N).await?.try_into().ok()
}

async fn take_some(client: &mut PeekedStream, length: usize) -> Option<Vec<u8>> {
    while client.ahead().len() < length {
        if client.read_more().await.ok()? == 0 {
            return None;
        }
    }
    Some(client.take_ahead(length))
}
