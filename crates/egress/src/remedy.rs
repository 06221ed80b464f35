//! What a person can do about a refusal, in the words of the command they ran.

use crate::rules::{Authority, DEFAULT_PORT};

/// What a person can do about a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalRemedy {
    Allow(Box<str>),
    /// The same, though TLS may do already.
    AllowOrUseTls(Box<str>),
    /// The same, where the host is meant to be at such an address.
    AllowThere(Box<str>),
    /// The command with which an operator gives back what was lost.
    Lift(Box<str>),
    Do(&'static str),
}

/// How a person lets a host through, where this proxy runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllowInstructions {
    /// By a rule; a gateway takes it up as it runs.
    #[default]
    ByRule,
    /// By a flag of the command that runs.
    ByFlagOf(&'static str),
}

impl RefusalRemedy {
    pub(crate) fn allow(target: &Authority) -> Self {
        Self::Allow(rule_of(target).into())
    }

    pub(crate) fn words(&self, allowing: AllowInstructions) -> String {
        let allow = |what: &str| match allowing {
            AllowInstructions::ByRule => format!("hermetic egress allow {what}"),
            AllowInstructions::ByFlagOf(command) => {
                format!("start `{command}` with --allow {what}")
            }
        };
        match self {
            Self::Allow(what) => allow(what),
            Self::AllowOrUseTls(what) => {
                format!("{} (or https:// where the host is allowed)", allow(what))
            }
            Self::AllowThere(what) => {
                format!("if this host is meant to be there: {}", allow(what))
            }
            Self::Lift(command) => command.to_string(),
            Self::Do(words) => (*words).to_owned(),
        }
    }
}

/// The target in the words of a rule.
pub(crate) fn rule_of(target: &Authority) -> String {
    match target.port {
        DEFAULT_PORT => target.host.to_string(),
        _ => target.to_string(),
    }
}
