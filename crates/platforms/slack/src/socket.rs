//! One websocket of Socket Mode, from its opening to its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream::SplitSink;
use futures::{SinkExt, StreamExt};
use hermetic_types::Secret;
use reqwest::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{StatusCode, Upgraded};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tracing::{debug, info, warn};

use crate::account::SlackAccount;
use crate::acknowledgement::EventAcknowledgement;
use crate::listening::ListeningState;
use crate::wire::SlackCallError;

/// Slack's own bound for a payload is far below.
const LONGEST_SOCKET_MESSAGE: usize = 16 << 20;
/// Slack leaves the connection open after it said goodbye.
const GOODBYE: Duration = Duration::from_secs(1);
/// Two during a change of sockets; more are somebody else's, and take events away from us.
const OWN_SOCKETS: u64 = 2;

type WebSocket = WebSocketStream<Upgraded>;

#[derive(Debug)]
pub(crate) struct SlackSocket(WebSocket);

/// How a socket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketEnd {
    /// Slack announced it, and a successor was asked for.
    Announced,
    Lost,
}

impl SlackSocket {
    /// Opens a socket and waits until Slack says hello on it.
    pub(crate) async fn open(
        slack: &SlackAccount,
        app_token: &Secret,
    ) -> Result<Self, SlackCallError> {
        let opened = slack
            .wire
            .ask_as("apps.connections.open", &[], app_token)
            .await?;
        let url = opened.value["url"].as_str().unwrap_or_default();
        // Only a socket that said hello counts: the old one is let go for it.
        let greeted = timeout(slack.timing.request, async {
            let mut socket = connect(slack, url).await?;
            wait_for_hello(&mut socket).await?;
            Ok(Self(socket))
        });
        greeted.await.unwrap_or(Err(no_socket()))
    }

    /// Hears what comes and acknowledges what is stored, until the socket ends. When Slack announces the
    /// end, a successor is asked for, and this socket is read on until Slack closes it or the time to
    /// drain it is over.
    pub(crate) async fn serve(
        self,
        slack: &SlackAccount,
        listening: &ListeningState,
        successor: &mpsc::UnboundedSender<()>,
    ) -> SocketEnd {
        let (mut sink, mut frames) = self.0.split();
        let (acknowledge, to_send) = mpsc::unbounded_channel();
        let announced = AtomicBool::new(false);
        let reading = async {
            let mut drained_at = None;
            loop {
                // Counted from when we began to listen again, not from the last frame: while an
                // event waited for room we heard nothing ourselves.
                let deaf_at = Instant::now() + slack.timing.silence;
                let until = drained_at.map_or(deaf_at, |at: Instant| at.min(deaf_at));
                let text = match timeout_at(until, frames.next()).await {
                    Ok(Some(Ok(Message::Text(text)))) => text,
                    Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) | Err(_) => break,
                    Ok(Some(Ok(_))) => continue,
                };
                let heard = hear(slack, listening, &text, &acknowledge).await;
                if heard == SocketHeard::Goodbye && drained_at.is_none() {
                    // Read on for a while: events that Slack had sent here already come on no other
                    // socket.
                    drained_at = Some(Instant::now() + slack.timing.drain);
                    announced.store(true, Ordering::Relaxed);
                    let _ = successor.send(());
                }
            }
        };
        tokio::select! {
            // Either end is the end of both: without acknowledgements Slack would send all of it
            // again, for nothing.
            () = reading => {}
            () = write(slack, &mut sink, to_send) => {}
        }
        let _ = timeout(GOODBYE, sink.close()).await;
        match announced.load(Ordering::Relaxed) {
            true => SocketEnd::Announced,
            false => SocketEnd::Lost,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketHeard {
    Something,
    Goodbye,
}

async fn hear(
    slack: &SlackAccount,
    listening: &ListeningState,
    text: &str,
    acknowledge: &mpsc::UnboundedSender<String>,
) -> SocketHeard {
    let Ok(frame) = serde_json::from_str::<Value>(text) else {
        slack.warn_of_malformed("a frame that is no JSON");
        return SocketHeard::Something;
    };
    let kind = frame["type"].as_str().unwrap_or_default();
    if kind == "disconnect" {
        let reason = frame["reason"].as_str().unwrap_or_default();
        info!(account = %slack.account, reason, "slack wants another socket");
        return SocketHeard::Goodbye;
    }
    let Some(envelope) = frame["envelope_id"].as_str() else {
        if kind != "hello" {
            slack.warn_of_malformed("a frame without an envelope");
        }
        return SocketHeard::Something;
    };
    let acknowledgement = EventAcknowledgement::Socket {
        socket: acknowledge.clone(),
        envelope: envelope.to_owned(),
    };
    let payload = &frame["payload"];
    match kind {
        "events_api" => listening.hear_event(slack, payload, acknowledgement).await,
        "interactive" => {
            listening
                .hear_interaction(slack, payload, acknowledgement)
                .await;
        }
        "slash_commands" => {
            listening
                .hear_command(slack, payload, acknowledgement)
                .await;
        }
        _ => {
            debug!(account = %slack.account, kind, "an envelope that we do not know");
            acknowledgement.give();
        }
    }
    SocketHeard::Something
}

/// Writes acknowledgements and pings, until the socket takes no more. Whether it lives is told by the
/// answers to those pings and never by events: a quiet workspace is not a dead one.
async fn write(
    slack: &SlackAccount,
    sink: &mut SplitSink<WebSocket, Message>,
    mut to_send: mpsc::UnboundedReceiver<String>,
) {
    let mut pings = interval(slack.timing.ping);
    loop {
        let message = tokio::select! {
            Some(envelope) = to_send.recv() => {
                Message::text(json!({ "envelope_id": envelope }).to_string())
            }
            _ = pings.tick() => Message::Ping(bytes::Bytes::new()),
        };
        if sink.send(message).await.is_err() {
            return;
        }
    }
}

/// The client that calls the methods asks for this too: one way out, one TLS, one proxy.
async fn connect(slack: &SlackAccount, url: &str) -> Result<WebSocket, SlackCallError> {
    let key = generate_key();
    let request = slack.wire.open_socket(url).ok_or_else(no_socket)?;
    let response = request
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, &key)
        .send()
        .await
        .map_err(SlackCallError::of)?;
    let status = response.status();
    let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
    let expected = derive_accept_key(key.as_bytes());
    let agreed = accepted.is_some_and(|accepted| accepted == expected.as_str());
    if status != StatusCode::SWITCHING_PROTOCOLS || !agreed {
        let status = status.as_u16();
        return Err(SlackCallError::Garbled { status });
    }
    let stream = response.upgrade().await.map_err(SlackCallError::of)?;
    let bounds = WebSocketConfig::default()
        .max_message_size(Some(LONGEST_SOCKET_MESSAGE))
        .max_frame_size(Some(LONGEST_SOCKET_MESSAGE));
    Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(bounds)).await)
}

async fn wait_for_hello(socket: &mut WebSocket) -> Result<(), SlackCallError> {
    loop {
        let text = match socket.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(no_socket()),
            Some(Ok(_)) => continue,
        };
        let frame: Value = serde_json::from_str(&text).unwrap_or_default();
        match frame["type"].as_str() {
            Some("hello") => {
                let sockets = frame["num_connections"].as_u64().unwrap_or_default();
                if sockets > OWN_SOCKETS {
                    warn!(
                        sockets,
                        "others are connected with our app token and take events away"
                    );
                }
                return Ok(());
            }
            Some("disconnect") => {
                let reason = frame["reason"].as_str().unwrap_or("no reason given");
                let error = reason.to_owned();
                return Err(SlackCallError::Refused { error });
            }
            _ => {}
        }
    }
}

/// Slack let us ask for a socket and gave us none.
fn no_socket() -> SlackCallError {
    SlackCallError::Garbled { status: 101 }
}
