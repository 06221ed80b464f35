//! What went wrong, told from a status and a body that follow no standard.

use std::error::Error;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::Settings;
use crate::ModelError;

/// How much of an endpoint's own words is kept.
const MOST_DETAIL: usize = 500;

pub(super) fn of_status(
    settings: &Settings,
    status: u16,
    body: &str,
    retry_after: Option<Duration>,
) -> ModelError {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let error = parsed.as_ref().and_then(|value| value.get("error"));
    let said = error.map_or_else(|| body.to_owned(), words);
    let detail = without_secrets(settings, &said);
    let model = settings.model.clone();
    match status {
        408 | 425 | 429 | 500..=599 => ModelError::Busy {
            model,
            status,
            detail,
            retry_after,
        },
        401 | 403 => ModelError::KeyRejected {
            model,
            status,
            detail,
        },
        413 => ModelError::ContextTooLong { model, detail },
        _ if speaks_of_length(&said) || error.is_some_and(has_length_code) => {
            ModelError::ContextTooLong { model, detail }
        }
        _ => ModelError::Refused {
            model,
            status,
            detail,
        },
    }
}

/// An error within an answer whose status was 200.
pub(super) fn of_object(settings: &Settings, error: &Value) -> ModelError {
    let detail = without_secrets(settings, &words(error));
    let model = settings.model.clone();
    let code = error
        .get("code")
        .and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    let status = code
        .and_then(|code| u16::try_from(code).ok())
        .unwrap_or(200);
    match status {
        _ if has_length_code(error) || speaks_of_length(&detail) => {
            ModelError::ContextTooLong { model, detail }
        }
        401 | 403 => ModelError::KeyRejected {
            model,
            status,
            detail,
        },
        400 | 404 | 422 => ModelError::Refused {
            model,
            status,
            detail,
        },
        // An answer that broke down after it began is worth another try.
        _ => ModelError::Busy {
            model,
            status,
            detail,
            retry_after: None,
        },
    }
}

/// Seconds or a date, or the milliseconds that some endpoints give besides.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let milliseconds = headers
        .get("retry-after-ms")
        .and_then(|value| value.to_str().ok()?.parse().ok());
    if let Some(milliseconds) = milliseconds {
        return Some(Duration::from_millis(milliseconds));
    }
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    parse_retry_after(text, Timestamp::now())
}

fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    }
    let date = DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
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

fn has_length_code(error: &Value) -> bool {
    let code = error
        .get("code")
        .and_then(Value::as_str)
        .unwrap_or_default();
    code == "context_length_exceeded" || code == "string_above_max_length"
}

fn speaks_of_length(text: &str) -> bool {
    const PHRASES: [&str; 6] = [
        "context length",
        "context_length",
        "context window",
        "maximum context",
        "too many tokens",
        "prompt is too long",
    ];
    let text = text.to_lowercase();
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Endpoints repeat the key they did not like.
fn without_secrets(settings: &Settings, text: &str) -> String {
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
    use super::*;

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
