//! The commands as people are told of them.

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
        command(
            "new",
            "Start afresh; files stay",
            takes(
                "forget",
                "forget, to have what was ever said here deleted",
                &["forget"],
            ),
        ),
        command("undo", "Take back the last turn and its files", None),
        command("retry", "Answer the last message once more", None),
        command("compact", "Summarise what was said, to make room", None),
        command(
            "sessions",
            "What was said here before it started afresh",
            None,
        ),
        command(
            "resume",
            "Go on with an earlier session of this chat",
            takes("session", "Its name, as /sessions lists it", &[]),
        ),
        command(
            "files",
            "What is in the workspace",
            takes("folder", "A folder in it", &[]),
        ),
        command("sandbox", "Where commands run", None),
        command("egress", "What can be reached from there", None),
        command(
            "destroy",
            "Destroy the sandbox with its files; asks first",
            takes("answer", "yes, to say that you mean it", &["yes"]),
        ),
        command("status", "What goes on in this conversation", None),
        command("usage", "What you and this conversation used today", None),
        command(
            "model",
            "Which model answers here, or another one",
            takes("name", "A model of this gateway, or default", &["default"]),
        ),
        command(
            "agent",
            "Which agent answers here, or another one",
            takes(
                "name",
                "An agent of this gateway, hermetic, or default",
                &["hermetic", "default"],
            ),
        ),
        command(
            "mode",
            "How another agent works here",
            takes("name", "A mode of the agent, or default", &["default"]),
        ),
        command(
            "memory",
            "What I remember of you, or of this group",
            takes(
                "what",
                "pending, approve ID, reject ID or remove TEXT",
                &["pending"],
            ),
        ),
        command("skills", "What I know how to do", None),
        command(
            "cron",
            "Your jobs on a schedule",
            takes(
                "what",
                "add, show, pause, resume, run or remove",
                &["add", "show", "pause", "resume", "run", "remove"],
            ),
        ),
        command("whoami", "Who you are here", None),
        command("version", "Which version answers here", None),
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
        command(
            "lift",
            "Lift a budget once for today",
            needs("budget", "person, conversation or all, and a name"),
        ),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ChatCommand;

    #[test]
    fn every_command_that_is_listed_is_one() {
        for listed in COMMANDS {
            let read = ChatCommand::read(&format!("/{} x", listed.name));
            assert_eq!(read.as_ref().map(ChatCommand::name), Some(listed.name));
        }
    }

    #[test]
    fn the_page_names_every_command_that_is_here() {
        let page = include_str!("../../../../../docs/hermes-parity.md");
        for command in COMMANDS {
            let name = format!("`/{}`", command.name);
            assert!(page.contains(&name), "{name}");
        }
    }
}
