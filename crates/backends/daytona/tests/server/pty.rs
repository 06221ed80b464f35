//! `/process/pty`: a login shell in a terminal, carried by a websocket. A client that lags behind is
//! hung up on, as the real toolbox does.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::{SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::cage::kill_tree;
use super::faults::refuse;
use super::toolbox::{Running, part};
use super::{Cloud, Machine};

/// Messages that wait for one client; then it is too slow.
const QUEUE: usize = 256;

type Parts = Path<Vec<(String, String)>>;

pub(crate) struct Terminal {
    pid: i32,
    input: std::sync::mpsc::SyncSender<Vec<u8>>,
    clients: Arc<Mutex<Vec<mpsc::Sender<Vec<u8>>>>>,
    exit: watch::Receiver<Option<i32>>,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        kill_tree(self.pid);
    }
}

pub(crate) async fn create(Running(machine): Running, Json(wanted): Json<Value>) -> Response {
    let id = wanted["id"].as_str().unwrap_or_default().to_owned();
    if id.is_empty() || machine.terminals.lock().unwrap().contains_key(&id) {
        return refuse(409, "PTY session with that ID already exists");
    }
    let envs = wanted["envs"].as_object().into_iter().flatten();
    let envs = envs.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
    let size = |name: &str, other| wanted[name].as_u64().unwrap_or(other);
    let (columns, rows) = (size("cols", 80), size("rows", 24));
    open(&machine, &id, envs.collect(), columns, rows).await;
    (StatusCode::CREATED, Json(json!({ "sessionId": id }))).into_response()
}

pub(crate) async fn create_and_connect(
    State(cloud): State<Arc<Cloud>>,
    Running(machine): Running,
    Query(query): Query<BTreeMap<String, String>>,
    request: Request,
) -> Response {
    let number = |name: &str| query.get(name).map_or(80, |text| text.parse().unwrap());
    let id = &query["id"];
    open(
        &machine,
        id,
        BTreeMap::new(),
        number("cols"),
        number("rows"),
    )
    .await;
    let terminal = machine.terminals.lock().unwrap().get(id).cloned();
    upgrade(cloud, terminal, request)
}

pub(crate) async fn connect(
    State(cloud): State<Arc<Cloud>>,
    Running(machine): Running,
    path: Parts,
    request: Request,
) -> Response {
    let terminal = machine
        .terminals
        .lock()
        .unwrap()
        .get(&part(&path, "id"))
        .cloned();
    upgrade(cloud, terminal, request)
}

pub(crate) async fn delete(Running(machine): Running, path: Parts) -> Response {
    match machine.terminals.lock().unwrap().remove(&part(&path, "id")) {
        Some(_) => Json(json!({ "message": "PTY session deleted" })).into_response(),
        None => refuse(404, "PTY session not found"),
    }
}

async fn open(
    machine: &Arc<Machine>,
    id: &str,
    envs: BTreeMap<String, String>,
    columns: u64,
    rows: u64,
) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize {
        ws_col: u16::try_from(columns).unwrap(),
        ws_row: u16::try_from(rows).unwrap(),
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let mut child = {
        let cage = machine.cage.lock().await;
        let mut command = cage.enter(&["setsid", "-c"], &["bash", "-i", "-l"]);
        command
            .env("TERM", "xterm-256color")
            .envs(envs)
            .stdin(theirs.try_clone().unwrap())
            .stdout(theirs.try_clone().unwrap())
            .stderr(theirs);
        command.spawn().unwrap()
    };
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    let (told, exit) = watch::channel(None);
    let (input, inputs) = std::sync::mpsc::sync_channel::<Vec<u8>>(1024);
    let clients = Arc::new(Mutex::new(Vec::new()));
    let (mut reader, mut writer) = (File::from(ours.try_clone().unwrap()), File::from(ours));
    let listening = Arc::clone(&clients);
    std::thread::spawn(move || read_all(&mut reader, &listening));
    std::thread::spawn(move || {
        while let Ok(bytes) = inputs.recv() {
            if writer.write_all(&bytes).is_err() {
                return;
            }
        }
    });
    let terminal = Arc::new(Terminal {
        pid,
        input,
        clients,
        exit,
    });
    machine
        .terminals
        .lock()
        .unwrap()
        .insert(id.to_owned(), terminal);
    let (machine, id) = (Arc::downgrade(machine), id.to_owned());
    tokio::spawn(async move {
        let code = child.wait().await.ok().and_then(|status| status.code());
        let _ = told.send(Some(code.unwrap_or(137)));
        if let Some(machine) = machine.upgrade() {
            machine.terminals.lock().unwrap().remove(&id);
        }
    });
}

fn read_all(reader: &mut File, clients: &Mutex<Vec<mpsc::Sender<Vec<u8>>>>) {
    let mut buffer = vec![0; 32 << 10];
    while let Ok(read @ 1..) = reader.read(&mut buffer) {
        let mut clients = clients.lock().unwrap();
        clients.retain(|client| client.try_send(buffer[..read].to_vec()).is_ok());
    }
    // The shell is gone; what it said last has been passed on.
    clients.lock().unwrap().clear();
}

pub(crate) fn upgrade(
    cloud: Arc<Cloud>,
    terminal: Option<Arc<Terminal>>,
    request: Request,
) -> Response {
    switch(request, move |socket| carry(cloud, terminal, socket))
}

pub(crate) type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// Answers that the connection is a websocket from here on.
pub(crate) fn switch<F>(
    mut request: Request,
    then: impl FnOnce(Socket) -> F + Send + 'static,
) -> Response
where
    F: Future<Output = ()> + Send,
{
    let Some(key) = request.headers().get(header::SEC_WEBSOCKET_KEY).cloned() else {
        return refuse(426, "a websocket is needed");
    };
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        if let Ok(upgraded) = upgraded.await {
            let stream = TokioIo::new(upgraded);
            then(WebSocketStream::from_raw_socket(stream, Role::Server, None).await).await;
        }
    });
    let headers = [
        (header::CONNECTION, "Upgrade".to_owned()),
        (header::UPGRADE, "websocket".to_owned()),
        (
            header::SEC_WEBSOCKET_ACCEPT,
            derive_accept_key(key.as_bytes()),
        ),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

async fn carry(cloud: Arc<Cloud>, terminal: Option<Arc<Terminal>>, mut socket: Socket) {
    let control = |fields: Value| Message::Text(fields.to_string().into());
    let Some(terminal) = terminal else {
        let error = "Failed to connect to PTY session: not found";
        let told = json!({ "type": "control", "status": "error", "error": error });
        let _ = socket.send(control(told)).await;
        return;
    };
    let (queue, mut output) = mpsc::channel(QUEUE);
    terminal.clients.lock().unwrap().push(queue);
    let connected = json!({ "type": "control", "status": "connected" });
    if socket.send(control(connected)).await.is_err() {
        return;
    }
    let mut cuts = cloud.cuts.subscribe();
    let mut exit = terminal.exit.clone();
    let input = terminal.input.clone();
    // A terminal that was deleted is gone, whoever still looks at it.
    drop(terminal);
    loop {
        tokio::select! {
            _ = cuts.changed() => return,
            said = output.recv() => match said {
                Some(bytes) => {
                    if socket.send(Message::Binary(bytes.into())).await.is_err() {
                        return;
                    }
                }
                None => break,
            },
            asked = socket.next() => match asked {
                Some(Ok(Message::Binary(bytes))) if input.send(bytes.to_vec()).is_err() => return,
                Some(Ok(Message::Text(text))) if input.send(text.as_bytes().to_vec()).is_err() => return,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
        }
    }
    let code = exit
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|code| *code);
    let frame = CloseFrame {
        code: if code == Some(0) {
            CloseCode::Normal
        } else {
            CloseCode::Error
        },
        reason: json!({ "exitCode": code }).to_string().into(),
    };
    let _ = socket.send(Message::Close(Some(frame))).await;
}
