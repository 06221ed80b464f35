//! What came of a request, in the words the model and people read.

use hermetic_policy::{ClearedGrounds, PolicyRefusal, RefusedBy};
use hermetic_redact::Redacted;
use serde_json::{Value, json};
use thiserror::Error;

use crate::CommandDenied;

/// A command that ran, or one that could not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalOutcome {
    Ran {
        output: Redacted<String>,
        /// 124 for a timeout, 130 for an interrupt, 126 for a folder that is not there.
        code: i32,
        /// What that code means here, where it looks like a failure and is none.
        meaning: Option<&'static str>,
        /// `sudo` did not take the password it was given.
        sudo_failed: bool,
        /// Who let it run, where somebody had to.
        approval: Option<&'static str>,
    },
    /// Nothing ran, or nobody knows.
    Failed { error: Redacted<String> },
}

/// The policy did not let it through.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct BlockedCommand {
    text: String,
    /// A person said no, or would have had to say yes.
    was_asked: bool,
}

/// What a model is told besides when a person did not say yes. People read the rest alone.
const AFTER_A_NO: &str =
    " Do not try to reach the same in another way; say what you wanted to do and why.";

impl TerminalOutcome {
    pub(crate) fn ran(output: Redacted<String>, code: i32) -> Self {
        Self::Ran {
            output,
            code,
            meaning: None,
            sudo_failed: false,
            approval: None,
        }
    }

    /// The keys that models trained on Hermes know.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Ran {
                output,
                code,
                meaning,
                sudo_failed,
                approval,
            } => {
                let mut json = json!({"output": output.as_str(), "exit_code": code, "error": null});
                if let Some(meaning) = meaning {
                    json["exit_code_meaning"] = (*meaning).into();
                }
                if *sudo_failed {
                    json["sudo_auth_failed"] = true.into();
                }
                if let Some(approval) = approval {
                    json["approval"] = (*approval).into();
                }
                json
            }
            Self::Failed { error } => failed("error", error.as_str()),
        }
    }

    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

/// What a result says of a command that did not run on its own merits.
pub(crate) fn approval(grounds: &ClearedGrounds) -> Option<&'static str> {
    match grounds {
        ClearedGrounds::Approved(_) => Some("This needed a yes, and a person gave it."),
        ClearedGrounds::LoweredByModel => Some(
            "This was looked at before it ran, and found harmless by the model that may say so.",
        ),
        ClearedGrounds::Typed
        | ClearedGrounds::OwnProgram
        | ClearedGrounds::Configured
        | ClearedGrounds::Sealed
        | ClearedGrounds::Harmless
        | ClearedGrounds::Allowlisted
        | ClearedGrounds::AskingOff => None,
    }
}

impl BlockedCommand {
    pub fn to_json(&self) -> Value {
        failed("blocked", &self.for_model())
    }

    /// The same with what only a model needs to be told.
    pub(crate) fn for_model(&self) -> String {
        let advice = if self.was_asked { AFTER_A_NO } else { "" };
        format!("{}{advice}", self.text)
    }

    pub(crate) fn because(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            was_asked: false,
        }
    }

    pub(crate) fn refused(refusal: &PolicyRefusal) -> Self {
        let by = match refusal.by() {
            RefusedBy::Floor => "This is never run on a machine without a sandbox",
            RefusedBy::Deny { .. } => "The operator's rules refuse this",
        };
        Self {
            text: format!("{by}: {}. Nothing was run.", refusal.reasons().join("; ")),
            was_asked: false,
        }
    }
}

impl From<CommandDenied> for BlockedCommand {
    fn from(denied: CommandDenied) -> Self {
        Self {
            text: denied.0,
            was_asked: true,
        }
    }
}

fn failed(status: &str, error: &str) -> Value {
    json!({"output": "", "exit_code": -1, "error": error, "status": status})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_not_told_what_only_a_model_needs_to_know() {
        let blocked = BlockedCommand::from(CommandDenied(
            "A person said no. Nothing was run.".to_owned(),
        ));
        assert_eq!(blocked.to_string(), "A person said no. Nothing was run.");
        let told = blocked.to_json()["error"].as_str().unwrap().to_owned();
        assert!(
            told.contains("said no") && told.contains("another way"),
            "{told}"
        );
    }
}
