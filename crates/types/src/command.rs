//! What somebody wants to run.

use std::collections::BTreeMap;
use std::time::Duration;

/// A command before anybody judged it. `hermetic-policy` turns it into something that may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub program: CommandProgram,
    /// Where it runs; the sandbox's working directory if absent.
    pub workdir: Option<String>,
    /// Set on top of the sandbox's own environment.
    pub env: BTreeMap<String, String>,
    pub stdin: CommandInput,
    pub output: OutputMode,
    /// The conversation goes on where it ends, as it would after a command in the persistent shell.
    /// For a [`CommandProgram::Script`].
    pub leads: bool,
    /// A terminal of this many columns and rows instead of pipes.
    pub pty: Option<(u16, u16)>,
    pub timeout: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandProgram {
    /// Shell text for a fresh `bash -c`.
    Script(String),
    /// Shell text for the conversation's persistent shell.
    Shell(String),
    /// Words that no shell looks at.
    Words(Vec<String>),
    /// The program of ours that every sandbox has, in one of its roles. The words are data for it and need
    /// not be text.
    Inside {
        role: &'static str,
        words: Vec<Vec<u8>>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandInput {
    /// `/dev/null`.
    Empty,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// Written while the command runs.
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMode {
    /// stdout and stderr, each by itself.
    Apart,
    /// Both as one, in the order of writing.
    Merged,
}

impl Command {
    pub fn script(text: impl Into<String>) -> Self {
        Self::of(CommandProgram::Script(text.into()))
    }

    pub fn shell(text: impl Into<String>) -> Self {
        Self::of(CommandProgram::Shell(text.into()))
    }

    pub fn words(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::of(CommandProgram::Words(
            words.into_iter().map(Into::into).collect(),
        ))
    }

    fn of(program: CommandProgram) -> Self {
        Self {
            program,
            workdir: None,
            env: BTreeMap::new(),
            stdin: CommandInput::Empty,
            output: OutputMode::Apart,
            leads: false,
            pty: None,
            timeout: None,
        }
    }
}
