//! What a judgement ends in.

use hermetic_types::{Command, CommandInput, CommandProgram};
use serde::Serialize;
use thiserror::Error;

use crate::finding::HarmFinding;
use crate::fingerprint::CommandFingerprint;
use crate::own_program::OwnProgram;

/// A command the policy has let through.
///
/// Its fields are private and a sandbox runs nothing else, so a command that nobody judged does
/// not compile:
///
/// ```compile_fail,E0451
/// use hermetic_policy::{Cleared, ClearedGrounds};
/// use hermetic_types::Command;
///
/// let command = Command::words(["rm", "-r", "/"].map(str::to_owned));
/// let cleared = Cleared { command, grounds: ClearedGrounds::Harmless };
/// ```
#[derive(Clone, Debug)]
pub struct Cleared {
    command: Command,
    grounds: ClearedGrounds,
}

/// Why a command may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClearedGrounds {
    /// The person at the keyboard typed it on their own command line, or types into it.
    Typed,
    /// It is a program of ours.
    OwnProgram,
    /// The operator wrote it into the configuration.
    Configured,
    /// The backend is a boundary: what runs there can only hurt the sandbox.
    Sealed,
    /// Nothing about it was found that anybody could mind.
    Harmless,
    /// Every part of it is on the operator's allowlist.
    Allowlisted,
    /// The operator switched asking off.
    AskingOff,
    /// A person allowed exactly this.
    Approved(AnswerScope),
    /// The model that may lower questions found it harmless.
    LoweredByModel,
}

#[derive(Debug)]
pub enum Verdict {
    Run(Cleared),
    Ask(ApprovalQuestion),
    Refuse(PolicyRefusal),
}

/// A command that waits for a person.
///
/// It becomes [`Cleared`] only by an [`CommandApproval`] that names its fingerprint.
#[derive(Clone, Debug)]
pub struct ApprovalQuestion {
    pub(crate) command: Command,
    pub(crate) fingerprint: CommandFingerprint,
    pub(crate) findings: Vec<HarmFinding>,
    pub(crate) doubts: Vec<String>,
    pub(crate) effective: Vec<String>,
    pub(crate) lowerable: ModelReview,
    pub(crate) longest_yes: AnswerScope,
}

/// Whether a model may answer instead of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelReview {
    ByModel,
    Never,
}

/// How long a yes holds, the shortest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerScope {
    Once,
    /// The caller puts the fingerprint into [`JudgementContext::approved`](crate::JudgementContext) of this session.
    Session,
}

/// A yes, for exactly the effective commands of one question.
#[derive(Clone, Debug)]
pub struct CommandApproval {
    fingerprint: CommandFingerprint,
    scope: AnswerScope,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("the answer is for another command")]
pub struct FingerprintMismatch;

/// Why a command does not run, whoever asks.
#[derive(Clone, Debug)]
pub struct PolicyRefusal {
    pub(crate) by: RefusedBy,
    pub(crate) reasons: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedBy {
    /// Nobody can allow this on a backend that is no boundary.
    Floor,
    /// The operator's `approvals.deny`.
    Deny { glob: String },
}

impl Cleared {
    /// A program of ours, which nobody has to judge: it is one of a fixed list.
    pub fn own_program(program: OwnProgram) -> Self {
        Self::on(program.into_command(), ClearedGrounds::OwnProgram)
    }

    /// A command that a person typed on this machine's own command line, which is theirs already, or the shell
    /// into which an operator types in the dashboard, which only a sandbox has. For what a person types and for
    /// nothing else; a test of the repository looks for other uses.
    pub fn typed_by_operator(command: Command) -> Self {
        Self {
            command,
            grounds: ClearedGrounds::Typed,
        }
    }

    pub(crate) fn on(command: Command, grounds: ClearedGrounds) -> Self {
        Self { command, grounds }
    }

    pub fn command(&self) -> &Command {
        &self.command
    }

    pub fn grounds(&self) -> &ClearedGrounds {
        &self.grounds
    }

    pub fn into_command(self) -> Command {
        self.command
    }

    /// The same script from a file. A script that was judged as the stdin of `interpreter -` comes
    /// back as its bytes and a command that reads them from `path`, where the caller puts exactly
    /// these bytes. Anything else comes back as it was.
    pub fn script_in_file(mut self, path: &str) -> Result<(Vec<u8>, Self), Box<Self>> {
        let CommandProgram::Words(words) = &mut self.command.program else {
            return Err(Box::new(self));
        };
        match (words.last_mut(), &self.command.stdin) {
            (Some(word), CommandInput::Bytes(_)) if word == "-" => word.replace_range(.., path),
            _ => return Err(Box::new(self)),
        }
        match std::mem::replace(&mut self.command.stdin, CommandInput::Empty) {
            CommandInput::Bytes(script) => Ok((script, self)),
            _ => Err(Box::new(self)),
        }
    }
}

impl ApprovalQuestion {
    pub fn command(&self) -> &Command {
        &self.command
    }

    pub fn fingerprint(&self) -> &CommandFingerprint {
        &self.fingerprint
    }

    pub fn findings(&self) -> &[HarmFinding] {
        &self.findings
    }

    /// What could not be understood.
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// The commands that would really run, a line each.
    pub fn effective(&self) -> &[String] {
        &self.effective
    }

    pub fn lowerable(&self) -> ModelReview {
        self.lowerable
    }

    /// How long a yes can hold: once, where what the command works on is only known when it runs. The same
    /// text may work on something else the next time, and nobody was asked about that.
    pub fn longest_yes(&self) -> AnswerScope {
        self.longest_yes
    }

    /// The reasons in plain words.
    pub fn reasons(&self) -> Vec<String> {
        self.findings
            .iter()
            .map(|finding| finding.reason.clone())
            .chain(self.doubts.iter().cloned())
            .collect()
    }

    /// A person said yes.
    pub fn answered(self, answer: &CommandApproval) -> Result<Cleared, FingerprintMismatch> {
        if answer.fingerprint == self.fingerprint {
            let scope = answer.scope.min(self.longest_yes);
            Ok(Cleared::on(self.command, ClearedGrounds::Approved(scope)))
        } else {
            Err(FingerprintMismatch)
        }
    }

    /// The model said yes. Gives the question back where a model has no say.
    pub fn lowered_by_model(self, fingerprint: &CommandFingerprint) -> Result<Cleared, Box<Self>> {
        if self.lowerable == ModelReview::ByModel && *fingerprint == self.fingerprint {
            Ok(Cleared::on(self.command, ClearedGrounds::LoweredByModel))
        } else {
            Err(Box::new(self))
        }
    }
}

impl CommandApproval {
    pub fn yes(fingerprint: CommandFingerprint, scope: AnswerScope) -> Self {
        Self { fingerprint, scope }
    }

    pub fn scope(&self) -> AnswerScope {
        self.scope
    }
}

impl PolicyRefusal {
    pub fn by(&self) -> &RefusedBy {
        &self.by
    }

    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}
