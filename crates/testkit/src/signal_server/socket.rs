//! A line for each message, over TCP or a UNIX socket.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::methods::{self, Reply};
use super::world::{ReceiveMode, Sent, World};

pub(super) async fn serve_tcp(listener: TcpListener, world: Arc<World>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (read, write) = stream.into_split();
        connections.spawn(serve(read, write, Arc::clone(&world)));
    }
}

pub(super) async fn serve_unix(listener: UnixListener, world: Arc<World>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (read, write) = stream.into_split();
        connections.spawn(serve(read, write, Arc::clone(&world)));
    }
}

async fn serve(
    read: impl AsyncRead + Unpin + Send,
    mut write: impl AsyncWrite + Unpin + Send,
    world: Arc<World>,
) {
    let mut lines = BufReader::new(read).lines();
    let mut events = (world.mode != ReceiveMode::Manual).then(|| world.listen());
    let mut subscribed = false;
    loop {
        let line = tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => {
                    let message = serde_json::from_str(&line).unwrap_or_default();
                    let subscribes = is_subscription(&message);
                    if subscribes {
                        events = Some(world.listen());
                        subscribed = true;
                    }
                    match answer(&world, &message, subscribes) {
                        Some(answer) => answer,
                        None => break,
                    }
                }
                // It hung up, and hears what was said before that.
                _ => {
                    flush(&mut write, events.as_mut(), subscribed).await;
                    break;
                }
            },
            event = next(&mut events) => match event {
                Some(Sent::Event(event)) => notification(&event, subscribed),
                Some(Sent::KeepAlive) => continue,
                None => break,
            },
        };
        if write
            .write_all(format!("{line}\n").as_bytes())
            .await
            .is_err()
        {
            break;
        }
    }
    drop(events);
    world.note_change();
}

async fn flush(
    write: &mut (impl AsyncWrite + Unpin),
    events: Option<&mut mpsc::UnboundedReceiver<Sent>>,
    subscribed: bool,
) {
    let Some(events) = events else { return };
    while let Ok(Sent::Event(event)) = events.try_recv() {
        let line = notification(&event, subscribed);
        let _ = write.write_all(format!("{line}\n").as_bytes()).await;
    }
}

async fn next(events: &mut Option<mpsc::UnboundedReceiver<Sent>>) -> Option<Sent> {
    match events {
        Some(events) => events.recv().await,
        None => std::future::pending().await,
    }
}

fn is_subscription(message: &Value) -> bool {
    message["method"] == "subscribeReceive"
}

/// Nothing if the connection is to break.
fn answer(world: &World, message: &Value, subscribes: bool) -> Option<String> {
    if subscribes {
        return Some(json!({ "jsonrpc": "2.0", "result": 0, "id": message["id"] }).to_string());
    }
    match methods::handle(world, message) {
        Reply::Answer(answer) => Some(answer.to_string()),
        Reply::Nothing => Some(String::new()),
        Reply::Status(_) | Reply::Break => None,
    }
}

fn notification(event: &str, subscribed: bool) -> String {
    let params = match subscribed {
        true => format!(r#"{{"subscription":0,"result":{event}}}"#),
        false => event.to_owned(),
    };
    format!(r#"{{"jsonrpc":"2.0","method":"receive","params":{params}}}"#)
}
