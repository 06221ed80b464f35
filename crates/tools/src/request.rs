//! What the model, or a person with `/sh`, asks the terminal for.

use std::time::Duration;

use hermetic_policy::{LastingCommand, ShellOutline};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// One command, read and checked, judged by nobody yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRequest {
    pub what: RequestedCode,
    pub workdir: Option<String>,
    /// Where the conversation is, as far as somebody has looked.
    pub place: Option<String>,
    pub timeout: Option<Duration>,
    /// With a terminal of its own.
    pub pty: bool,
    pub manner: RunManner,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunManner {
    /// The call waits for its end.
    Foreground,
    /// It goes on after the call.
    Background {
        tell: ProcessTell,
        ignored: Option<&'static str>,
    },
}

/// What whoever started a background process is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessTell {
    Nothing,
    End,
    /// When one of these stands in a line of its output.
    Matches(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedCode {
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
    #[error(
        "timeout is {asked} s; expected 1 to {longest} s for a command in the foreground. What takes \
         longer goes in the background"
    )]
    Timeout { asked: u64, longest: u64 },
    #[error(
        "workdir holds {0:?}; expected letters, digits and / \\ : _ - . ~ + @ = , and spaces only"
    )]
    Workdir(char),
    #[error(
        "watch_patterns takes at most {MOST_PATTERNS} patterns of 1 to {LONGEST_PATTERN} characters"
    )]
    Patterns,
    #[error("{0}")]
    Lasting(String),
}

const MOST_PATTERNS: usize = 32;
const LONGEST_PATTERN: usize = 500;

impl CommandRequest {
    pub fn shell(text: impl Into<String>) -> Self {
        Self::of(RequestedCode::Shell(text.into()))
    }

    pub fn python(source: impl Into<String>) -> Self {
        Self::of(RequestedCode::Python(source.into()))
    }

    fn of(what: RequestedCode) -> Self {
        Self {
            what,
            workdir: None,
            place: None,
            timeout: None,
            pty: false,
            manner: RunManner::Foreground,
        }
    }

    /// Reads the arguments of a tool call.
    pub fn read(arguments: &Map<String, Value>, longest: Duration) -> Result<Self, BadRequest> {
        let command = text(arguments, "command")?.ok_or(BadRequest::NoCommand)?;
        if command.trim().is_empty() {
            return Err(BadRequest::NoCommand);
        }
        if command.contains('\0') {
            return Err(BadRequest::NulByte);
        }
        let manner = manner(arguments)?;
        let timeout = match manner {
            RunManner::Foreground => timeout(arguments, longest)?,
            RunManner::Background { .. } => None,
        };
        if manner == RunManner::Foreground {
            refuse_lasting(command)?;
        }
        Ok(Self {
            what: RequestedCode::Shell(command.to_owned()),
            workdir: workdir(arguments)?,
            place: None,
            timeout,
            pty: flag(arguments, "pty")?,
            manner,
        })
    }
}

fn manner(arguments: &Map<String, Value>) -> Result<RunManner, BadRequest> {
    let notify = flag(arguments, "notify_on_complete")?;
    let patterns = patterns(arguments)?;
    if !flag(arguments, "background")? {
        return Ok(RunManner::Foreground);
    }
    let (tell, ignored) = match (notify, patterns) {
        (true, Some(_)) => (
            ProcessTell::End,
            Some("notify_on_complete is set, so watch_patterns is left out: one of them at a time"),
        ),
        (true, None) => (ProcessTell::End, None),
        (false, Some(patterns)) => (ProcessTell::Matches(patterns), None),
        (false, None) => (ProcessTell::Nothing, None),
    };
    Ok(RunManner::Background { tell, ignored })
}

/// What would go on after the call belongs in the background, where it can be seen and ended.
fn refuse_lasting(command: &str) -> Result<(), BadRequest> {
    let what = match ShellOutline::of(command).lasting {
        None => return Ok(()),
        Some(LastingCommand::Ampersand) => {
            "A command ended by & goes on without anybody seeing its output or its end".to_owned()
        }
        Some(LastingCommand::Detaches(word)) => {
            format!("{word} hides a process from this terminal")
        }
        Some(LastingCommand::Serves(words)) => format!("{words:?} does not come back by itself"),
    };
    Err(BadRequest::Lasting(format!(
        "{what}. Nothing was run. Call terminal again with background=true and without &, nohup, setsid \
         or disown; then follow it with the process tool, or set notify_on_complete."
    )))
}

fn flag(arguments: &Map<String, Value>, name: &'static str) -> Result<bool, BadRequest> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        // Some models quote whatever they send.
        Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err(BadRequest::WrongType(name, "boolean")),
    }
}

fn patterns(arguments: &Map<String, Value>) -> Result<Option<Vec<String>>, BadRequest> {
    const NAME: &str = "watch_patterns";
    let list = match arguments.get(NAME) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) if list.is_empty() => return Ok(None),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(BadRequest::WrongType(NAME, "list of strings")),
    };
    if list.len() > MOST_PATTERNS {
        return Err(BadRequest::Patterns);
    }
    let pattern = |value: &Value| {
        let text = value.as_str();
        let text = text.ok_or(BadRequest::WrongType(NAME, "list of strings"))?;
        let fits = (1..=LONGEST_PATTERN).contains(&text.chars().count());
        fits.then(|| text.to_owned()).ok_or(BadRequest::Patterns)
    };
    list.iter().map(pattern).collect::<Result<_, _>>().map(Some)
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
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(value) => value.as_u64(),
    };
    let asked = asked.ok_or(BadRequest::WrongType("timeout", "whole number of seconds"))?;
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

    fn read(arguments: &Value) -> Result<CommandRequest, BadRequest> {
        let arguments = arguments.as_object().expect("an object").clone();
        CommandRequest::read(&arguments, Duration::from_secs(600))
    }

    #[test]
    fn a_plain_command_is_read() {
        let request = read(&json!({"command": "ls", "timeout": 600, "workdir": "/a b"})).unwrap();
        assert_eq!(request.what, RequestedCode::Shell("ls".to_owned()));
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
                json!({"command": "a", "timeout": "soon"}),
                BadRequest::WrongType("timeout", "whole number of seconds"),
            ),
            (
                json!({"command": "a", "pty": "yes"}),
                BadRequest::WrongType("pty", "boolean"),
            ),
            (
                json!({"command": "a", "watch_patterns": ["", "x"]}),
                BadRequest::Patterns,
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

    #[test]
    fn what_was_quoted_without_need_is_read_all_the_same() {
        let request = read(&json!({"command": "ls", "timeout": "5", "pty": "True"})).unwrap();
        assert_eq!(request.timeout, Some(Duration::from_secs(5)));
        assert!(request.pty);
    }

    #[test]
    fn a_background_process_is_told_of_in_one_way() {
        let told = |arguments: Value| match read(&arguments).unwrap().manner {
            RunManner::Background { tell, ignored } => (tell, ignored.is_some()),
            RunManner::Foreground => panic!("in the foreground: {arguments}"),
        };
        let plain = json!({"command": "npm start", "background": true, "timeout": 9999});
        assert_eq!(told(plain), (ProcessTell::Nothing, false));
        let both = json!({"command": "a", "background": true, "notify_on_complete": true,
            "watch_patterns": ["x"]});
        assert_eq!(told(both), (ProcessTell::End, true));
        let watched = json!({"command": "a", "background": true, "watch_patterns": ["x"]});
        assert_eq!(
            told(watched),
            (ProcessTell::Matches(vec!["x".to_owned()]), false)
        );
    }

    #[test]
    fn what_would_go_on_is_sent_to_the_background() {
        for command in ["sleep 100 &", "nohup x", "npm start"] {
            let refused = read(&json!({"command": command})).unwrap_err();
            assert!(refused.to_string().contains("background=true"), "{refused}");
            assert!(read(&json!({"command": command, "background": true})).is_ok());
        }
        assert!(read(&json!({"command": "sleep 1 & sleep 1 & wait"})).is_ok());
    }
}
