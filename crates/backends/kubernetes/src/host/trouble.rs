//! What can be wrong with an answer of the cluster, and what a person does about it.

use std::error::Error;
use std::time::Duration;

use hermetic_sandbox::BackendError;
use reqwest::StatusCode;
use serde::Deserialize;
use thiserror::Error;

use super::access::AccessError;

/// What of a cluster's words a person is shown.
const LONGEST_WORDS: usize = 400;

#[derive(Debug, Error)]
pub(crate) enum ClusterTrouble {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("the cluster does not accept our credentials")]
    Unauthenticated,
    /// No right, no quota, or an admission that says no.
    #[error("{said}")]
    Forbidden { said: String },
    #[error("not there")]
    Missing,
    /// An object of that name exists already.
    #[error("{said}")]
    Taken { said: String },
    /// It, or a quota that counts it, was changed meanwhile. Nothing was carried out.
    #[error("{said}")]
    Conflict { said: String },
    /// A list that was begun too long ago to be continued.
    #[error("{said}")]
    Expired { said: String },
    #[error("the cluster takes no more requests for now")]
    TooMany,
    /// Any other 4xx: asked again, it would say the same.
    #[error("{said}")]
    Refused { said: String },
    /// A 5xx, or an answer that was cut off: what was asked may have happened.
    #[error("{said}")]
    Lost { said: String },
    #[error("{at} cannot be reached: {why}")]
    Unreachable { at: String, why: String },
}

/// The cluster's own account of what was wrong.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StatusObject {
    pub(crate) status: String,
    pub(crate) message: String,
    /// One word for programs, where the number says less.
    pub(crate) reason: String,
}

impl ClusterTrouble {
    pub(crate) fn of(status: StatusCode, body: &[u8]) -> Self {
        let told = serde_json::from_slice::<StatusObject>(body).unwrap_or_default();
        let said = match one_line(&told.message) {
            words if words.is_empty() => format!("it answered {}", status.as_u16()),
            words => words,
        };
        match status.as_u16() {
            401 => Self::Unauthenticated,
            403 => Self::Forbidden { said },
            404 => Self::Missing,
            409 if told.reason == "AlreadyExists" => Self::Taken { said },
            409 => Self::Conflict { said },
            410 => Self::Expired { said },
            429 => Self::TooMany,
            400..=499 => Self::Refused { said },
            _ => Self::Lost { said },
        }
    }

    pub(crate) fn lost(said: impl Into<String>) -> Self {
        Self::Lost { said: said.into() }
    }

    /// Whether the same may be asked again with hope. `freely` is for what may happen twice.
    pub(crate) fn passes(&self, freely: bool) -> bool {
        match self {
            Self::TooMany | Self::Unreachable { .. } => true,
            Self::Lost { .. } => freely,
            _ => false,
        }
    }

    /// Whether the request may have been carried out all the same.
    pub(crate) fn leaves_doubt(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// `step` is a verb: "create the sandbox".
    pub(crate) fn at(self, step: &str) -> BackendError {
        let unavailable = |what: String, remedy: &str| BackendError::Unavailable {
            what,
            remedy: remedy.to_owned(),
        };
        match self {
            Self::Access(error) => unavailable(error.to_string(), error.remedy()),
            Self::Unauthenticated => unavailable(
                "the cluster does not accept our credentials".to_owned(),
                "log in again, or mend the user of the kubeconfig's context",
            ),
            Self::Forbidden { said } if said.contains("PodSecurity") => unavailable(
                format!("the namespace does not admit the sandbox: {said}"),
                "the pods keep the `restricted` standard; an admission of the cluster's own asks for more",
            ),
            Self::Forbidden { said } if said.contains("quota") => unavailable(
                format!("the namespace has no room: {said}"),
                "raise its ResourceQuota, or ask for less (terminal.container_*, kubernetes_request_*)",
            ),
            Self::Forbidden { said } if said.contains("RuntimeClass") => unavailable(
                format!("the cluster does not allow to {step}: {said}"),
                "write terminal.kubernetes_runtime_class as kubectl get runtimeclasses has it",
            ),
            Self::Forbidden { said } => unavailable(
                format!("the cluster does not allow to {step}: {said}"),
                "hermetic kubernetes manifest prints the rights it takes; kubectl apply gives them",
            ),
            Self::TooMany => unavailable(
                format!("the cluster takes no more requests for now, so it did not {step}"),
                "wait a little; fewer sandboxes at once ask less (gateway.max_sandboxes)",
            ),
            Self::Lost { said } => unavailable(
                format!("the cluster failed to {step}: {said}"),
                "try again in a while",
            ),
            Self::Unreachable { at, why } => unavailable(
                format!("the cluster at {at} cannot be reached: {why}"),
                "check the network and the server of the kubeconfig's context",
            ),
            Self::Conflict { said } => unavailable(
                format!("the cluster changed something meanwhile and did not {step}: {said}"),
                "try again in a while",
            ),
            Self::Taken { said } | Self::Refused { said } => BackendError::Refused {
                what: format!("to {step}"),
                why: said,
            },
            other @ (Self::Missing | Self::Expired { .. }) => BackendError::failed(step, other),
        }
    }
}

/// With how long to wait, where that was said.
pub(crate) type FailedRequest = (ClusterTrouble, Option<Duration>);

/// The last cause says what happened; those above it repeat that it did.
pub(crate) fn deepest(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    one_line(&error.to_string())
}

/// Words of a stranger, fit for one line of ours.
pub(crate) fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(plain).take(LONGEST_WORDS).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admission_that_says_no_is_told_with_its_words() {
        let body = br#"{"kind": "Status", "status": "Failure", "code": 403, "message":
            "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true"}"#;
        let error = ClusterTrouble::of(StatusCode::FORBIDDEN, body).at("create the sandbox");
        assert!(error.to_string().contains("runAsNonRoot"), "{error}");
    }

    #[test]
    fn a_runtime_class_that_is_not_there_is_no_missing_right() {
        let said =
            "Error creating: pods \"x\" is forbidden: pod rejected: RuntimeClass \"y\" not found";
        let said = said.to_owned();
        let error = ClusterTrouble::Forbidden { said }.at("create the sandbox's pod");
        let BackendError::Unavailable { remedy, .. } = error else {
            panic!("with a remedy: {error:?}");
        };
        assert!(remedy.contains("get runtimeclasses"), "{remedy}");
    }

    #[test]
    fn what_a_stranger_says_stays_in_one_line() {
        assert_eq!(one_line("a\nb\x1b[31m  c"), "a b [31m c");
        assert_eq!(one_line(&"x".repeat(9000)).len(), LONGEST_WORDS);
    }
}
