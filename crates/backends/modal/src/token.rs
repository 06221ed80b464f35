//! The short-lived token, had in exchange for the long-lived one.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hermetic_types::Secret;
use serde::Deserialize;
use tokio::time::Instant;

#[derive(Clone, Debug)]
pub(crate) struct AuthToken {
    pub(crate) text: Secret,
    good_until: Instant,
}

#[derive(Deserialize)]
struct TokenClaims {
    exp: f64,
}

/// For a token that does not say.
const UNTOLD: Duration = Duration::from_secs(600);

impl AuthToken {
    /// Half of its life is used: the other half is for clocks that disagree.
    pub(crate) fn new(text: String, seconds_since_1970: f64) -> Self {
        let life = expiry(&text)
            .map(|expiry| Duration::try_from_secs_f64(expiry - seconds_since_1970))
            .map_or(UNTOLD, |left| left.unwrap_or_default() / 2);
        Self {
            text: Secret::new(text),
            good_until: Instant::now() + life.min(UNTOLD * 6),
        }
    }

    pub(crate) fn is_good(&self) -> bool {
        Instant::now() < self.good_until
    }
}

/// Unverified: it is the server's to judge, and we only want to be in time.
fn expiry(token: &str) -> Option<f64> {
    let claims = token.split('.').nth(1)?;
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    let claims: TokenClaims = serde_json::from_slice(&claims).ok()?;
    claims.exp.is_finite().then_some(claims.exp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn half_of_a_life_is_used() {
        let claims = URL_SAFE_NO_PAD.encode(r#"{"exp": 1100}"#);
        let token = AuthToken::new(format!("head.{claims}.tail"), 1000.0);
        assert!(token.is_good());
        tokio::time::advance(Duration::from_secs(49)).await;
        assert!(token.is_good());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!token.is_good());
    }

    #[tokio::test(start_paused = true)]
    async fn nonsense_is_good_for_a_while() {
        for text in ["", "a.b.c", "a.eyJleHAiOiJ4In0.c", "..."] {
            assert!(AuthToken::new(text.to_owned(), 0.0).is_good(), "{text}");
        }
        let past = URL_SAFE_NO_PAD.encode(r#"{"exp": 1}"#);
        assert!(!AuthToken::new(format!("a.{past}.c"), 1000.0).is_good());
    }
}
