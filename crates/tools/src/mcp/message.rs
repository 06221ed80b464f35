//! JSON-RPC as MCP has it: what is said, and what was answered.

use serde_json::{Value, json};
use thiserror::Error;

use crate::json_rpc::has_more_values;

/// The latest version we speak, which is offered first.
const OFFERED_VERSION: &str = "2025-11-25";
const KNOWN_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", OFFERED_VERSION];

/// One message of a server, at most. Pictures come as text.
pub(super) const LONGEST_MESSAGE: usize = 4 * 1024 * 1024;
/// Values that one message may consist of: each takes a hundred bytes of memory for two on the wire.
const MOST_VALUES: usize = 200_000;
/// Messages of one batch that are looked at.
const MOST_IN_BATCH: usize = 64;
const LONGEST_ERROR: usize = 2000;

/// Why a request came to nothing, in words for the model and for people.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub(super) struct RequestFailure(pub(super) String);

/// What a server sent, as far as it concerns us.
#[derive(Debug, PartialEq)]
pub(super) enum ServerMessage {
    Answer {
        id: u64,
        outcome: Result<Value, RequestFailure>,
    },
    /// Something it wants; what is said to it.
    Request {
        reply: Value,
    },
    ToolsChanged,
    /// A notification that we do not look at.
    Other,
}

/// We offer no capability: a server can neither ask our model nor our people, nor see our folders.
pub(super) fn initialize() -> Value {
    json!({
        "protocolVersion": OFFERED_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "hermetic", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// The version that both speak.
pub(super) fn agreed_version(answer: &Value) -> Result<&'static str, RequestFailure> {
    let said = answer.get("protocolVersion").and_then(Value::as_str);
    let said = said.unwrap_or_default();
    let known = KNOWN_VERSIONS.into_iter().find(|version| *version == said);
    known.ok_or_else(|| {
        let said: String = said.chars().take(40).collect();
        RequestFailure(format!(
            "it speaks version {said:?} of the protocol, which is not known here"
        ))
    })
}

/// Every message in one line, or in one event. `None` for what is no JSON-RPC.
pub(super) fn read(line: &[u8]) -> Option<Vec<ServerMessage>> {
    // Before it is parsed, which is what would take the memory.
    if has_more_values(line, MOST_VALUES) {
        return None;
    }
    match serde_json::from_slice(line).ok()? {
        Value::Array(batch) => {
            let batch = batch.into_iter().take(MOST_IN_BATCH);
            batch.map(read_one).collect()
        }
        one => read_one(one).map(|message| vec![message]),
    }
}

fn read_one(mut message: Value) -> Option<ServerMessage> {
    let fields = message.as_object_mut()?;
    let id = fields.get("id").cloned();
    if let Some(method) = fields.get("method") {
        let method = method.as_str()?;
        return Some(match id {
            Some(id) => ServerMessage::Request {
                reply: reply(method, &id),
            },
            None if method == "notifications/tools/list_changed" => ServerMessage::ToolsChanged,
            None => ServerMessage::Other,
        });
    }
    let id = id?.as_u64()?;
    let outcome = match (fields.remove("result"), fields.remove("error")) {
        (Some(result), None) => Ok(result),
        (_, Some(error)) => Err(RequestFailure(error_words(&error))),
        (None, None) => return None,
    };
    Some(ServerMessage::Answer { id, outcome })
}

fn reply(method: &str, id: &Value) -> Value {
    match method {
        "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        _ => json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": {"code": -32601, "message": "this client offers nothing of the kind"},
        }),
    }
}

fn error_words(error: &Value) -> String {
    let message = error.get("message").and_then(Value::as_str);
    let code = error.get("code").and_then(Value::as_i64).unwrap_or(0);
    let message: String = message
        .unwrap_or("no message")
        .chars()
        .take(LONGEST_ERROR)
        .collect();
    format!("it answered with error {code}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let one = |text: &str| read(text.as_bytes()).map(|mut all| all.remove(0));
        let answer = one(r#"{"jsonrpc":"2.0","id":3,"result":{"x":1}}"#);
        let expected = ServerMessage::Answer {
            id: 3,
            outcome: Ok(json!({"x": 1})),
        };
        assert_eq!(answer, Some(expected));
        let failed = one(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}"#);
        let Some(ServerMessage::Answer {
            outcome: Err(why), ..
        }) = failed
        else {
            panic!("{failed:?}");
        };
        assert_eq!(why.to_string(), "it answered with error -1: no");
        let ping = one(r#"{"jsonrpc":"2.0","id":"s1","method":"ping"}"#);
        let Some(ServerMessage::Request { reply }) = ping else {
            panic!("{ping:?}");
        };
        assert_eq!(reply["id"], "s1");
        assert!(reply.get("result").is_some());
        let sampling = one(r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#);
        let Some(ServerMessage::Request { reply }) = sampling else {
            panic!("{sampling:?}");
        };
        assert_eq!(reply["error"]["code"], -32601);
        for garbage in [
            "",
            "hello",
            "7",
            "{}",
            r#"{"id":1}"#,
            "[[[[",
            "{\"id\":-1,\"result\":1}",
        ] {
            assert_eq!(one(garbage), None, "{garbage}");
        }
        let bomb = format!("[{}0]", "0,".repeat(MOST_VALUES + 1));
        assert_eq!(read(bomb.as_bytes()), None);
    }
}
