//! Whether a notification comes from Meta.

use axum::http::HeaderMap;
use hermetic_types::Secret;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const HEADER: &str = "x-hub-signature-256";

/// Whether the body was signed with the app's secret. Of the raw bytes: a body that was parsed and
/// written again is another one.
pub(super) fn is_signed(headers: &HeaderMap, body: &[u8], app_secret: &Secret) -> bool {
    let mut values = headers.get_all(HEADER).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let shown = value
        .to_str()
        .ok()
        .and_then(|value| value.strip_prefix("sha256="));
    let Some(shown) = shown.and_then(unhex) else {
        return false;
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(app_secret.expose().as_bytes())
        .expect("HMAC takes a key of any length");
    mac.update(body);
    // Compares in constant time.
    mac.verify_slice(&shown).is_ok()
}

/// Whether two secrets are the same, without telling how much of them is.
pub(super) fn is_same(shown: &str, secret: &Secret) -> bool {
    let digest = |text: &str| Sha256::digest(text.as_bytes());
    let (shown, known) = (digest(shown), digest(secret.expose()));
    shown.as_slice().ct_eq(known.as_slice()).into()
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

    /// Made with `printf '{"a":1}' | openssl dgst -sha256 -hmac app-secret`.
    const GOOD: &str = "sha256=a2ac6607a24977f9757e6d78319ae1660ad42ffeee0ee3f0dff30a92bcf85448";

    fn signed(value: &str, body: &[u8]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, value.parse().unwrap());
        is_signed(&headers, body, &Secret::new("app-secret"))
    }

    #[test]
    fn a_signature_is_what_others_compute() {
        let body = br#"{"a":1}"#;
        assert!(signed(GOOD, body));
        for (value, body) in [
            (GOOD, &br#"{"a": 1}"#[..]),
            (&GOOD.replace("sha256=", "sha1="), body),
            (&GOOD.replace("sha256=", ""), body),
            (&GOOD[..GOOD.len() - 1], body),
            ("sha256=", body),
            ("", body),
        ] {
            assert!(!signed(value, body), "{value}");
        }
    }

    #[test]
    fn two_signatures_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(HEADER, GOOD.parse().unwrap());
        headers.append(HEADER, GOOD.parse().unwrap());
        assert!(!is_signed(
            &headers,
            br#"{"a":1}"#,
            &Secret::new("app-secret")
        ));
    }
}
