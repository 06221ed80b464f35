//! Slash commands, read from a message.

/// A command we know. What only looks like one is a message like any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slash {
    /// `/reset` is another name for it, as in Hermes.
    New,
    /// Destroys the sandbox; what was written after it.
    Destroy(String),
    Stop,
    Status,
    Sh(String),
    Py(String),
    Whoami,
    Help,
    Approve(String),
    Deny(String),
}

/// A command as people are told of it, for platforms that list them.
#[derive(Clone, Copy, Debug)]
pub struct CommandDescription {
    pub name: &'static str,
    pub about: &'static str,
    pub argument: Option<ArgumentDescription>,
}

/// What is written behind a command.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentDescription {
    pub name: &'static str,
    pub about: &'static str,
    pub required: bool,
    /// Words that are often meant.
    pub words: &'static [&'static str],
}

/// Every command that we know, but for second names.
pub const COMMANDS: &[CommandDescription] = {
    const fn command(
        name: &'static str,
        about: &'static str,
        argument: Option<ArgumentDescription>,
    ) -> CommandDescription {
        CommandDescription {
            name,
            about,
            argument,
        }
    }
    const fn needs(name: &'static str, about: &'static str) -> Option<ArgumentDescription> {
        Some(ArgumentDescription {
            name,
            about,
            required: true,
            words: &[],
        })
    }
    const fn takes(
        name: &'static str,
        about: &'static str,
        words: &'static [&'static str],
    ) -> Option<ArgumentDescription> {
        Some(ArgumentDescription {
            name,
            about,
            required: false,
            words,
        })
    }
    &[
        command("help", "What you can write here", None),
        command(
            "sh",
            "Run a shell command in the sandbox, without the model",
            needs("command", "What to run"),
        ),
        command(
            "py",
            "Run Python in the sandbox, without the model",
            needs("code", "What to run"),
        ),
        command("stop", "Interrupt what is running", None),
        command("new", "Forget what was said; files stay", None),
        command(
            "destroy",
            "Destroy the sandbox with its files; asks first",
            takes("answer", "yes, to say that you mean it", &["yes"]),
        ),
        command("status", "What goes on in this conversation", None),
        command("whoami", "Who you are here", None),
        command(
            "approve",
            "Say yes to a question",
            takes(
                "which",
                "Its name, and session if for longer than once",
                &["session", "all"],
            ),
        ),
        command(
            "deny",
            "Say no to a question",
            takes("which", "Its name, and a reason", &["all"]),
        ),
    ]
};

impl Slash {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let words = text.trim().strip_prefix('/')?;
        let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        // In a group people write `/status@OurBot`; whether it is for us was decided before.
        let name = name.split('@').next().unwrap_or(name).to_ascii_lowercase();
        let rest = rest.trim();
        Some(match name.as_str() {
            "new" | "reset" => Self::New,
            "destroy" => Self::Destroy(rest.to_owned()),
            "stop" => Self::Stop,
            "status" => Self::Status,
            "sh" => Self::Sh(rest.to_owned()),
            "py" => Self::Py(rest.to_owned()),
            "whoami" => Self::Whoami,
            "help" | "start" => Self::Help,
            "approve" => Self::Approve(rest.to_owned()),
            "deny" => Self::Deny(rest.to_owned()),
            _ => return None,
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Destroy(_) => "destroy",
            Self::Stop => "stop",
            Self::Status => "status",
            Self::Sh(_) => "sh",
            Self::Py(_) => "py",
            Self::Whoami => "whoami",
            Self::Help => "help",
            Self::Approve(_) => "approve",
            Self::Deny(_) => "deny",
        }
    }

    /// Whether running it once more after a crash does no harm.
    pub(crate) fn may_be_repeated(&self) -> bool {
        !matches!(self, Self::Sh(_) | Self::Py(_))
    }

    /// Whether it runs something in the sandbox. Those of one conversation run one after the other, and
    /// each needs a seat like a turn.
    pub(crate) fn works(&self) -> bool {
        matches!(self, Self::Sh(_) | Self::Py(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_listed_is_one() {
        for listed in COMMANDS {
            let read = Slash::read(&format!("/{} x", listed.name));
            assert_eq!(read.as_ref().map(Slash::name), Some(listed.name));
        }
    }

    #[test]
    fn commands_are_read_as_people_write_them() {
        assert_eq!(
            Slash::read("/sh ls -l\n"),
            Some(Slash::Sh("ls -l".to_owned()))
        );
        assert_eq!(Slash::read("/SH\nls"), Some(Slash::Sh("ls".to_owned())));
        assert_eq!(Slash::read("/status@OurBot"), Some(Slash::Status));
        assert_eq!(Slash::read("/start"), Some(Slash::Help));
        assert_eq!(Slash::read("/reset"), Some(Slash::New));
        let confirmed = Slash::Destroy("yes".to_owned());
        assert_eq!(Slash::read("/destroy  yes "), Some(confirmed));
        for text in [
            "/etc/passwd is a file",
            "/shell x",
            "sh ls",
            "/",
            "",
            "//sh",
        ] {
            assert_eq!(Slash::read(text), None, "{text:?}");
        }
    }
}
