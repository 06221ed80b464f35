//! Slash commands, read from a message.

mod listed;
mod of_hermes;

pub use listed::{ArgumentDescription, COMMANDS, CommandDescription};

/// A command we know. What only looks like one is a message like any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChatCommand {
    /// `/reset` is another name for it, as in Hermes.
    New,
    /// `/new forget`: what was said is not kept.
    Forget,
    /// Destroys the sandbox; what was written after it.
    Destroy(String),
    Stop,
    Status,
    Sh(String),
    Py(String),
    /// What today took.
    Usage,
    /// Which model answers here, and which shall.
    Model(String),
    /// Who answers here, and who shall.
    Agent(String),
    /// Shows or chooses a mode of somebody else's agent.
    Mode(String),
    /// Summarises what was said; `/compress` is another name for it, as in Hermes.
    Compact,
    /// Takes the last turn back.
    Undo,
    /// Takes the last turn once more.
    Retry,
    /// What was said before the conversation started afresh.
    Sessions,
    /// Goes on with one of those.
    Resume(String),
    /// What lies in a folder of the workspace.
    Files(String),
    /// Where commands run.
    Sandbox,
    /// What can be reached from there.
    Egress,
    /// What is remembered of whoever asks.
    Memory(String),
    /// The skills there are.
    Skills,
    /// Jobs on a schedule; what to do with them.
    Cron(String),
    /// Lifts a budget; whose.
    Lift(String),
    Whoami,
    Version,
    Help,
    Approve(String),
    Deny(String),
    /// The name of one that nobody has.
    Unknown(String),
}
/// No command has a longer name.
const LONGEST_NAME: usize = 32;

impl ChatCommand {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let words = text.trim().strip_prefix('/')?;
        let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        // In a group people write `/status@OurBot`; whether it is for us was decided before.
        let name = name.split('@').next().unwrap_or(name).to_ascii_lowercase();
        let rest = rest.trim();
        Some(match name.as_str() {
            // Only this very word: anything else behind `/new` keeps what was said, because
            // forgetting cannot be undone.
            "new" | "reset" if rest.eq_ignore_ascii_case("forget") => Self::Forget,
            "new" | "reset" => Self::New,
            "destroy" => Self::Destroy(rest.to_owned()),
            "stop" => Self::Stop,
            "status" => Self::Status,
            "sh" => Self::Sh(rest.to_owned()),
            "py" => Self::Py(rest.to_owned()),
            "usage" => Self::Usage,
            "model" => Self::Model(rest.to_owned()),
            "agent" => Self::Agent(rest.to_owned()),
            "mode" => Self::Mode(rest.to_owned()),
            "compact" | "compress" => Self::Compact,
            "undo" => Self::Undo,
            "retry" => Self::Retry,
            "sessions" => Self::Sessions,
            "resume" => Self::Resume(rest.to_owned()),
            "files" => Self::Files(rest.to_owned()),
            "sandbox" => Self::Sandbox,
            "egress" => Self::Egress,
            "memory" => Self::Memory(rest.to_owned()),
            "skills" => Self::Skills,
            "cron" => Self::Cron(rest.to_owned()),
            "lift" => Self::Lift(rest.to_owned()),
            "whoami" => Self::Whoami,
            "version" | "v" => Self::Version,
            "help" | "start" | "commands" => Self::Help,
            "approve" => Self::Approve(rest.to_owned()),
            "deny" => Self::Deny(rest.to_owned()),
            _ => return None,
        })
    }

    /// A message that is written as a command and is none: `/stauts`. A path is none, nor is what has a
    /// slash elsewhere.
    pub(crate) fn unknown(text: &str) -> Option<Self> {
        let first = text.split_whitespace().next()?.strip_prefix('/')?;
        let name = first.split('@').next().unwrap_or(first);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.len() <= LONGEST_NAME
            && name.chars().all(plain);
        is_name.then(|| Self::Unknown(name.to_ascii_lowercase()))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::New | Self::Forget => "new",
            Self::Destroy(_) => "destroy",
            Self::Stop => "stop",
            Self::Status => "status",
            Self::Sh(_) => "sh",
            Self::Py(_) => "py",
            Self::Usage => "usage",
            Self::Model(_) => "model",
            Self::Agent(_) => "agent",
            Self::Mode(_) => "mode",
            Self::Compact => "compact",
            Self::Undo => "undo",
            Self::Retry => "retry",
            Self::Sessions => "sessions",
            Self::Resume(_) => "resume",
            Self::Files(_) => "files",
            Self::Sandbox => "sandbox",
            Self::Egress => "egress",
            Self::Memory(_) => "memory",
            Self::Skills => "skills",
            Self::Cron(_) => "cron",
            Self::Lift(_) => "lift",
            Self::Whoami => "whoami",
            Self::Version => "version",
            Self::Help => "help",
            Self::Approve(_) => "approve",
            Self::Deny(_) => "deny",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Whether running it once more after a crash does no harm.
    pub(crate) fn may_be_repeated(&self) -> bool {
        !matches!(
            self,
            Self::Sh(_) | Self::Py(_) | Self::Undo | Self::Resume(_) | Self::Cron(_)
        )
    }

    /// Whether it changes what was said, so that no turn may be at work meanwhile.
    pub(crate) fn takes_a_turn(&self) -> bool {
        matches!(
            self,
            Self::Compact | Self::Undo | Self::Retry | Self::Resume(_)
        )
    }

    /// Whether a model is asked for it, which takes a position like any turn.
    pub(crate) fn asks_model(&self) -> bool {
        matches!(self, Self::Compact | Self::Retry)
    }

    /// Whether it runs something in the sandbox. Those of one conversation run one after the other, and
    /// each needs a permit like a turn.
    pub(crate) fn works(&self) -> bool {
        matches!(self, Self::Sh(_) | Self::Py(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_people_write_them() {
        assert_eq!(
            ChatCommand::read("/sh ls -l\n"),
            Some(ChatCommand::Sh("ls -l".to_owned()))
        );
        assert_eq!(
            ChatCommand::read("/SH\nls"),
            Some(ChatCommand::Sh("ls".to_owned()))
        );
        assert_eq!(
            ChatCommand::read("/status@OurBot"),
            Some(ChatCommand::Status)
        );
        assert_eq!(ChatCommand::read("/start"), Some(ChatCommand::Help));
        assert_eq!(ChatCommand::read("/reset"), Some(ChatCommand::New));
        assert_eq!(ChatCommand::read("/new x"), Some(ChatCommand::New));
        assert_eq!(ChatCommand::read("/new Forget"), Some(ChatCommand::Forget));
        let confirmed = ChatCommand::Destroy("yes".to_owned());
        assert_eq!(ChatCommand::read("/destroy  yes "), Some(confirmed));
        for text in [
            "/etc/passwd is a file",
            "/shell x",
            "sh ls",
            "/",
            "",
            "//sh",
        ] {
            assert_eq!(ChatCommand::read(text), None, "{text:?}");
        }
    }
}
