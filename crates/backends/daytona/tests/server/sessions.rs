//! `/process/session`: a shell that is fed one command after the other and keeps its state.

use std::collections::{BTreeMap, HashMap};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::SinkExt;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::Machine;
use super::faults::refuse;
use super::pty::{Socket, switch};
use super::toolbox::{Running, part};

type Parts = Path<Vec<(String, String)>>;

const BEAT: Duration = Duration::from_millis(10);
const STDOUT: [u8; 3] = [1; 3];
const STDERR: [u8; 3] = [2; 3];

pub(crate) struct Session {
    stdin: tokio::sync::Mutex<ChildStdin>,
    commands: Mutex<BTreeMap<String, String>>,
    _shell: Child,
}

pub(crate) async fn create(Running(machine): Running, Json(wanted): Json<Value>) -> Response {
    let id = wanted["sessionId"].as_str().unwrap_or_default().to_owned();
    if machine.sessions.lock().unwrap().contains_key(&id) {
        return refuse(409, "session already exists");
    }
    let mut shell = {
        let cage = machine.cage.lock().await;
        let mut command = cage.enter(&[], &["bash"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let session = Session {
        stdin: tokio::sync::Mutex::new(shell.stdin.take().unwrap()),
        commands: Mutex::default(),
        _shell: shell,
    };
    machine
        .sessions
        .lock()
        .unwrap()
        .insert(id, Arc::new(session));
    StatusCode::CREATED.into_response()
}

pub(crate) async fn look(Running(machine): Running, path: Parts) -> Response {
    let id = part(&path, "id");
    let Some(session) = find(&machine, &id) else {
        return refuse(404, "session not found");
    };
    let all = session.commands.lock().unwrap().clone();
    let mut commands = Vec::new();
    for (name, text) in all {
        commands.push(told(&machine, &name, &text).await);
    }
    Json(json!({ "sessionId": id, "commands": commands })).into_response()
}

pub(crate) async fn delete(Running(machine): Running, path: Parts) -> Response {
    match machine.sessions.lock().unwrap().remove(&part(&path, "id")) {
        Some(_) => StatusCode::NO_CONTENT.into_response(),
        None => refuse(404, "session not found"),
    }
}

pub(crate) async fn execute(
    Running(machine): Running,
    path: Parts,
    Json(wanted): Json<Value>,
) -> Response {
    let Some(session) = find(&machine, &part(&path, "id")) else {
        return refuse(404, "session not found");
    };
    let command = uuid::Uuid::new_v4().to_string();
    let text = wanted["command"].as_str().unwrap_or_default().to_owned();
    session
        .commands
        .lock()
        .unwrap()
        .insert(command.clone(), text.clone());
    let folder = folder(&command);
    let line = format!(
        "mkdir -p {folder}\n{{ {text}\n}} >{folder}/out 2>{folder}/err </dev/null\n\
         echo $? >{folder}/code.part; mv {folder}/code.part {folder}/code\n"
    );
    session
        .stdin
        .lock()
        .await
        .write_all(line.as_bytes())
        .await
        .unwrap();
    if wanted["runAsync"] == true || wanted["async"] == true {
        return (StatusCode::ACCEPTED, Json(json!({ "cmdId": command }))).into_response();
    }
    while file(&machine, &command, "code").await.is_empty() {
        tokio::time::sleep(BEAT).await;
    }
    let (out, err) = (
        file(&machine, &command, "out").await,
        file(&machine, &command, "err").await,
    );
    let code: i64 = text_of(&file(&machine, &command, "code").await)
        .trim()
        .parse()
        .unwrap();
    let (out, err) = (text_of(&out), text_of(&err));
    Json(json!({
        "cmdId": command, "exitCode": code, "output": format!("{out}{err}"), "stdout": out, "stderr": err,
    }))
    .into_response()
}

pub(crate) async fn command(Running(machine): Running, path: Parts) -> Response {
    let name = part(&path, "command");
    let session = find(&machine, &part(&path, "id"));
    let text = session.and_then(|session| session.commands.lock().unwrap().get(&name).cloned());
    match text {
        Some(text) => Json(told(&machine, &name, &text).await).into_response(),
        None => refuse(404, "command not found"),
    }
}

/// All of it now, or what comes as it comes, with a mark before each piece for its stream.
pub(crate) async fn logs(
    Running(machine): Running,
    path: Parts,
    Query(query): Query<HashMap<String, String>>,
    request: Request,
) -> Response {
    let command = part(&path, "command");
    if request.headers().contains_key(header::SEC_WEBSOCKET_KEY) {
        assert_eq!(query.get("follow").map(String::as_str), Some("true"));
        return switch(request, move |socket| follow(machine, command, socket));
    }
    let (out, err) = (
        file(&machine, &command, "out").await,
        file(&machine, &command, "err").await,
    );
    let (out, err) = (text_of(&out), text_of(&err));
    Json(json!({ "output": format!("{out}{err}"), "stdout": out, "stderr": err })).into_response()
}

async fn follow(machine: Arc<Machine>, command: String, mut socket: Socket) {
    let mut seen = [0, 0];
    loop {
        let over = !file(&machine, &command, "code").await.is_empty();
        for (number, (name, mark)) in [("out", STDOUT), ("err", STDERR)].into_iter().enumerate() {
            let content = file(&machine, &command, name).await;
            if content.len() > seen[number] {
                let piece = [&mark[..], &content[seen[number]..]].concat();
                seen[number] = content.len();
                if socket.send(Message::Binary(piece.into())).await.is_err() {
                    return;
                }
            }
        }
        if over {
            let frame = CloseFrame {
                code: CloseCode::Normal,
                reason: "".into(),
            };
            let _ = socket.close(Some(frame)).await;
            return;
        }
        tokio::time::sleep(BEAT).await;
    }
}

fn find(machine: &Machine, id: &str) -> Option<Arc<Session>> {
    machine.sessions.lock().unwrap().get(id).cloned()
}

async fn told(machine: &Machine, command: &str, text: &str) -> Value {
    let code: Option<i64> = text_of(&file(machine, command, "code").await)
        .trim()
        .parse()
        .ok();
    json!({ "id": command, "command": text, "exitCode": code })
}

fn folder(command: &str) -> String {
    format!("/tmp/.sessions/{command}")
}

async fn file(machine: &Machine, command: &str, name: &str) -> Vec<u8> {
    let path = machine
        .cage
        .lock()
        .await
        .outside(&format!("{}/{name}", folder(command)));
    tokio::fs::read(path).await.unwrap_or_default()
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
