//! What a judgement ends in.

use hermetic_types::Command;

/// A command the policy has let through.
///
/// Its fields are private and a sandbox runs nothing else, so a command that nobody judged does
/// not compile.
#[derive(Clone, Debug)]
pub struct Cleared {
    command: Command,
    grounds: Grounds,
}

/// Why a command may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// The person at the keyboard typed it on their own command line.
    Typed,
    /// The backend is a boundary: what runs there can only hurt the sandbox.
    Sealed,
}

impl Cleared {
    /// A command that a person typed on this machine's own command line, which is theirs already.
    pub fn typed_by_operator(command: Command) -> Self {
        Self {
            command,
            grounds: Grounds::Typed,
        }
    }

    pub fn command(&self) -> &Command {
        &self.command
    }

    pub fn grounds(&self) -> &Grounds {
        &self.grounds
    }

    pub fn into_command(self) -> Command {
        self.command
    }
}
