//! Whether a request is from Slack: `X-Slack-Signature` over the raw bytes, and its age.

use std::time::Duration;

use axum::http::HeaderMap;
use hermetic_types::{Secret, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

pub const SIGNATURE_HEADER: &str = "x-slack-signature";
pub const TIMESTAMP_HEADER: &str = "x-slack-request-timestamp";

/// What Slack recommends: an older request is one that somebody recorded.
const WINDOW: Duration = Duration::from_secs(300);

#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum SlackSignatureError {
    #[error("the header {name} is missing or unreadable")]
    Header { name: &'static str },
    #[error("the signature does not fit")]
    Wrong,
    #[error("the request is older than five minutes, or from the future")]
    Stale,
}

/// The signature first: only who holds the secret learns that a clock is off.
pub(crate) fn check(
    secret: &Secret,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<(), SlackSignatureError> {
    let timestamp = text(headers, TIMESTAMP_HEADER)?;
    let shown = text(headers, SIGNATURE_HEADER)?;
    let shown = shown
        .strip_prefix("v0=")
        .and_then(unhex)
        .ok_or(SlackSignatureError::Wrong)?;
    mac(secret, timestamp, body)
        .verify_slice(&shown)
        .map_err(|_| SlackSignatureError::Wrong)?;
    let at = timestamp.parse().ok().map(Timestamp::from_seconds);
    match at.is_some_and(|at| now.distance(at) <= WINDOW) {
        true => Ok(()),
        false => Err(SlackSignatureError::Stale),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, SlackSignatureError> {
    let mut values = headers.get_all(name).iter();
    let (value, more) = (values.next(), values.next());
    value
        .filter(|_| more.is_none())
        .and_then(|value| value.to_str().ok())
        .ok_or(SlackSignatureError::Header { name })
}

fn mac(secret: &Secret, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes())
        .expect("HMAC takes a key of any length");
    mac.update(format!("v0:{timestamp}:").as_bytes());
    mac.update(body);
    mac
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let text = text.as_bytes();
    let mut bytes = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |c: u8| {
            char::from(c)
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        };
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Slack's documentation.
    const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
    const BODY: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const AT: i64 = 1_531_420_618;
    const SIGNATURE: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";

    fn checked(
        signature: &str,
        timestamp: &str,
        body: &str,
        now: i64,
    ) -> Result<(), SlackSignatureError> {
        let mut headers = HeaderMap::new();
        headers.insert(SIGNATURE_HEADER, signature.parse().unwrap());
        headers.insert(TIMESTAMP_HEADER, timestamp.parse().unwrap());
        let now = Timestamp::from_seconds(now);
        check(&Secret::new(SECRET), &headers, body.as_bytes(), now)
    }

    #[test]
    fn a_request_of_slack_is_known_for_five_minutes() {
        let at = AT.to_string();
        for (now, expected) in [
            (AT, Ok(())),
            (AT + 300, Ok(())),
            (AT - 300, Ok(())),
            (AT + 301, Err(SlackSignatureError::Stale)),
            (AT - 301, Err(SlackSignatureError::Stale)),
        ] {
            assert_eq!(checked(SIGNATURE, &at, BODY, now), expected);
        }
    }

    #[test]
    fn whatever_is_changed_is_noticed() {
        let (at, later) = (AT.to_string(), (AT + 1).to_string());
        let longer = format!("{BODY} ");
        for (signature, timestamp, body) in [
            (SIGNATURE, later.as_str(), BODY),
            (SIGNATURE, at.as_str(), longer.as_str()),
            (&SIGNATURE.replace("v0=", "v1="), at.as_str(), BODY),
            (&SIGNATURE[..SIGNATURE.len() - 2], at.as_str(), BODY),
            ("v0=", at.as_str(), BODY),
            ("", at.as_str(), BODY),
        ] {
            assert_eq!(
                checked(signature, timestamp, body, AT),
                Err(SlackSignatureError::Wrong)
            );
        }
        let headers = HeaderMap::new();
        let now = Timestamp::from_seconds(AT);
        let checked = check(&Secret::new(SECRET), &headers, b"", now);
        assert!(matches!(checked, Err(SlackSignatureError::Header { .. })));
    }
}
