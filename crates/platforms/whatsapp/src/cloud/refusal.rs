//! What Meta's error codes mean for a message.

use std::time::Duration;

use hermetic_chat::SendFailure;
use serde::Deserialize;
use thiserror::Error;

use crate::pace::HoldScope;

/// More than a day has passed since the person last wrote.
pub(super) const WINDOW_CLOSED: i64 = 131_047;

/// Nobody waits longer because a stand-in of Meta says so.
const LONGEST_GRAPH_RETRY: Duration = Duration::from_secs(3600);

/// An error as Meta writes it, in an answer or in a status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct RawError {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    title: String,
    error_data: Option<RawErrorData>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct RawErrorData {
    details: Option<String>,
}

/// Meta did not take a message, or did not deliver it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("meta refused with {code}: {}", self.words())]
pub(crate) struct GraphRefusal {
    pub(crate) code: i64,
    /// Of the answer; nothing where it was told later.
    status: Option<u16>,
    said: String,
    retry_after: Option<Duration>,
}

impl GraphRefusal {
    /// In an answer.
    pub(crate) fn answered(error: RawError, status: u16, asked: Option<Duration>) -> Self {
        let mut refusal = Self::told_later(error);
        if status == 429 && refusal.retry_after.is_none() {
            refusal.retry_after = Some(Duration::from_secs(5));
        }
        if refusal.retry_after.is_some() {
            refusal.retry_after = asked.or(refusal.retry_after);
        }
        refusal.retry_after = refusal
            .retry_after
            .map(|wait| wait.min(LONGEST_GRAPH_RETRY));
        Self {
            status: Some(status),
            ..refusal
        }
    }

    /// In a status, when the message had been taken.
    pub(crate) fn told_later(error: RawError) -> Self {
        let details = error.error_data.and_then(|data| data.details);
        let said = [details.unwrap_or_default(), error.message, error.title];
        let said = said.into_iter().find(|text| !text.is_empty());
        Self {
            code: error.code,
            status: None,
            said: said.unwrap_or_default().chars().take(300).collect(),
            retry_after: pause(error.code),
        }
    }

    /// How long Meta wants us to wait, and with whom.
    pub(crate) fn hold(&self) -> Option<(HoldScope, Duration)> {
        let whom = match self.code {
            131_056 => HoldScope::Chat,
            _ => HoldScope::Everyone,
        };
        self.retry_after.map(|wait| (whom, wait))
    }

    pub(crate) fn is_about_the_token(&self) -> bool {
        matches!(self.code, 0 | 190) && self.status.is_some_and(|status| status < 500)
            || self.status == Some(401)
    }

    /// For who reads the log or the list of failed deliveries.
    pub(crate) fn words(&self) -> String {
        let own = match self.code {
            WINDOW_CLOSED => {
                "they wrote nothing for 24 hours, and WhatsApp delivers only approved templates then; \
                 they have to write first"
            }
            131_026 => {
                "WhatsApp cannot deliver to them: no WhatsApp there, or they blocked this number"
            }
            131_030 => {
                "their number is not on the list of test recipients: add it in Meta's dashboard, or take \
                 the app live"
            }
            131_031 | 368 => "Meta has locked this business account",
            131_042 => "Meta has no valid way of payment for this business account",
            131_048 => {
                "too many people blocked or reported this number; Meta holds its messages back"
            }
            131_056 => "too many messages to the same person",
            131_062 => "Meta takes no business-scoped id for this message",
            130_429 | 80_007 | 4 => "too many requests",
            190 | 0 => "the access token is not valid any more",
            3 | 10 | 200..=299 => {
                "the access token lacks the permission whatsapp_business_messaging"
            }
            _ => return self.said.clone(),
        };
        own.to_owned()
    }
}

/// How long to wait after an error that asks for it.
fn pause(code: i64) -> Option<Duration> {
    let seconds = match code {
        // One message in six seconds to one person, in the long run.
        131_056 => 6,
        130_429 => 2,
        4 | 80_007 => 60,
        131_048 | 131_064 | 133_016 => 3600,
        _ => return None,
    };
    Some(Duration::from_secs(seconds))
}

impl From<GraphRefusal> for SendFailure {
    fn from(refusal: GraphRefusal) -> Self {
        let passes = matches!(refusal.code, 1 | 2 | 131_000 | 131_016 | 133_004);
        match (refusal.retry_after, refusal.status) {
            (Some(retry_after), _) => Self::Throttled { retry_after },
            // Something on Meta's side gave up; the message may be through.
            (None, Some(500..)) => Self::Uncertain(Box::new(refusal)),
            (None, Some(_)) if passes => Self::Uncertain(Box::new(refusal)),
            // A status is about this very message: it will not arrive.
            (None, None) if passes => Self::NotSent(Box::new(refusal)),
            (None, _) => Self::Refused {
                description: refusal.words(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i64) -> RawError {
        RawError {
            code,
            message: "as Meta says it".to_owned(),
            ..RawError::default()
        }
    }

    fn answered(code: i64, status: u16) -> SendFailure {
        GraphRefusal::answered(error(code), status, None).into()
    }

    #[test]
    fn a_closed_window_is_said_in_plain_words() {
        let SendFailure::Refused { description } = answered(WINDOW_CLOSED, 400) else {
            panic!("expected a refusal");
        };
        assert!(description.contains("24 hours"), "{description}");
        let SendFailure::Refused { description } = answered(131_051, 400) else {
            panic!("expected a refusal");
        };
        assert_eq!(description, "as Meta says it");
    }

    #[test]
    fn what_may_have_arrived_is_not_sent_again_unmarked() {
        assert!(matches!(answered(131_016, 500), SendFailure::Uncertain(_)));
        assert!(matches!(answered(131_000, 400), SendFailure::Uncertain(_)));
        let later = SendFailure::from(GraphRefusal::told_later(error(131_016)));
        assert!(later.is_safe_to_repeat());
    }

    #[test]
    fn waits_are_what_meta_asks_for_and_bounded() {
        let hour = Duration::from_secs(3600);
        let wait = |code, asked| GraphRefusal::answered(error(code), 400, asked).hold();
        assert_eq!(
            wait(131_056, None),
            Some((HoldScope::Chat, Duration::from_secs(6)))
        );
        assert_eq!(
            wait(80_007, Some(hour * 24)),
            Some((HoldScope::Everyone, hour))
        );
        assert_eq!(wait(131_047, Some(hour)), None);
        let unnamed = GraphRefusal::answered(RawError::default(), 429, None);
        assert!(unnamed.hold().is_some());
    }
}
