//! What the operator wrote: `approvals.deny`, `command_allowlist`, `approvals.mode`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::effective::{ReducedCommand, base_name};
use crate::reduce::glob;

#[derive(Clone, Debug, Default)]
pub struct PolicyRules {
    /// Globs over effective commands, checked first and on every backend. Case does not matter.
    pub deny: Vec<String>,
    /// Globs over effective commands that need no question.
    pub allow: Vec<String>,
    pub mode: PolicyMode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    /// A person answers every question.
    #[default]
    Manual,
    /// A model may answer the questions that allow it.
    Smart,
    /// Nobody is asked; the floor and the deny list hold.
    Off,
}

impl FromStr for PolicyMode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "manual" => Ok(Self::Manual),
            "smart" => Ok(Self::Smart),
            "off" => Ok(Self::Off),
            _ => Err(format!("unknown mode {name:?}; known: manual, smart, off")),
        }
    }
}

impl PolicyRules {
    /// The first deny glob that one of the commands matches.
    pub(crate) fn denied_by(&self, commands: &[ReducedCommand]) -> Option<&str> {
        self.deny
            .iter()
            .find(|deny| commands.iter().any(|command| matches(deny, command)))
            .map(String::as_str)
    }

    /// Whether every command is on the allowlist; wrappers that add nothing are looked through.
    pub(crate) fn allow_all(&self, commands: &[ReducedCommand]) -> bool {
        let mut own = commands
            .iter()
            .filter(|command| !command.transparent)
            .peekable();
        !self.allow.is_empty()
            && own.peek().is_some()
            && own.all(|command| {
                command.writes.iter().all(|file| file.s == "/dev/null")
                    && command.words.iter().all(|word| word.is_known())
                    && command.assigns.is_empty()
                    && self.allow.iter().any(|allow| matches(allow, command))
            })
    }
}

/// Against the line as it runs and with the program's bare name, so that `/bin/rm` is `rm`.
fn matches(pattern: &str, command: &ReducedCommand) -> bool {
    let pattern = pattern.trim().to_lowercase();
    let line = command.line().to_lowercase();
    let bare = match line.split_once(' ') {
        Some((program, rest)) => format!("{} {rest}", base_name(program)),
        None => base_name(&line).to_owned(),
    };
    [line, bare]
        .iter()
        .any(|line| glob::matches(&pattern, line) || *line == pattern)
}
