//! What went wrong, told from a status and a body that follow no standard.

use std::error::Error;
use std::time::Duration;

use hermetic_types::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::EndpointSettings;
use crate::ModelError;

/// How much of an endpoint's own words is kept.
const MOST_DETAIL: usize = 500;

/// What a response with this status means.
pub(super) fn of_status(
    settings: &EndpointSettings,
    status: u16,
    body: &str,
    retry_after: Option<Duration>,
) -> ModelError {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    // Gemini puts its error into a list where a stream was asked for.
    let parsed = match parsed {
        Some(Value::Array(mut list)) if !list.is_empty() => Some(list.swap_remove(0)),
        other => other,
    };
    let error = parsed.as_ref().and_then(|value| value.get("error"));
    let told = ToldFailure {
        said: error.map_or_else(|| body.to_owned(), words),
        kind: error.map_or(EndpointFailureKind::Unknown, kind),
        retry_after: retry_after.or_else(|| error.and_then(retry_info)),
    };
    match (told.kind, status) {
        (EndpointFailureKind::Unknown, 401 | 403) => {
            told.error(settings, status, EndpointFailureKind::Key)
        }
        (EndpointFailureKind::Unknown, 402) => {
            told.error(settings, status, EndpointFailureKind::Credit)
        }
        (EndpointFailureKind::Unknown, 413) => {
            told.error(settings, status, EndpointFailureKind::Length)
        }
        (EndpointFailureKind::Unknown, 408 | 425 | 429 | 500..=599) => {
            told.error(settings, status, EndpointFailureKind::Busy)
        }
        (EndpointFailureKind::Unknown, _) => {
            told.error(settings, status, EndpointFailureKind::Request)
        }
        (kind, _) => told.error(settings, status, kind),
    }
}

/// An error within an answer whose status was 200.
pub(crate) fn of_object(settings: &EndpointSettings, error: &Value) -> ModelError {
    let code = error
        .get("code")
        .and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    let status = code
        .and_then(|code| u16::try_from(code).ok())
        .unwrap_or(200);
    let told = ToldFailure {
        said: words(error),
        kind: kind(error),
        retry_after: retry_info(error),
    };
    let kind = match (told.kind, status) {
        (EndpointFailureKind::Unknown, 401 | 403) => EndpointFailureKind::Key,
        (EndpointFailureKind::Unknown, 402) => EndpointFailureKind::Credit,
        (EndpointFailureKind::Unknown, 400 | 404 | 422) => EndpointFailureKind::Request,
        // An answer that broke down after it began is worth another try.
        (EndpointFailureKind::Unknown, _) => EndpointFailureKind::Busy,
        (kind, _) => kind,
    };
    told.error(settings, status, kind)
}

/// What went wrong, as far as the provider has a word for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndpointFailureKind {
    Busy,
    Key,
    Credit,
    Length,
    Request,
    Unknown,
}

/// What an endpoint told about a failure.
struct ToldFailure {
    said: String,
    kind: EndpointFailureKind,
    retry_after: Option<Duration>,
}

impl ToldFailure {
    fn error(
        self,
        settings: &EndpointSettings,
        status: u16,
        kind: EndpointFailureKind,
    ) -> ModelError {
        // Before it is kept anywhere: these words go to the log and into errors.
        let detail = without_secrets(settings, &self.said);
        let model = settings.model.clone();
        // The words tell of a length more often than the code does.
        let kind = match kind {
            // A rate is counted in tokens too, and "too many" of them are so for a minute.
            EndpointFailureKind::Request | EndpointFailureKind::Busy
                if status != 429 && speaks_of_length(&self.said) =>
            {
                EndpointFailureKind::Length
            }
            // Google says the same of a rate, and then when to come again.
            EndpointFailureKind::Request | EndpointFailureKind::Busy
                if speaks_of_credit(&self.said) && self.retry_after.is_none() =>
            {
                EndpointFailureKind::Credit
            }
            kind => kind,
        };
        match kind {
            EndpointFailureKind::Busy => ModelError::Busy {
                model,
                status,
                detail,
                retry_after: self.retry_after,
            },
            EndpointFailureKind::Key => ModelError::KeyRejected {
                model,
                status,
                detail,
            },
            EndpointFailureKind::Credit => ModelError::OutOfCredit {
                model,
                status,
                detail,
            },
            EndpointFailureKind::Length => ModelError::ContextTooLong { model, detail },
            EndpointFailureKind::Request | EndpointFailureKind::Unknown => ModelError::Refused {
                model,
                status,
                detail,
            },
        }
    }
}

/// The provider's own word: OpenAI's `code`, Anthropic's `type`, Google's `status` and `reason`.
fn kind(error: &Value) -> EndpointFailureKind {
    // What OpenRouter's moderation refused is about these words and not about the key.
    let metadata = error.get("metadata");
    let flagged = |name| metadata.is_some_and(|data| data.get(name).is_some());
    if flagged("reasons") || flagged("flagged_input") {
        return EndpointFailureKind::Request;
    }
    let details = error.get("details").and_then(Value::as_array);
    let reasons = details
        .into_iter()
        .flatten()
        .filter_map(|detail| detail.get("reason"));
    let names = ["code", "type", "status"].into_iter();
    let mut named = reasons
        .chain(names.filter_map(|name| error.get(name)))
        .filter_map(Value::as_str)
        .map(kind_named);
    named
        .find(|kind| *kind != EndpointFailureKind::Unknown)
        .unwrap_or(EndpointFailureKind::Unknown)
}

fn kind_named(name: &str) -> EndpointFailureKind {
    match name {
        "context_length_exceeded" | "string_above_max_length" | "request_too_large" => {
            EndpointFailureKind::Length
        }
        "insufficient_quota" | "billing_error" | "billing_hard_limit_reached" => {
            EndpointFailureKind::Credit
        }
        "invalid_api_key"
        | "authentication_error"
        | "permission_error"
        | "API_KEY_INVALID"
        | "PERMISSION_DENIED"
        | "UNAUTHENTICATED" => EndpointFailureKind::Key,
        "rate_limit_error"
        | "rate_limit_exceeded"
        | "overloaded_error"
        | "api_error"
        | "timeout_error"
        | "server_error"
        | "server_is_overloaded"
        | "vector_store_timeout"
        | "RESOURCE_EXHAUSTED"
        | "UNAVAILABLE"
        | "INTERNAL"
        | "DEADLINE_EXCEEDED" => EndpointFailureKind::Busy,
        "not_found_error" | "invalid_prompt" | "NOT_FOUND" | "FAILED_PRECONDITION" => {
            EndpointFailureKind::Request
        }
        _ => EndpointFailureKind::Unknown,
    }
}

/// Google says in the error when to come again, as in `"retryDelay": "34.07s"`.
fn retry_info(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?;
    let seconds: f64 = delay.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds.max(0.0)).ok()
}

/// Seconds or a date, or the milliseconds that some endpoints give besides.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let milliseconds = headers
        .get("retry-after-ms")
        .and_then(|value| value.to_str().ok()?.parse().ok());
    if let Some(milliseconds) = milliseconds {
        return Some(Duration::from_millis(milliseconds));
    }
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    parse_retry_after(text, now)
}

fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    }
    let date = DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Timestamp::from(date).since(now))
}

/// A transport error and its causes, without the address: it may hold a key.
pub(super) fn plainly(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() {
        "timed out".to_owned()
    } else if error.is_connect() {
        "no connection".to_owned()
    } else {
        "the request failed".to_owned()
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        cause = error.source();
        if cause.is_none() {
            text = format!("{text}: {error}");
        }
    }
    text
}

fn words(error: &Value) -> String {
    match error {
        Value::String(text) => text.clone(),
        other => match other.get("message").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => other.to_string(),
        },
    }
}

fn speaks_of_length(text: &str) -> bool {
    const PHRASES: [&str; 9] = [
        "context length",
        "context_length",
        "context window",
        "context limit",
        "maximum context",
        "too many tokens",
        "prompt is too long",
        "input token count",
        "exceeds the maximum number of tokens",
    ];
    let text = text.to_lowercase();
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

fn speaks_of_credit(text: &str) -> bool {
    const PHRASES: [&str; 4] = [
        "credit balance is too low",
        "insufficient balance",
        "insufficient credits",
        "exceeded your current quota, please check your plan and billing",
    ];
    let text = text.to_lowercase();
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Endpoints repeat the key they did not like.
fn without_secrets(settings: &EndpointSettings, text: &str) -> String {
    let keys = settings
        .key
        .iter()
        .chain(settings.headers.iter().map(|(_, value)| value));
    let mut text = text.to_owned();
    for key in keys.filter(|key| !key.is_empty()) {
        text = text.replace(key.expose(), "[redacted]");
    }
    shortened(&text)
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MOST_DETAIL) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(status: u16, body: &Value) -> ModelError {
        let settings = EndpointSettings::new("http://127.0.0.1:1", None, "m");
        of_status(&settings, status, &body.to_string(), None)
    }

    #[test]
    fn every_provider_has_its_own_words_for_the_same() {
        let google = |status: &str, reason: &str| {
            let details =
                json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]);
            json!({"error": {"code": 0, "message": "m", "status": status, "details": details}})
        };
        let anthropic = |kind: &str, said: &str| json!({"type": "error", "error": {"type": kind, "message": said}});
        let openai = |code: &str, said: &str| json!({"error": {"code": code, "message": said}});
        let table = [
            (529, anthropic("overloaded_error", "Overloaded"), "Busy"),
            (429, anthropic("rate_limit_error", "slow"), "Busy"),
            (
                401,
                anthropic("authentication_error", "invalid x-api-key"),
                "Key",
            ),
            (
                400,
                anthropic(
                    "invalid_request_error",
                    "prompt is too long: 210000 tokens > 200000 maximum",
                ),
                "Length",
            ),
            (
                400,
                anthropic(
                    "invalid_request_error",
                    "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
                ),
                "Length",
            ),
            (413, anthropic("request_too_large", "big"), "Length"),
            (
                400,
                anthropic(
                    "invalid_request_error",
                    "Your credit balance is too low to access the API",
                ),
                "Credit",
            ),
            (404, anthropic("not_found_error", "model: x"), "Request"),
            (400, google("INVALID_ARGUMENT", "API_KEY_INVALID"), "Key"),
            (
                429,
                google("RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED"),
                "Busy",
            ),
            (503, json!([google("UNAVAILABLE", "")]), "Busy"),
            (
                400,
                json!({"error": {"message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}}),
                "Length",
            ),
            (429, openai("insufficient_quota", "You exceeded"), "Credit"),
            (429, openai("rate_limit_exceeded", "slow"), "Busy"),
            (400, openai("context_length_exceeded", "long"), "Length"),
            (
                402,
                json!({"error": {"message": "Insufficient credits"}}),
                "Credit",
            ),
            (500, json!("oops"), "Busy"),
            (
                429,
                json!({"message": "Too many tokens, please wait before trying again."}),
                "Busy",
            ),
            (
                403,
                json!({"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["x"], "flagged_input": "y"}}}),
                "Request",
            ),
            (403, json!({"error": {"code": 403, "message": "no"}}), "Key"),
            (418, json!({}), "Request"),
        ];
        for (status, body, expected) in table {
            let kind = match told(status, &body) {
                ModelError::Busy { .. } => "Busy",
                ModelError::KeyRejected { .. } => "Key",
                ModelError::OutOfCredit { .. } => "Credit",
                ModelError::ContextTooLong { .. } => "Length",
                ModelError::Refused { .. } => "Request",
                other => panic!("{other:?}"),
            };
            assert_eq!(kind, expected, "{status} {body}");
        }
    }

    #[test]
    fn google_says_in_the_error_when_to_come_again() {
        let info =
            json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"});
        let body =
            json!({"error": {"code": 429, "message": "m", "details": [{"links": []}, info]}});
        assert_eq!(
            told(429, &body).retry_after(),
            Some(Duration::from_millis(34_500))
        );
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "1994-11-06T08:49:07Z".parse().expect("a time");
        let table = [
            ("30", Some(30.0)),
            ("0", Some(0.0)),
            ("1.5", Some(1.5)),
            ("-5", Some(0.0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30.0)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0.0)),
            ("soon", None),
            ("", None),
            ("NaN", Some(0.0)),
            ("1e300", None),
        ];
        for (text, expected) in table {
            let parsed = parse_retry_after(text, now).map(|wait| wait.as_secs_f64());
            assert_eq!(parsed, expected, "{text:?}");
        }
    }
}
