//! Signing and checking.

use std::time::Duration;

use axum::http::HeaderMap;
use hermetic_types::{Secret, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

pub const TIMESTAMP_HEADER: &str = "x-hermetic-timestamp";
pub const NONCE_HEADER: &str = "x-hermetic-nonce";
pub const SIGNATURE_HEADER: &str = "x-hermetic-signature";

/// How far a sender's clock may be off, and so how long a nonce is remembered on either side.
pub(crate) const WINDOW: Duration = Duration::from_secs(300);

/// The three headers of a signed body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHeaders {
    pub timestamp: i64,
    pub nonce: String,
    pub value: String,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum WebhookSignatureError {
    #[error("the header {name} is missing or unreadable")]
    Header { name: &'static str },
    #[error("the signature does not fit")]
    Wrong,
    #[error("the timestamp is outside of the window")]
    Stale,
}

impl SignedHeaders {
    pub fn sign(secret: &Secret, timestamp: i64, nonce: impl Into<String>, body: &[u8]) -> Self {
        let nonce = nonce.into();
        let digest = mac(secret, timestamp, &nonce, body).finalize().into_bytes();
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            timestamp,
            nonce,
            value: format!("v1={hex}"),
        }
    }

    pub fn read(headers: &HeaderMap) -> Result<Self, WebhookSignatureError> {
        let text = |name: &'static str| {
            let mut values = headers.get_all(name).iter();
            // Of two values a proxy before us might have looked at the other one.
            let (value, more) = (values.next(), values.next());
            value
                .filter(|_| more.is_none())
                .and_then(|value| value.to_str().ok())
                .ok_or(WebhookSignatureError::Header { name })
        };
        let nonce = text(NONCE_HEADER)?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
        if !(1..=128).contains(&nonce.len()) || !nonce.bytes().all(plain) {
            return Err(WebhookSignatureError::Header { name: NONCE_HEADER });
        }
        Ok(Self {
            timestamp: text(TIMESTAMP_HEADER)?.parse().map_err(|_| {
                WebhookSignatureError::Header {
                    name: TIMESTAMP_HEADER,
                }
            })?,
            nonce: nonce.to_owned(),
            value: text(SIGNATURE_HEADER)?.to_owned(),
        })
    }

    /// The signature first: only who holds the secret learns that a clock is off.
    pub fn check(
        &self,
        secret: &Secret,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), WebhookSignatureError> {
        let shown = self
            .value
            .strip_prefix("v1=")
            .and_then(unhex)
            .ok_or(WebhookSignatureError::Wrong)?;
        // In the same time whatever differs, so that nobody finds a signature letter by letter.
        mac(secret, self.timestamp, &self.nonce, body)
            .verify_slice(&shown)
            .map_err(|_| WebhookSignatureError::Wrong)?;
        match now.distance(Timestamp::from_seconds(self.timestamp)) <= WINDOW {
            true => Ok(()),
            false => Err(WebhookSignatureError::Stale),
        }
    }
}

/// The dots keep the parts apart: no part but the body can hold one.
fn mac(secret: &Secret, timestamp: i64, nonce: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes())
        .expect("HMAC takes a key of any length");
    mac.update(format!("v1.{timestamp}.{nonce}.").as_bytes());
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

    const NOW: i64 = 1_700_000_000;

    fn check(
        signature: &SignedHeaders,
        secret: &str,
        body: &[u8],
        at: i64,
    ) -> Result<(), WebhookSignatureError> {
        signature.check(&Secret::new(secret), body, Timestamp::from_seconds(at))
    }

    /// Made with `printf 'v1.1700000000.n-1.{}' | openssl dgst -sha256 -hmac secret`.
    #[test]
    fn a_signature_is_what_others_compute() {
        let signature = SignedHeaders::sign(&Secret::new("secret"), NOW, "n-1", b"{}");
        assert_eq!(
            signature.value,
            "v1=7fcae7388f620a8938b7504988964dcc956c343122a9e71a716d6e749464f5c1"
        );
    }

    #[test]
    fn whatever_is_changed_is_noticed() {
        let good = SignedHeaders::sign(&Secret::new("secret"), NOW, "n-1", b"{}");
        assert_eq!(check(&good, "secret", b"{}", NOW), Ok(()));
        let late = SignedHeaders {
            timestamp: NOW + 1,
            ..good.clone()
        };
        let renamed = SignedHeaders {
            nonce: "n-2".to_owned(),
            ..good.clone()
        };
        let empty = SignedHeaders {
            value: String::new(),
            ..good.clone()
        };
        let short = SignedHeaders {
            value: "v1=".to_owned(),
            ..good.clone()
        };
        for (signature, secret, body) in [
            (&good, "Secret", b"{}"),
            (&good, "secret", b"[]"),
            (&late, "secret", b"{}"),
            (&renamed, "secret", b"{}"),
            (&empty, "secret", b"{}"),
            (&short, "secret", b"{}"),
        ] {
            assert_eq!(
                check(signature, secret, body, NOW),
                Err(WebhookSignatureError::Wrong)
            );
        }
    }

    #[test]
    fn five_minutes_either_way() {
        let good = SignedHeaders::sign(&Secret::new("secret"), NOW, "n-1", b"{}");
        for (at, expected) in [
            (NOW - 300, Ok(())),
            (NOW + 300, Ok(())),
            (NOW - 301, Err(WebhookSignatureError::Stale)),
            (NOW + 301, Err(WebhookSignatureError::Stale)),
        ] {
            assert_eq!(check(&good, "secret", b"{}", at), expected);
        }
        let absurd = SignedHeaders::sign(&Secret::new("secret"), i64::MAX, "n-1", b"{}");
        assert_eq!(
            check(&absurd, "secret", b"{}", NOW),
            Err(WebhookSignatureError::Stale)
        );
    }
}
