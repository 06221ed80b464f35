//! JSON-RPC in lines: what is written, and what was read.

use hermetic_tools::json_rpc;
use serde_json::{Value, json};

use crate::bounds::{LONGEST_WORDS, MOST_VALUES};

/// What an agent sent.
#[derive(Debug, PartialEq)]
pub(crate) enum WireMessage {
    Answer {
        id: u64,
        outcome: Result<Value, String>,
    },
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    line(&json_rpc::request(id, method, params))
}

pub(crate) fn notification(method: &str, params: &Value) -> Vec<u8> {
    line(&json_rpc::notification(method, params))
}

pub(crate) fn reply(id: &Value, result: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Says that there is no such method here.
pub(crate) fn not_offered(id: &Value) -> Vec<u8> {
    let error = json!({"code": -32601, "message": "this client offers nothing of the kind"});
    line(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

/// The message in one line; `None` for what is none.
pub(crate) fn read(line: &[u8]) -> Option<WireMessage> {
    if json_rpc::has_more_values(line, MOST_VALUES) {
        return None;
    }
    let mut message: Value = serde_json::from_slice(line).ok()?;
    let fields = message.as_object_mut()?;
    let params = fields.remove("params").unwrap_or(Value::Null);
    let id = fields.remove("id");
    if let Some(method) = fields.get("method") {
        let method = method.as_str()?.to_owned();
        return Some(match id {
            // An id is handed back as it came, so it is bounded like any word.
            Some(id) if id.to_string().len() <= LONGEST_WORDS => {
                WireMessage::Request { id, method, params }
            }
            Some(_) => return None,
            None => WireMessage::Notification { method, params },
        });
    }
    let id = id?.as_u64()?;
    let outcome = match (fields.remove("result"), fields.remove("error")) {
        (_, Some(error)) if !error.is_null() => Err(error_words(&error)),
        (Some(result), _) => Ok(result),
        (None, _) => return None,
    };
    Some(WireMessage::Answer { id, outcome })
}

/// Text of somebody else's, cut at a character.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    match text.char_indices().find(|(at, c)| at + c.len_utf8() > most) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}

fn error_words(error: &Value) -> String {
    let message = error.get("message").and_then(Value::as_str);
    let details = error.pointer("/data/details").or(error.get("data"));
    let details = match details {
        Some(Value::String(text)) => format!(" ({})", cut(text, LONGEST_WORDS)),
        _ => String::new(),
    };
    let message = cut(message.unwrap_or("no message"), LONGEST_WORDS);
    format!("{message}{details}")
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_none() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let many = format!(
            "{{\"id\":1,\"result\":[{}1]}}",
            "1,".repeat(MOST_VALUES + 1)
        );
        let long_id = format!("{{\"id\":\"{}\",\"method\":\"x\"}}", "i".repeat(10_000));
        for line in [
            "",
            "hello",
            "7",
            "[]",
            "{}",
            "{\"id\":1}",
            "{\"method\":7}",
            "{\"id\":-1,\"result\":1}",
            "{\"id\":\"x\",\"result\":1}",
            &deep,
            &many,
            &long_id,
            "\u{0}\u{ff}",
        ] {
            assert_eq!(read(line.as_bytes()), None, "{}", cut(line, 60));
        }
    }

    #[test]
    fn messages_are_told_apart() {
        let read = |text: &str| read(text.as_bytes()).expect("a message");
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","id":3,"result":null}"#),
            WireMessage::Answer {
                id: 3,
                outcome: Ok(Value::Null)
            }
        );
        assert_eq!(
            read(r#"{"id":3,"error":{"code":-1,"message":"no","data":{"details":"key"}}}"#),
            WireMessage::Answer {
                id: 3,
                outcome: Err("no (key)".to_owned())
            }
        );
        assert!(matches!(
            read(r#"{"id":"a","method":"fs/read_text_file","params":{}}"#),
            WireMessage::Request { .. }
        ));
        assert!(matches!(
            read(r#"{"method":"session/update","params":{}}"#),
            WireMessage::Notification { .. }
        ));
    }

    #[test]
    fn a_cut_is_at_a_character() {
        assert_eq!(cut("grün", 3), "gr");
        assert_eq!(cut("grün", 4), "grü");
        assert_eq!(cut("grün", 90), "grün");
    }
}
