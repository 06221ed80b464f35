//! Models under their providers' own names, with a certificate that the test's authority signed.
//!
//! Whoever offers a tool that runs commands is told to run the probe; whoever tells what it said is told that
//! it has run.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::probes::namespace::PUBLIC;

pub(super) const DONE: &str = "The tool has run.";
/// What a message begins with that has the model run the command it is set up with.
pub(super) const RUN: &str = "Run the tool";
/// The same, with one that takes minutes.
pub(super) const SLEEP: &str = "Sleep for long";
/// What a message begins with that has the model say whether it was shown an earlier one.
pub(super) const BEFORE: &str = "What was before";
pub(super) const REMEMBERED: &str = "The tool was run before.";
pub(super) const SLEEP_MARK: &str = "time.sleep(987)";
/// Some agents refuse a bare `sleep`.
const SLEEP_COMMAND: &str = "python3 -c 'import time; time.sleep(987)'";

/// What a client sent.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) head: String,
    pub(super) body: String,
}

impl Asked {
    /// Whether a limit of a credential's (`POST /v1/messages`, `GET /v1/models/*`) lets this through.
    pub(super) fn fits(&self, pattern: &str) -> bool {
        let Some((method, pattern)) = pattern.split_once(' ') else {
            return false;
        };
        let path = self.path.split('?').next().unwrap_or_default();
        let fits = match pattern.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == pattern,
        };
        fits && self.head.split(' ').next() == Some(method)
    }
}

pub(super) struct Providers {
    /// The certificate to believe.
    pub(super) pem: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Providers {
    /// On the public address of the namespace, where these names lead.
    pub(super) fn serve(names: &[&str], command: &'static str) -> Self {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let der = CertificateDer::from(certificate.der().to_vec());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![der], key)
            .unwrap();
        let config = Arc::new(config);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let listener = TcpListener::bind((PUBLIC, 443)).unwrap();
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (config, heard) = (Arc::clone(&config), Arc::clone(&heard));
                thread::spawn(move || {
                    let connection = ServerConnection::new(config).unwrap();
                    let stream = StreamOwned::new(connection, stream.unwrap());
                    converse(stream, command, &heard)
                });
            }
        });
        Self {
            pem: certificate.pem(),
            asked,
        }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn converse(
    stream: StreamOwned<ServerConnection, TcpStream>,
    command: &str,
    heard: &Mutex<Vec<Asked>>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let asked = read(&mut stream)?;
        let (status, kind, body) = answer(&asked, command);
        heard.lock().unwrap().push(asked);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let out = stream.get_mut();
        out.write_all(&[head.as_bytes(), body.as_bytes()].concat())
            .ok()?;
        out.flush().ok()?;
    }
}

fn read(stream: &mut impl BufRead) -> Option<Asked> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let field = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(field, _)| field.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim().to_owned())
    };
    let mut body = Vec::new();
    if let Some(length) = field("content-length") {
        body = vec![0; length.parse().ok()?];
        stream.read_exact(&mut body).ok()?;
    } else if field("transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            stream.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let mut piece = vec![0; size + 2];
            stream.read_exact(&mut piece).ok()?;
            if size == 0 {
                break;
            }
            body.extend_from_slice(&piece[..size]);
        }
    }
    Some(Asked {
        path: head.split(' ').nth(1)?.to_owned(),
        head,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn answer(asked: &Asked, command: &str) -> (&'static str, &'static str, String) {
    let body: Value = serde_json::from_str(&asked.body).unwrap_or_default();
    let path = asked.path.split('?').next().unwrap_or_default();
    let events = |body| ("200 OK", "text/event-stream", body);
    let plain = |body: Value| ("200 OK", "application/json", body.to_string());
    if path == "/v1/messages" {
        let streams = body["stream"] == true;
        let (message, text) = anthropic(&body, command);
        return if streams {
            events(text)
        } else {
            plain(message)
        };
    }
    if path.ends_with(":streamGenerateContent") {
        return events(format!("data: {}\r\n\r\n", gemini(&body, command)));
    }
    if path.ends_with(":generateContent") {
        return plain(gemini(&body, command));
    }
    if path == "/v1/responses" && !body.is_null() {
        return events(responses(&body, command));
    }
    if path.ends_with("/chat/completions") {
        return events(completions(&body, command));
    }
    ("404 Not Found", "application/json", "{}".to_owned())
}

/// What the model does about a conversation.
enum Step<'a> {
    /// It has a command run, by this tool.
    Call {
        tool: String,
        command: &'a str,
    },
    Says(&'static str),
}

/// By the last order of the person, and whether a tool has answered since. `result` is what marks the result of
/// a tool on this wire.
fn step<'a>(said: &Value, offered: &Value, (result, command): (&str, &'a str)) -> Step<'a> {
    let said = said.to_string();
    let order = [RUN, SLEEP, BEFORE].into_iter();
    let order = order
        .filter_map(|order| Some((said.rfind(order)?, order)))
        .max();
    let Some((at, order)) = order else {
        return Step::Says("a title");
    };
    let has_run = said.rfind(result).is_some_and(|told| told > at);
    let tool = shell(offered);
    // What is asked beside the conversation, for a title or which model fits, has no tools.
    if order == BEFORE && tool.is_some() {
        return Step::Says(match said.contains(RUN) {
            true => REMEMBERED,
            false => "Nothing was.",
        });
    }
    let tool = tool.filter(|_| !has_run);
    match (order, tool) {
        (SLEEP, Some(tool)) => Step::Call {
            tool,
            command: SLEEP_COMMAND,
        },
        (_, Some(tool)) => Step::Call { tool, command },
        (_, None) if has_run => Step::Says(DONE),
        (_, None) => Step::Says("a title"),
    }
}

/// The name of the tool that runs commands, among those offered.
fn shell(offered: &Value) -> Option<String> {
    const NAMES: [&str; 4] = ["bash", "run_shell_command", "exec_command", "terminal"];
    let mut names = Vec::new();
    for tool in offered.as_array().into_iter().flatten() {
        names.push(&tool["name"]);
        names.push(&tool["function"]["name"]);
        let declared = tool["functionDeclarations"].as_array();
        names.extend(declared.into_iter().flatten().map(|one| &one["name"]));
    }
    let names = names.into_iter().filter_map(Value::as_str);
    let mut known = names.filter(|name| NAMES.contains(&name.to_lowercase().as_str()));
    known.next().map(str::to_owned)
}

/// Its own for each call and answer: an agent takes two of one name for one.
fn fresh(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{prefix}{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn sse(events: &[Value]) -> String {
    let line = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    events.iter().map(line).collect()
}

fn anthropic(body: &Value, command: &str) -> (Value, String) {
    let step = step(&body["messages"], &body["tools"], ("tool_result", command));
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    let (block, delta, stop) = match &step {
        Step::Call {
            tool: name,
            command,
        } => {
            let input = json!({"command": command, "description": "look around"});
            (
                json!({"type": "tool_use", "id": fresh("toolu_"), "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": input.to_string()}),
                "tool_use",
            )
        }
        Step::Says(text) => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": text}),
            "end_turn",
        ),
    };
    let mut message = json!({"id": fresh("m"), "type": "message", "role": "assistant", "model": body["model"],
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    let stream = sse(&[
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ]);
    message["content"] = json!([{"type": "text", "text": "a title"}]);
    message["stop_reason"] = json!("end_turn");
    (message, stream)
}

fn gemini(body: &Value, command: &str) -> Value {
    let part = match step(
        &body["contents"],
        &body["tools"],
        ("functionResponse", command),
    ) {
        Step::Call {
            tool: name,
            command,
        } => json!({"functionCall": {"name": name,
            "args": {"command": command, "description": "look around"}}}),
        Step::Says("a title") => {
            json!({"text": r#"{"reasoning": "small", "model_choice": "flash"}"#})
        }
        Step::Says(text) => json!({"text": text}),
    };
    json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}})
}

fn responses(body: &Value, command: &str) -> String {
    let item = match step(
        &body["input"],
        &body["tools"],
        ("function_call_output", command),
    ) {
        Step::Call {
            tool: name,
            command,
        } => {
            json!({"type": "function_call", "id": fresh("fc_"), "call_id": fresh("c"), "name": name,
            "arguments": json!({"cmd": command}).to_string()})
        }
        Step::Says(text) => json!({"type": "message", "id": fresh("m"), "role": "assistant",
            "content": [{"type": "output_text", "text": text}]}),
    };
    let usage = json!({"input_tokens": 1, "input_tokens_details": null, "output_tokens": 1,
        "output_tokens_details": null, "total_tokens": 2});
    let response = fresh("r");
    sse(&[
        json!({"type": "response.created", "response": {"id": response}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": response, "usage": usage}}),
    ])
}

fn completions(body: &Value, command: &str) -> String {
    let result = "\"role\":\"tool\"";
    let (delta, end) = match step(&body["messages"], &body["tools"], (result, command)) {
        Step::Call {
            tool: name,
            command,
        } => {
            let arguments =
                json!({"command": command, "description": "look around", "is_background": false});
            let call = json!({"index": 0, "id": fresh("c"), "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}});
            (
                json!({"role": "assistant", "tool_calls": [call]}),
                "tool_calls",
            )
        }
        Step::Says(text) => (json!({"role": "assistant", "content": text}), "stop"),
    };
    let chunk = |delta: Value, end: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": end});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1,
            "model": body["model"], "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let (first, last) = (chunk(delta, Value::Null), chunk(json!({}), json!(end)));
    format!("{first}{last}data: [DONE]\n\n")
}
