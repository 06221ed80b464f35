//! What can be wrong with an answer, and what a person does about it.

use std::error::Error;

use hermetic_sandbox::BackendError;
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum DaytonaTrouble {
    #[error("the API key is not accepted")]
    Key,
    /// A permission or a quota.
    #[error("{said}")]
    Forbidden { said: String },
    #[error("too many requests")]
    TooMany,
    #[error("not there")]
    Missing,
    #[error("{said}")]
    Conflict { said: String },
    /// Any other 4xx: asked again, it would say the same.
    #[error("{said}")]
    Refused { said: String },
    /// A 5xx, or an answer that was cut off: what was asked may have happened.
    #[error("{said}")]
    Lost { said: String },
    #[error("{at} cannot be reached")]
    Unreachable {
        at: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("an answer that makes no sense: {why}")]
    Nonsense { why: String },
}

impl DaytonaTrouble {
    pub(crate) fn nonsense(error: &impl Error) -> Self {
        Self::Nonsense {
            why: error.to_string(),
        }
    }

    /// Whether the request may have been carried out all the same.
    pub(crate) fn leaves_doubt(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Nonsense { .. })
    }

    /// `step` is a verb: "create the sandbox".
    pub(crate) fn at(self, step: &str) -> BackendError {
        let unavailable = |what: String, remedy: &str| BackendError::Unavailable {
            what,
            remedy: remedy.to_owned(),
        };
        match self {
            Self::Key => unavailable(
                "Daytona does not accept the API key".to_owned(),
                "write a valid DAYTONA_API_KEY; Daytona's dashboard makes keys",
            ),
            Self::Forbidden { said } if is_quota(&said) => unavailable(
                format!("Daytona's quota does not allow to {step}: {said}"),
                "delete sandboxes, ask for smaller ones (terminal.container_*), or raise the \
                 organisation's limits in Daytona's dashboard",
            ),
            Self::Forbidden { said } => unavailable(
                format!("Daytona does not allow to {step}: {said}"),
                "give the API key the permissions to write and delete sandboxes",
            ),
            Self::TooMany => unavailable(
                format!("Daytona takes no more requests for now, so it did not {step}"),
                "wait a little; fewer sandboxes at once ask less (gateway.max_sandboxes)",
            ),
            Self::Lost { said } => unavailable(
                format!("Daytona failed to {step}: {said}"),
                "try again in a while; Daytona's status page knows of outages",
            ),
            Self::Unreachable { at, source } => unavailable(
                format!("Daytona at {at} cannot be reached: {}", deepest(&source)),
                "check the network and DAYTONA_API_URL",
            ),
            Self::Conflict { said } | Self::Refused { said } => BackendError::Refused {
                what: format!("to {step}"),
                why: said,
            },
            other @ (Self::Missing | Self::Nonsense { .. }) => BackendError::failed(step, other),
        }
    }
}

fn is_quota(said: &str) -> bool {
    let said = said.to_lowercase();
    ["quota", "limit", "exceed", "credit", "billing", "suspended"]
        .iter()
        .any(|word| said.contains(word))
}

/// The last cause says what happened; those above it repeat that it did.
fn deepest(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
