//! What the model asks of the process tool.

use serde_json::{Map, Value};
use thiserror::Error;

pub(super) const ACTIONS: [&str; 8] = [
    "list", "poll", "log", "wait", "kill", "write", "submit", "close",
];

/// Lines that a log shows where nobody says how many.
const LINES: usize = 200;
pub(super) const MOST_LOG_CHARS: usize = 50_000;
/// More than that is a file.
const MOST_DATA: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProcessOrder {
    List,
    Poll(String),
    Log {
        id: String,
        offset: Option<usize>,
        limit: usize,
    },
    Wait {
        id: String,
        seconds: Option<u64>,
    },
    Kill(String),
    Write {
        id: String,
        input: ProcessInput,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProcessInput {
    Data(String),
    Close,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum BadOrder {
    #[error("action must be one of {}", ACTIONS.join(", "))]
    Action,
    #[error("{0} needs a session_id; process list shows them")]
    NoSession(String),
    #[error("{0} must be a {1}")]
    WrongType(&'static str, &'static str),
    #[error("data is longer than a megabyte; write it to a file")]
    TooLong,
}

impl ProcessOrder {
    pub(super) fn read(arguments: &Map<String, Value>) -> Result<Self, BadOrder> {
        let action = text(arguments, "action")?.ok_or(BadOrder::Action)?;
        if action == "list" {
            return Ok(Self::List);
        }
        if !ACTIONS.contains(&action) {
            return Err(BadOrder::Action);
        }
        let id = match arguments.get("session_id") {
            // Some models take an id for a number.
            Some(Value::Number(number)) => number.to_string(),
            _ => text(arguments, "session_id")?
                .unwrap_or_default()
                .to_owned(),
        };
        if id.is_empty() {
            return Err(BadOrder::NoSession(action.to_owned()));
        }
        Ok(match action {
            "poll" => Self::Poll(id),
            "log" => Self::Log {
                id,
                // 0 is how many say "the last lines".
                offset: number(arguments, "offset")?
                    .filter(|offset| *offset > 0)
                    .map(size),
                limit: number(arguments, "limit")?.map_or(LINES, size).max(1),
            },
            "wait" => Self::Wait {
                id,
                seconds: number(arguments, "timeout")?.filter(|seconds| *seconds > 0),
            },
            "kill" => Self::Kill(id),
            "close" => Self::Write {
                id,
                input: ProcessInput::Close,
            },
            _ => Self::Write {
                id,
                input: ProcessInput::Data(data(arguments, action == "submit")?),
            },
        })
    }
}

fn data(arguments: &Map<String, Value>, submit: bool) -> Result<String, BadOrder> {
    let mut data = match arguments.get("data") {
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
        _ => text(arguments, "data")?.unwrap_or_default().to_owned(),
    };
    if data.len() > MOST_DATA {
        return Err(BadOrder::TooLong);
    }
    if submit {
        data.push('\n');
    }
    Ok(data)
}

/// Answers as people give them: words, numbers, paths and addresses, and nothing that calls, quotes or
/// separates in any language.
pub(super) fn is_plain(data: &str) -> bool {
    data.chars()
        .all(|c| c.is_alphanumeric() || " \n_.,:/@+-".contains(c))
}

fn text<'a>(
    arguments: &'a Map<String, Value>,
    name: &'static str,
) -> Result<Option<&'a str>, BadOrder> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(BadOrder::WrongType(name, "string")),
    }
}

fn number(arguments: &Map<String, Value>, name: &'static str) -> Result<Option<u64>, BadOrder> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let number = match value {
                Value::String(text) => text.trim().parse().ok(),
                value => value.as_u64(),
            };
            number
                .ok_or(BadOrder::WrongType(name, "whole number"))
                .map(Some)
        }
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(arguments: &Value) -> Result<ProcessOrder, BadOrder> {
        ProcessOrder::read(arguments.as_object().expect("an object"))
    }

    #[test]
    fn orders_are_read() {
        let id = || "proc_1".to_owned();
        for (arguments, expected) in [
            (json!({"action": "list"}), ProcessOrder::List),
            (
                json!({"action": "log", "session_id": "proc_1", "limit": 5}),
                ProcessOrder::Log {
                    id: id(),
                    offset: None,
                    limit: 5,
                },
            ),
            (
                json!({"action": "submit", "session_id": "proc_1", "data": "y"}),
                ProcessOrder::Write {
                    id: id(),
                    input: ProcessInput::Data("y\n".to_owned()),
                },
            ),
            (
                json!({"action": "write", "session_id": 7, "data": 42}),
                ProcessOrder::Write {
                    id: "7".to_owned(),
                    input: ProcessInput::Data("42".to_owned()),
                },
            ),
            (
                json!({"action": "wait", "session_id": "proc_1", "timeout": "9"}),
                ProcessOrder::Wait {
                    id: id(),
                    seconds: Some(9),
                },
            ),
        ] {
            assert_eq!(read(&arguments), Ok(expected));
        }
    }

    #[test]
    fn code_is_no_plain_answer() {
        for answer in [
            "y\n",
            "yes",
            "127.0.0.1:80",
            "/tmp/a_b",
            "me@example.org",
            "3.5",
        ] {
            assert!(is_plain(answer), "{answer}");
        }
        for code in [
            "f()",
            "system \"x\"",
            "drop table t;",
            "a|b",
            "$x",
            "\\g",
            "`x`",
            "x=1",
        ] {
            assert!(!is_plain(code), "{code}");
        }
    }

    #[test]
    fn odd_orders_are_named() {
        for (arguments, expected) in [
            (json!({}), BadOrder::Action),
            (json!({"action": "explode"}), BadOrder::Action),
            (
                json!({"action": "poll"}),
                BadOrder::NoSession("poll".to_owned()),
            ),
            (
                json!({"action": "wait", "session_id": "p", "timeout": -1}),
                BadOrder::WrongType("timeout", "whole number"),
            ),
            (
                json!({"action": "write", "session_id": "p", "data": "x".repeat(2 << 20)}),
                BadOrder::TooLong,
            ),
        ] {
            assert_eq!(read(&arguments), Err(expected));
        }
    }
}
