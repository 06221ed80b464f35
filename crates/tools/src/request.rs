//! What the model, or a person with `/sh`, asks the terminal for.

use std::time::Duration;

use serde_json::{Map, Value};
use thiserror::Error;

/// One command, read and checked, judged by nobody yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub what: What,
    pub workdir: Option<String>,
    pub timeout: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Shell text.
    Shell(String),
    /// Python source.
    Python(String),
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadRequest {
    #[error("there is no command to run")]
    NoCommand,
    #[error("{0} must be a {1}")]
    WrongType(&'static str, &'static str),
    #[error("the command holds a NUL byte, which no command line can carry")]
    NulByte,
    #[error("timeout is {asked} s; expected 1 to {longest} s for a command in the foreground")]
    Timeout { asked: u64, longest: u64 },
    #[error(
        "workdir holds {0:?}; expected letters, digits and / \\ : _ - . ~ + @ = , and spaces only"
    )]
    Workdir(char),
    #[error("{0} is not there yet in this version; run the command in the foreground without it")]
    NotThereYet(&'static str),
}

impl Request {
    pub fn shell(text: impl Into<String>) -> Self {
        Self::of(What::Shell(text.into()))
    }

    pub fn python(source: impl Into<String>) -> Self {
        Self::of(What::Python(source.into()))
    }

    fn of(what: What) -> Self {
        Self {
            what,
            workdir: None,
            timeout: None,
        }
    }

    /// Reads the arguments of a tool call.
    pub fn read(arguments: &Map<String, Value>, longest: Duration) -> Result<Self, BadRequest> {
        for name in ["background", "pty", "notify_on_complete"] {
            match arguments.get(name) {
                None | Some(Value::Null | Value::Bool(false)) => {}
                Some(Value::Bool(true)) => return Err(BadRequest::NotThereYet(name)),
                Some(_) => return Err(BadRequest::WrongType(name, "boolean")),
            }
        }
        match arguments.get("watch_patterns") {
            None | Some(Value::Null) => {}
            Some(Value::Array(patterns)) if patterns.is_empty() => {}
            Some(_) => return Err(BadRequest::NotThereYet("watch_patterns")),
        }
        let command = text(arguments, "command")?.ok_or(BadRequest::NoCommand)?;
        if command.trim().is_empty() {
            return Err(BadRequest::NoCommand);
        }
        if command.contains('\0') {
            return Err(BadRequest::NulByte);
        }
        Ok(Self {
            what: What::Shell(command.to_owned()),
            workdir: workdir(arguments)?,
            timeout: timeout(arguments, longest)?,
        })
    }
}

fn text<'a>(
    arguments: &'a Map<String, Value>,
    name: &'static str,
) -> Result<Option<&'a str>, BadRequest> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(BadRequest::WrongType(name, "string")),
    }
}

fn workdir(arguments: &Map<String, Value>) -> Result<Option<String>, BadRequest> {
    let Some(workdir) = text(arguments, "workdir")?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let plain = |c: &char| c.is_alphanumeric() || "/\\:_-.~ +@=,".contains(*c);
    match workdir.chars().find(|c| !plain(c)) {
        Some(other) => Err(BadRequest::Workdir(other)),
        None => Ok(Some(workdir.to_owned())),
    }
}

fn timeout(
    arguments: &Map<String, Value>,
    longest: Duration,
) -> Result<Option<Duration>, BadRequest> {
    let asked = match arguments.get("timeout") {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value
            .as_u64()
            .ok_or(BadRequest::WrongType("timeout", "whole number of seconds"))?,
    };
    let longest = longest.as_secs();
    if (1..=longest).contains(&asked) {
        Ok(Some(Duration::from_secs(asked)))
    } else {
        Err(BadRequest::Timeout { asked, longest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(arguments: &Value) -> Result<Request, BadRequest> {
        let arguments = arguments.as_object().expect("an object").clone();
        Request::read(&arguments, Duration::from_secs(600))
    }

    #[test]
    fn a_plain_command_is_read() {
        let request = read(&json!({"command": "ls", "timeout": 600, "workdir": "/a b"})).unwrap();
        assert_eq!(request.what, What::Shell("ls".to_owned()));
        assert_eq!(request.timeout, Some(Duration::from_secs(600)));
        assert_eq!(request.workdir.as_deref(), Some("/a b"));
    }

    #[test]
    fn what_is_not_there_is_named_and_nothing_odd_gets_through() {
        for (arguments, expected) in [
            (json!({}), BadRequest::NoCommand),
            (json!({"command": " "}), BadRequest::NoCommand),
            (
                json!({"command": 1}),
                BadRequest::WrongType("command", "string"),
            ),
            (json!({"command": "a\0b"}), BadRequest::NulByte),
            (
                json!({"command": "a", "background": true}),
                BadRequest::NotThereYet("background"),
            ),
            (
                json!({"command": "a", "pty": true}),
                BadRequest::NotThereYet("pty"),
            ),
            (
                json!({"command": "a", "workdir": "$(x)"}),
                BadRequest::Workdir('$'),
            ),
            (
                json!({"command": "a", "timeout": 0}),
                BadRequest::Timeout {
                    asked: 0,
                    longest: 600,
                },
            ),
            (
                json!({"command": "a", "timeout": 601}),
                BadRequest::Timeout {
                    asked: 601,
                    longest: 600,
                },
            ),
        ] {
            assert_eq!(read(&arguments), Err(expected));
        }
    }
}
