//! Socket Mode.

use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

use super::SlackServer;
use super::world::{Frame, WhileAway, World};

impl SlackServer {
    /// Announces the end of the newest socket.
    pub fn announce_disconnect(&self, reason: &str) {
        let frame = json!({ "type": "disconnect", "reason": reason, "debug_info": {} });
        self.to_newest(Frame::Text(frame.to_string()));
    }

    /// Closes the oldest socket, as Slack does some seconds after it announced that.
    pub fn close_oldest(&self) {
        let mut inner = self.world.lock();
        inner.sockets.pop_first();
    }

    /// Cuts every connection without a word.
    pub fn cut_sockets(&self) {
        let inner = self.world.lock();
        for socket in inner.sockets.values() {
            let _ = socket.send(Frame::Cut);
        }
    }

    /// Has the newest socket stay open and say nothing any more.
    pub fn freeze_newest(&self) {
        self.to_newest(Frame::Freeze);
    }

    /// Any text over the newest socket.
    pub fn send_text(&self, text: &str) {
        self.to_newest(Frame::Text(text.to_owned()));
    }

    fn to_newest(&self, frame: Frame) {
        let inner = self.world.lock();
        if let Some((_, socket)) = inner.sockets.last_key_value() {
            let _ = socket.send(frame);
        }
    }
}

impl World {
    /// Sends an envelope over one of the sockets. Returns its id.
    pub(super) fn deliver(&self, kind: &str, payload: &Value) -> String {
        let id = format!("envelope-{}", self.number());
        let envelope = json!({
            "envelope_id": id, "type": kind, "payload": payload,
            "accepts_response_payload": kind != "events_api",
            "retry_attempt": 0, "retry_reason": "",
        });
        self.route(&id, envelope);
        id
    }

    fn route(&self, id: &str, envelope: Value) {
        let mut inner = self.lock();
        // Any of them, as on Slack: a bot that reads only its newest socket would be found out.
        let socket = inner
            .sockets
            .iter()
            .next()
            .map(|(number, socket)| (*number, socket.clone()));
        match socket {
            Some((number, socket)) => {
                let _ = socket.send(Frame::Text(envelope.to_string()));
                inner
                    .unacknowledged
                    .insert(id.to_owned(), (number, envelope));
            }
            None if inner.while_away == WhileAway::Kept => inner.waiting.push_back(envelope),
            None => {}
        }
        drop(inner);
        self.notify();
    }

    fn opened(&self) -> (usize, usize, mpsc::UnboundedReceiver<Frame>) {
        let (sender, frames) = mpsc::unbounded_channel();
        let mut inner = self.lock();
        inner.sockets_opened += 1;
        let number = inner.sockets_opened;
        inner.sockets.insert(number, sender);
        (number, inner.sockets.len(), frames)
    }

    /// What waited, and what another socket took along.
    fn catch_up(&self) {
        let waiting: Vec<_> = self.lock().waiting.drain(..).collect();
        for envelope in waiting {
            let id = envelope["envelope_id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            self.route(&id, envelope);
        }
    }

    fn closed(&self, number: usize) {
        let mut inner = self.lock();
        inner.sockets.remove(&number);
        let (lost, kept) = std::mem::take(&mut inner.unacknowledged)
            .into_iter()
            .partition(|(_, (socket, _))| *socket == number);
        inner.unacknowledged = kept;
        let lost: std::collections::BTreeMap<String, (usize, Value)> = lost;
        drop(inner);
        for (id, (_, mut envelope)) in lost {
            envelope["retry_attempt"] = json!(1);
            envelope["retry_reason"] = json!("timeout");
            self.route(&id, envelope);
        }
        self.notify();
    }

    fn acknowledged(&self, envelope: &str) {
        self.lock().unacknowledged.remove(envelope);
        self.notify();
    }
}

pub(super) async fn serve(listener: TcpListener, world: Arc<World>) {
    let mut sockets = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let world = Arc::clone(&world);
        sockets.spawn(async move { converse(&world, stream).await });
    }
}

async fn converse(world: &World, stream: TcpStream) {
    let Some(mut socket) = accept(world, stream).await else {
        return;
    };
    let (number, open, mut frames) = world.opened();
    let hello = json!({
        "type": "hello", "num_connections": open,
        "connection_info": { "app_id": "A0APP" },
        "debug_info": { "host": "applink-1", "approximate_connection_time": 18060 },
    });
    let _ = socket.send(Message::text(hello.to_string())).await;
    world.notify();
    world.catch_up();
    loop {
        let sent = tokio::select! {
            frame = frames.recv() => match frame {
                Some(Frame::Text(text)) => socket.send(Message::text(text)).await,
                Some(Frame::Cut) => break,
                Some(Frame::Freeze) => {
                    // Not even read from: no pong leaves.
                    while let Some(frame) = frames.recv().await {
                        if matches!(frame, Frame::Cut) {
                            break;
                        }
                    }
                    break;
                }
                None => {
                    let _ = socket.close(None).await;
                    break;
                }
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    let said: Value = serde_json::from_str(&text).unwrap_or_default();
                    world.acknowledged(said["envelope_id"].as_str().unwrap_or_default());
                    Ok(())
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => Ok(()),
            },
        };
        if sent.is_err() {
            break;
        }
    }
    world.closed(number);
}

/// A ticket opens one socket.
async fn accept(world: &World, stream: TcpStream) -> Option<WebSocketStream<TcpStream>> {
    #[expect(clippy::result_large_err, reason = "the library's own type")]
    let check = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        let query = request.uri().query().unwrap_or_default();
        let ticket = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("ticket="));
        let mut inner = world.lock();
        let known = inner
            .tickets
            .iter()
            .position(|known| Some(known.as_str()) == ticket);
        match known {
            Some(index) => {
                inner.tickets.remove(index);
                Ok(response)
            }
            None => Err(ErrorResponse::new(None)),
        }
    };
    accept_hdr_async(stream, check).await.ok()
}
