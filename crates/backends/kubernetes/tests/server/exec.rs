//! `pods/exec`: a program beside the container's own, over a websocket with a channel for each stream.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use futures::{SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::Cluster;
use super::answer::{Asked, failure};
use super::cell::Cell;

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

const CLOSE: u8 = 255;
const STDOUT: u8 = 1;
const STATUS: u8 = 3;

pub(crate) fn upgrade(cluster: &Arc<Cluster>, asked: &Asked, mut request: Request) -> Response {
    let name = asked.name.clone().unwrap();
    let Some(pod) = cluster.world().get("pods", &asked.namespace, &name) else {
        return failure(404, "NotFound", &format!("pods \"{name}\" not found"));
    };
    if pod["spec"]["nodeName"].is_null() {
        return failure(
            400,
            "BadRequest",
            &format!("pod {name} does not have a host assigned"),
        );
    }
    let Some(protocol) = protocol(cluster, request.headers()) else {
        return failure(
            400,
            "BadRequest",
            "you must specify a protocol that is known",
        );
    };
    let key = request.headers().get(header::SEC_WEBSOCKET_KEY).unwrap();
    let accept = derive_accept_key(key.as_bytes());
    let upgrade = hyper::upgrade::on(&mut request);
    let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
    let container = asked.value("container").to_owned();
    let words = asked.query.iter().filter(|(name, _)| name == "command");
    let words: Vec<_> = words.map(|(_, word)| word.clone()).collect();
    let cluster = Arc::clone(cluster);
    tokio::spawn(async move {
        let Ok(stream) = upgrade.await else { return };
        let socket =
            WebSocketStream::from_raw_socket(TokioIo::new(stream), Role::Server, None).await;
        let cell = cluster
            .cells
            .lock()
            .unwrap()
            .get(&(uid, container.clone()))
            .cloned();
        carry(&cluster, socket, cell, &container, &words).await;
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_ACCEPT, accept)
        .header(header::SEC_WEBSOCKET_PROTOCOL, protocol)
        .body(Body::empty())
        .unwrap()
}

/// The newest that both know.
fn protocol(cluster: &Cluster, headers: &HeaderMap) -> Option<&'static str> {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL);
    let offered: Vec<_> = offered
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(str::trim))
        .collect();
    let v5 = cluster.habits().speaks_v5;
    let mut known = ["v5.channel.k8s.io", "v4.channel.k8s.io"].into_iter();
    known.find(|known| offered.contains(known) && (v5 || !known.starts_with("v5")))
}

async fn carry(
    cluster: &Cluster,
    mut socket: Socket,
    cell: Option<Arc<Cell>>,
    container: &str,
    words: &[String],
) {
    // As the real one: an empty message says that the streams are there.
    let _ = socket.send(Message::Binary(vec![STDOUT].into())).await;
    let running = cell.filter(|cell| cell.exit().is_none());
    let child = running.and_then(|cell| cell.exec(words).ok());
    let Some(child) = child else {
        let message = format!("container not found (\"{container}\")");
        let status = json!({"status": "Failure", "reason": "InternalError", "code": 500, "message": message});
        return end(&mut socket, &status).await;
    };
    join(cluster, socket, child).await;
}

async fn join(cluster: &Cluster, mut socket: Socket, mut child: Child) {
    let (tell, mut said) = mpsc::channel(4);
    let mut pumps = tokio::task::JoinSet::new();
    pumps.spawn(pump(1, child.stdout.take().unwrap(), tell.clone()));
    pumps.spawn(pump(2, child.stderr.take().unwrap(), tell));
    let mut stdin = child.stdin.take();
    let (mut cut, mut away) = (cluster.cuts.subscribe(), cluster.away.subscribe());
    let success = json!({"status": "Success"});
    loop {
        tokio::select! {
            piece = said.recv() => match piece {
                Some(piece) => {
                    if socket.send(Message::Binary(piece.into())).await.is_err() {
                        return outlive(child);
                    }
                }
                None => {
                    let status = ending(&child.wait().await.unwrap());
                    return end(&mut socket, &status).await;
                }
            },
            message = socket.next() => match message {
                // The Python client sends words as text.
                Some(Ok(message @ (Message::Binary(_) | Message::Text(_)))) => match message.into_data().split_first() {
                    Some((0, data)) => {
                        if let Some(open) = &mut stdin && open.write_all(data).await.is_err() {
                            stdin = None;
                        }
                    }
                    Some((&CLOSE, [0])) => stdin = None,
                    _ => {}
                },
                Some(Ok(Message::Close(_)) | Err(_)) | None => {
                    // Nobody tells the program more than that its stdin ended.
                    drop(stdin);
                    return outlive(child);
                }
                Some(Ok(_)) => {}
            },
            _ = cut.changed() => {
                // What an API server says of a node whose kubelet died.
                outlive(child);
                return end(&mut socket, &success).await;
            }
            () = gone(&mut away) => return outlive(child),
        }
    }
}

async fn gone(away: &mut tokio::sync::watch::Receiver<bool>) {
    let _ = away.wait_for(|away| *away).await;
}

/// It goes on without anybody who hears it, for as long as it likes or the container lives.
fn outlive(mut child: Child) {
    tokio::spawn(async move { child.wait().await });
}

async fn pump(channel: u8, mut pipe: impl AsyncRead + Unpin, tell: mpsc::Sender<Vec<u8>>) {
    let mut buffer = vec![0; 32 << 10];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        let mut piece = vec![channel];
        piece.extend_from_slice(&buffer[..read]);
        if tell.send(piece).await.is_err() {
            return;
        }
    }
}

fn ending(status: &std::process::ExitStatus) -> Value {
    match status.code() {
        Some(0) => json!({"status": "Success"}),
        code => {
            let code = code.unwrap_or(137).to_string();
            json!({
                "status": "Failure", "reason": "NonZeroExitCode",
                "message": format!("command terminated with exit code {code}"),
                "details": {"causes": [{"reason": "ExitCode", "message": code}]},
            })
        }
    }
}

async fn end(socket: &mut Socket, status: &Value) {
    let mut bytes = vec![STATUS];
    bytes.extend_from_slice(status.to_string().as_bytes());
    let _ = socket.send(Message::Binary(bytes.into())).await;
    // Anything but a normal closure is an error to other people's clients.
    let closure = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    let _ = socket.close(Some(closure)).await;
}
