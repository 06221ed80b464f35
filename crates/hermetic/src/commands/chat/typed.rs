//! What somebody typed.

use std::fmt::Write as _;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypedLine {
    Nothing,
    Says(String),
    Sh(String),
    Py(String),
    /// `/reset` is another name for it.
    New,
    /// Destroys the sandbox; what was typed after it.
    Destroy(String),
    Status,
    /// Which model answers, or the one that somebody else's agent shall have.
    Model(String),
    /// The same for its modes.
    Mode(String),
    Whoami,
    /// A command of chats that has no use here, and what does its work.
    InChats(&'static str),
    /// What is remembered; what to do with it.
    Memory(String),
    /// The skills there are.
    Skills,
    /// Written as a command, and none; a skill may have the name.
    Unknown {
        name: String,
        line: String,
    },
    Help,
    Leave,
}

/// The commands that are completed, and what each does.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    (
        "/sh",
        "run a shell command in this conversation's sandbox, without the model",
    ),
    ("/py", "run Python there"),
    (
        "/new",
        "forget what was said; files stay (/reset is the same)",
    ),
    ("/destroy", "destroy the sandbox with its files; asks first"),
    (
        "/status",
        "where this conversation runs, and what it may reach",
    ),
    (
        "/model",
        "which model answers here; a name may follow where another agent answers",
    ),
    ("/mode", "the modes of another agent; a name may follow"),
    ("/whoami", "who you are here"),
    (
        "/memory",
        "what is remembered of you; pending, approve, reject or remove may follow",
    ),
    (
        "/skills",
        "what the agent knows how to do; /NAME has one followed",
    ),
    ("/help", "this list"),
    ("/quit", "leave; Ctrl-D does the same"),
];

/// Commands of chats that have no use at a keyboard.
const IN_CHATS: &[(&str, &str)] = &[
    (
        "/stop",
        "Nothing is running. Ctrl-C interrupts an answer while it is written.",
    ),
    (
        "/approve",
        "Nothing waits for a yes. A question is asked here when it comes up.",
    ),
    (
        "/deny",
        "Nothing waits for a no. A question is asked here when it comes up.",
    ),
    ("/usage", "What is said at the keyboard is not counted."),
    (
        "/undo",
        "Nothing is taken back at the keyboard. /new starts afresh.",
    ),
    ("/retry", "Press the arrow up for your last line."),
    (
        "/compact",
        "A long conversation is summarised by itself here.",
    ),
    (
        "/sessions",
        "`hermetic chat --session NAME` goes on with one.",
    ),
    (
        "/resume",
        "`hermetic chat --session NAME` goes on with one.",
    ),
    ("/files", "`/sh ls` shows them."),
    ("/sandbox", "/status says where this runs."),
    ("/egress", "/status says what can be reached."),
    ("/lift", "There are no budgets at the keyboard."),
    (
        "/agent",
        "`hermetic chat --agent NAME` has another agent answer.",
    ),
    ("/cron", "`hermetic cron list` shows jobs on a schedule."),
    ("/version", "`hermetic --version` says it."),
];

pub(super) fn help() -> String {
    let mut text = String::new();
    for (name, about) in COMMANDS {
        let _ = writeln!(text, "{name:9} {about}");
    }
    text
}

impl TypedLine {
    pub(super) fn read(line: &str) -> Self {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match name {
            "" => Self::Nothing,
            "/sh" if !rest.is_empty() => Self::Sh(rest.to_owned()),
            "/py" if !rest.is_empty() => Self::Py(rest.to_owned()),
            "/new" | "/reset" => Self::New,
            "/destroy" => Self::Destroy(rest.to_lowercase()),
            "/status" => Self::Status,
            "/model" => Self::Model(rest.to_owned()),
            "/mode" => Self::Mode(rest.to_owned()),
            "/whoami" => Self::Whoami,
            "/memory" => Self::Memory(rest.to_owned()),
            "/skills" => Self::Skills,
            "/help" | "/sh" | "/py" => Self::Help,
            "/quit" | "/exit" => Self::Leave,
            _ => Self::other(name, line),
        }
    }

    /// A path is no command, and neither is a fraction.
    fn other(name: &str, line: &str) -> Self {
        if let Some((_, instead)) = IN_CHATS.iter().find(|(known, _)| *known == name) {
            return Self::InChats(instead);
        }
        let word = name.strip_prefix('/').unwrap_or_default();
        let is_command =
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if is_command {
            Self::Unknown {
                name: name.to_owned(),
                line: line.to_owned(),
            }
        } else {
            Self::Says(line.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_looks_like_a_command_is_said() {
        assert_eq!(
            TypedLine::read(" /sh  ls -l \n"),
            TypedLine::Sh("ls -l".to_owned())
        );
        assert_eq!(TypedLine::read("/sh"), TypedLine::Help);
        assert_eq!(TypedLine::read("  "), TypedLine::Nothing);
        assert_eq!(TypedLine::read("/exit"), TypedLine::Leave);
        assert_eq!(TypedLine::read("/reset"), TypedLine::New);
        let confirmed = TypedLine::Destroy("yes".to_owned());
        assert_eq!(TypedLine::read("/destroy YES"), confirmed);
        for text in [
            "/etc/passwd, what is it?",
            "/2 of it",
            "/Users is full",
            "/",
        ] {
            assert_eq!(TypedLine::read(text), TypedLine::Says(text.to_owned()));
        }
        let lines = "first\n  second\nthird";
        assert_eq!(TypedLine::read(lines), TypedLine::Says(lines.to_owned()));
    }

    #[test]
    fn every_command_of_chats_is_known_here() {
        for command in hermetic_gateway::COMMANDS {
            let typed = TypedLine::read(&format!("/{} x", command.name));
            let is_known = !matches!(typed, TypedLine::Says(_) | TypedLine::Unknown { .. });
            assert!(is_known, "{}: {typed:?}", command.name);
        }
        let unknown = TypedLine::Unknown {
            name: "/nothing".to_owned(),
            line: "/nothing at all".to_owned(),
        };
        assert_eq!(TypedLine::read("/nothing at all"), unknown);
        for (name, _) in COMMANDS {
            let typed = TypedLine::read(name);
            assert!(!matches!(typed, TypedLine::Unknown { .. }), "{name}");
        }
    }
}
