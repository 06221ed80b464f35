//! A terminal in the sandbox, as a websocket with our program at its far end.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use reqwest::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, StatusCode, Upgraded};
use thiserror::Error;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};

use super::place::{HOME, SOCKET, WARDEN};
use super::shapes::TerminalControl;
use super::toolbox::DaytonaToolbox;
use super::trouble::DaytonaTrouble;
use super::wire::one_line;
use crate::frame::{MAGIC, NOBODY};

/// A shell's start-up files may take a while.
const SHELL_START_TIMEOUT: Duration = Duration::from_secs(30);
/// What a shell may say before our program does.
const MOST_NOISE: usize = 256 << 10;
const LONGEST_TERMINAL_MESSAGE: usize = 1 << 20;

pub(crate) type TerminalSocket = WebSocketStream<Upgraded>;

#[derive(Debug, Error)]
pub(crate) enum ReachError {
    /// The sandbox runs, and no warden in it.
    #[error("there is no warden in the sandbox ({said})")]
    Nobody { said: String },
    #[error(transparent)]
    Trouble(#[from] DaytonaTrouble),
}

/// A terminal whose far end is our program, ready to carry bytes.
pub(crate) struct DaytonaTerminalLink {
    pub(crate) socket: TerminalSocket,
    pub(crate) id: String,
    /// What came after the greeting.
    pub(crate) rest: Vec<u8>,
}

pub(crate) async fn open(toolbox: &DaytonaToolbox) -> Result<DaytonaTerminalLink, ReachError> {
    let id = format!("hermetic-{}", uuid::Uuid::new_v4());
    let envs = BTreeMap::from([("ZDOTDIR", HOME), ("TERM", "dumb")]);
    toolbox.make_terminal(&id, envs).await?;
    let opened = timeout(SHELL_START_TIMEOUT, greet(toolbox, &id)).await;
    let opened = opened.unwrap_or_else(|_| Err(lost("the terminal says nothing").into()));
    match opened {
        Ok((socket, rest)) => Ok(DaytonaTerminalLink { socket, id, rest }),
        Err(error) => {
            // The terminal may be gone with what went wrong.
            let _ = toolbox.end_terminal(&id).await;
            Err(error)
        }
    }
}

async fn greet(
    toolbox: &DaytonaToolbox,
    id: &str,
) -> Result<(TerminalSocket, Vec<u8>), ReachError> {
    let mut socket = connect(toolbox, id).await?;
    wait_until_connected(&mut socket).await?;
    // A shell that cannot do it ends, instead of waiting for another line.
    let line = format!("exec {WARDEN} terminal {SOCKET} || exit 127\n");
    let sent = socket.send(Message::Binary(line.into())).await;
    sent.map_err(|error| cut(&error))?;
    let mut heard = Vec::new();
    loop {
        match socket.next().await {
            Some(Ok(Message::Binary(bytes))) => heard.extend_from_slice(&bytes),
            Some(Ok(Message::Close(_))) | None => return Err(nobody(&heard)),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(cut(&error).into()),
        }
        if let Some(at) = find(&heard, &MAGIC) {
            let rest = heard.split_off(at + MAGIC.len());
            return Ok((socket, rest));
        }
        if find(&heard, &NOBODY).is_some() || heard.len() > MOST_NOISE {
            return Err(nobody(&heard));
        }
    }
}

/// The client that asks everything else asks for this too: one way out, one TLS, one proxy.
async fn connect(toolbox: &DaytonaToolbox, id: &str) -> Result<TerminalSocket, DaytonaTrouble> {
    let key = generate_key();
    let url = toolbox.url(&["process", "pty", id, "connect"]);
    let at = url.host_str().unwrap_or_default().to_owned();
    let response = toolbox
        .wire()
        .request(Method::GET, url)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, &key)
        .send()
        .await
        .map_err(|error| DaytonaTrouble::Unreachable {
            at,
            source: error.without_url(),
        })?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(toolbox.wire().trouble(response.status(), &[]));
    }
    let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
    // An answer to another's request, or a cache's, must not become our terminal.
    if accepted.is_none_or(|accepted| accepted != derive_accept_key(key.as_bytes()).as_str()) {
        return Err(DaytonaTrouble::Nonsense {
            why: "a terminal that is none".to_owned(),
        });
    }
    let stream = response
        .upgrade()
        .await
        .map_err(|error| lost(&error.without_url().to_string()))?;
    let bounds = WebSocketConfig::default()
        .max_message_size(Some(LONGEST_TERMINAL_MESSAGE))
        .max_frame_size(Some(LONGEST_TERMINAL_MESSAGE));
    Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(bounds)).await)
}

async fn wait_until_connected(socket: &mut TerminalSocket) -> Result<(), DaytonaTrouble> {
    loop {
        let text = match socket.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(_))) | None => return Err(lost("the terminal closed")),
            Some(Ok(_)) => continue,
            Some(Err(error)) => return Err(cut(&error)),
        };
        match serde_json::from_str::<TerminalControl>(&text) {
            Ok(control) if control.kind != "control" => {}
            Ok(control) if control.status == "connected" => return Ok(()),
            Ok(control) => {
                let said = control.error.unwrap_or(control.status);
                return Err(lost(&one_line(&said, 300)));
            }
            Err(_) => {}
        }
    }
}

pub(crate) fn message(bytes: Vec<u8>) -> Message {
    Message::Binary(Bytes::from(bytes))
}

fn nobody(heard: &[u8]) -> ReachError {
    // The last words of a shell say why.
    let tail = heard.len().saturating_sub(400);
    let said = String::from_utf8_lossy(&heard[tail..]);
    ReachError::Nobody {
        said: one_line(&said, 200),
    }
}

fn cut(error: &tungstenite::Error) -> DaytonaTrouble {
    lost(&error.to_string())
}

fn lost(said: &str) -> DaytonaTrouble {
    DaytonaTrouble::Lost {
        said: said.to_owned(),
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
