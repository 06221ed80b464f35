//! The websocket to Discord's gateway.

use futures::{SinkExt, StreamExt};
use reqwest::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{StatusCode, Upgraded, Url};
use serde_json::Value;
use thiserror::Error;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::wire::{DiscordApi, DiscordCallError};

/// A large server describes itself in some megabytes when the session begins.
const LONGEST_GATEWAY_MESSAGE: usize = 32 << 20;

pub(crate) struct GatewaySocket(WebSocketStream<Upgraded>);

/// What came next.
pub(crate) enum SocketFrame {
    Text(String),
    Closed(Option<u16>),
}

#[derive(Debug, Error)]
pub(crate) enum SocketError {
    #[error("the gateway's address is none")]
    Address,
    #[error("the gateway cannot be reached")]
    Unreachable(#[source] DiscordCallError),
    #[error("the gateway answered {status} instead of a websocket")]
    NoSocket { status: u16 },
    #[error("the gateway does not answer")]
    Silent,
    #[error("the connection to the gateway broke")]
    Broken(#[source] Box<Error>),
}

impl GatewaySocket {
    /// The client that asks everything else opens this too: one way out, one TLS, one proxy.
    pub(crate) async fn open(wire: &DiscordApi, address: &str) -> Result<Self, SocketError> {
        let key = generate_key();
        let response = wire
            .get_elsewhere(http_url(address).ok_or(SocketError::Address)?)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key)
            .send()
            .await
            .map_err(|error| SocketError::Unreachable(DiscordCallError::of(error)))?;
        let status = response.status();
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
        let fits = accepted.is_some_and(|said| said == derive_accept_key(key.as_bytes()).as_str());
        // The answer to our key as well: a proxy that says 101 to anything is no gateway.
        if status != StatusCode::SWITCHING_PROTOCOLS || !fits {
            return Err(SocketError::NoSocket {
                status: status.as_u16(),
            });
        }
        let upgraded = response.upgrade().await;
        let upgraded =
            upgraded.map_err(|error| SocketError::Unreachable(DiscordCallError::of(error)))?;
        let bounds = WebSocketConfig::default()
            .max_message_size(Some(LONGEST_GATEWAY_MESSAGE))
            .max_frame_size(Some(LONGEST_GATEWAY_MESSAGE));
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(bounds));
        Ok(Self(socket.await))
    }

    /// May be dropped while it waits.
    pub(crate) async fn next(&mut self) -> Result<SocketFrame, SocketError> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => {
                    return Ok(SocketFrame::Text(text.as_str().to_owned()));
                }
                Some(Ok(Message::Close(frame))) => {
                    return Ok(SocketFrame::Closed(frame.map(|frame| frame.code.into())));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(SocketError::Broken(Box::new(error))),
                None => return Ok(SocketFrame::Closed(None)),
            }
        }
    }

    pub(crate) async fn send(&mut self, payload: &Value) -> Result<(), SocketError> {
        let sent = self.0.send(Message::text(payload.to_string())).await;
        sent.map_err(|error| SocketError::Broken(Box::new(error)))
    }

    /// Says goodbye with this code; whether anybody hears it does not matter.
    pub(crate) async fn close(&mut self, code: u16) {
        let frame = CloseFrame {
            code: CloseCode::from(code),
            reason: "".into(),
        };
        let _ = self.0.close(Some(frame)).await;
    }
}

/// What the gateway is asked for: the version that we speak, and plain JSON.
fn http_url(address: &str) -> Option<Url> {
    let rest = match address.split_once("://")? {
        ("wss", rest) => format!("https://{rest}"),
        ("ws", rest) => format!("http://{rest}"),
        _ => return None,
    };
    let mut url = Url::parse(&rest).ok()?;
    // Set by us whatever the address has: an encoding that we do not read would look like a gateway
    // that sends garbage.
    url.set_query(Some("v=10&encoding=json"));
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_is_asked_for_our_version() {
        let url = http_url("wss://gateway.discord.gg").unwrap();
        assert_eq!(
            url.as_str(),
            "https://gateway.discord.gg/?v=10&encoding=json"
        );
        for wrong in [
            "",
            "gateway.discord.gg",
            "https://gateway.discord.gg",
            "file:///x",
        ] {
            assert!(http_url(wrong).is_none(), "{wrong}");
        }
    }
}
