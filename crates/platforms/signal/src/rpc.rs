//! JSON-RPC as signal-cli speaks it, and what its refusals mean.

use std::error::Error;
use std::time::Duration;

use hermetic_chat::SendFailure;
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

/// Nobody waits longer because a daemon says so.
const LONGEST_SIGNAL_RETRY: Duration = Duration::from_secs(3600);
/// For a rate limit that does not say for how long.
const USUAL_RETRY: Duration = Duration::from_secs(60);
/// A description is for a log line and a chat.
const LONGEST_DESCRIPTION: usize = 300;

/// Codes of signal-cli's own (`SignalJsonRpcCommandHandler`), and the one for an account that it has not.
const IO: i64 = -3;
const UNTRUSTED_KEY: i64 = -4;
const RATE_LIMIT: i64 = -5;
const INTERNAL: i64 = -32603;
const INVALID_PARAMS: i64 = -32602;
const INVALID_REQUEST: i64 = -32600;

/// What Signal's servers say to a device that was unlinked, within whatever failed by that.
const UNLINKED: &str = "Authorization failed";

/// Why a call came to nothing.
#[derive(Debug, Error)]
pub(crate) enum SignalCallError {
    /// The request never left.
    #[error("signal-cli cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// It left; what became of it is unknown.
    #[error("the connection to signal-cli broke")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    /// The connection is there, and nothing comes over it.
    #[error("signal-cli fell silent")]
    Silent,
    #[error("signal-cli answered with something we cannot read")]
    Garbled,
    /// Whoever listens there did not take the request for one.
    #[error("{}", of_status(*status))]
    Status { status: u16 },
    #[error(
        "this is signal-cli-rest-api, a wrapper with another protocol: give the address of signal-cli's own daemon (signal-cli daemon --http)"
    )]
    Wrapper,
    #[error("{0}")]
    Refused(SignalRefusal),
}

/// The `error` of an answer.
#[derive(Debug)]
pub(crate) struct SignalRefusal {
    pub(crate) code: i64,
    message: String,
    /// What became of it for each who should have got it.
    results: Vec<RecipientResult>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecipientResult {
    #[serde(rename = "type", default)]
    kind: String,
    retry_after_seconds: Option<u64>,
    /// There if a captcha would end the limit. Whoever has it could solve it, so it is not shown.
    token: Option<Value>,
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// The id of an answer and what it says.
pub(crate) fn answer(mut answer: Value) -> (Option<u64>, Result<Value, SignalCallError>) {
    let id = answer["id"].as_u64();
    let error = answer
        .get_mut("error")
        .map(Value::take)
        .filter(|error| !error.is_null());
    let said = match (error, answer.get_mut("result").map(Value::take)) {
        (Some(error), _) => Err(SignalCallError::Refused(SignalRefusal::read(&error))),
        (None, Some(result)) => Ok(result),
        (None, None) => Err(SignalCallError::Garbled),
    };
    (id, said)
}

impl SignalRefusal {
    fn read(error: &Value) -> Self {
        let message = error["message"].as_str().unwrap_or_default();
        let results = error["data"]["response"]["results"].as_array();
        let results = results.into_iter().flatten();
        Self {
            code: error["code"].as_i64().unwrap_or(INTERNAL),
            message: message.chars().take(LONGEST_DESCRIPTION).collect(),
            results: results
                .filter_map(|result| RecipientResult::deserialize(result).ok())
                .collect(),
        }
    }

    /// Whether every recipient failed in this way. False where nothing is said of them.
    fn all_are(&self, kind: &str) -> bool {
        !self.results.is_empty() && self.results.iter().all(|result| result.kind == kind)
    }

    fn wants_captcha(&self) -> bool {
        self.results.iter().any(|result| result.token.is_some())
    }

    fn retry_after(&self) -> Duration {
        let seconds = self
            .results
            .iter()
            .filter_map(|result| result.retry_after_seconds);
        let wait = seconds.max().map_or(USUAL_RETRY, Duration::from_secs);
        wait.min(LONGEST_SIGNAL_RETRY)
    }
}

impl std::fmt::Display for SignalRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.code {
            _ if self.lacks_account() => f.write_str(NO_ACCOUNT),
            UNTRUSTED_KEY => f.write_str(
                "their safety number changed; compare it with them, then `signal-cli trust` lets messages through",
            ),
            _ if self.wants_captcha() => f.write_str(
                "signal wants a captcha solved before more is sent: `signal-cli submitRateLimitChallenge`",
            ),
            _ if self.all_are("UNREGISTERED_FAILURE") => f.write_str("they have no signal account any more"),
            code => write!(f, "signal-cli refused with {code}: {}", self.message),
        }
    }
}

const NO_ACCOUNT: &str = "signal-cli has no such account: it was never linked there, or the phone unlinked it; \
                          link it again with `signal-cli link`";

fn of_status(status: u16) -> String {
    match status {
        400 => NO_ACCOUNT.to_owned(),
        421 => "signal-cli refuses the name it is called by (421): write the address as its --http has it, or \
                as 127.0.0.1 or localhost"
            .to_owned(),
        401 | 403 => format!("something in front of signal-cli keeps us out ({status})"),
        404 => "there is no signal-cli daemon at this address (404)".to_owned(),
        _ => format!("signal-cli answered {status}"),
    }
}

impl SignalCallError {
    pub(crate) fn unreachable(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Unreachable(Box::new(error))
    }

    pub(crate) fn broken(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Broken(Box::new(error))
    }

    /// Whether signal-cli does not know, or no longer knows, the account.
    pub(crate) fn lacks_account(&self) -> bool {
        match self {
            Self::Status { status } => *status == 400,
            Self::Refused(refusal) => refusal.lacks_account(),
            _ => false,
        }
    }

    /// Whether messages are received already, by whomever.
    pub(crate) fn says_already_received(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.message.contains("already being received"))
    }

    pub(crate) fn says_unknown_parameter(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code == INVALID_REQUEST)
    }

    /// Whether the formatting was not understood, as by a version that has no styles.
    pub(crate) fn is_about_styles(&self) -> bool {
        let about =
            |message: &str| message.contains("textStyle") || message.contains("Invalid style");
        matches!(self, Self::Refused(refusal) if about(&refusal.message))
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) if refusal.is_throttled() => Some(refusal.retry_after()),
            _ => None,
        }
    }
}

impl SignalRefusal {
    /// The daemon does not know the account, or Signal does not know the daemon.
    fn lacks_account(&self) -> bool {
        let is_unknown = self.code == INVALID_PARAMS && self.message.contains("account");
        is_unknown || self.message.contains(UNLINKED)
    }

    fn is_throttled(&self) -> bool {
        self.code == RATE_LIMIT || self.all_are("RATE_LIMIT_FAILURE")
    }

    fn failure(self) -> SendFailure {
        let description = self.to_string();
        match self.code {
            _ if self.is_throttled() => SendFailure::Throttled {
                retry_after: self.retry_after(),
            },
            // The account may be linked again, and nothing has left.
            _ if self.lacks_account() => {
                SendFailure::NotSent(Box::new(SignalCallError::Refused(self)))
            }
            // Signal's servers may have it although the daemon was not told.
            IO | INTERNAL => SendFailure::Uncertain(Box::new(SignalCallError::Refused(self))),
            _ if self.all_are("NETWORK_FAILURE") => {
                SendFailure::Uncertain(Box::new(SignalCallError::Refused(self)))
            }
            _ => SendFailure::Refused { description },
        }
    }
}

impl From<SignalCallError> for SendFailure {
    fn from(error: SignalCallError) -> Self {
        match error {
            SignalCallError::Refused(refusal) => refusal.failure(),
            // Whoever answers so has not read the request.
            SignalCallError::Unreachable(_)
            | SignalCallError::Wrapper
            | SignalCallError::Status { status: ..500 } => Self::NotSent(Box::new(error)),
            SignalCallError::Broken(_)
            | SignalCallError::Silent
            | SignalCallError::Garbled
            | SignalCallError::Status { .. } => Self::Uncertain(Box::new(error)),
        }
    }
}

#[cfg(test)]
#[path = "rpc_tests.rs"]
mod tests;
