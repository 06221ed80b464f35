//! Why an agent gave no answer.

use thiserror::Error;

/// Why an agent gave no answer, in words that read well after its name. What it says itself is data from an
/// untrusted place: bounded here, redacted by whoever shows it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AgentFailure {
    #[error("could not be started: {0}")]
    NotStarted(String),
    #[error(
        "could not go on with its earlier session: it {why}. /new begins a new one; the files stay, and what was \
         said to it is forgotten"
    )]
    NotLoaded { why: String },
    #[error("{how}{complaint}")]
    Ended { how: String, complaint: String },
    #[error("wrote a line that is longer than any message may be, and was ended")]
    LongLine,
    #[error("wrote more than it may in one turn, and was ended")]
    Flood,
    #[error("writes something else than the Agent Client Protocol, and was ended{complaint}")]
    Garbage { complaint: String },
    #[error("gave no sign of life for {seconds} seconds, and was ended")]
    Silent { seconds: u64 },
    #[error("answered `{method}` with an error: {message}")]
    Refused { method: String, message: String },
    #[error(
        "wants a login first ({said}). A login by a browser, as subscriptions have, is not possible from a sandbox: \
         what it leaves would lie where everything that runs can read it. Give it a key (gateway.egress.credentials, \
         and `authenticate` where the agent wants to be told)"
    )]
    WantsLogin { said: String },
    #[error("gave an answer to `{method}` that cannot be understood")]
    Unreadable { method: String },
    #[error("speaks version {version} of the protocol, and this gateway version 1")]
    Version { version: String },
    #[error("was ended")]
    LetGo,
}

impl AgentFailure {
    /// The same, where an agent that refuses to begin says that nobody has logged in.
    pub(crate) fn at_the_start(self) -> Self {
        const WORDS: [&str; 4] = ["authenticat", "log in", "login", "sign in"];
        match self {
            Self::Refused { message, .. }
                if WORDS
                    .iter()
                    .any(|word| message.to_lowercase().contains(word)) =>
            {
                Self::WantsLogin { said: message }
            }
            other => other,
        }
    }

    /// Whether the program is of no use any more.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Refused { .. } | Self::WantsLogin { .. })
    }
}
