//! The browser's part: where it is sent, and what it comes back with.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hermetic_types::Secret;
use reqwest::Url;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::failure::{LoginError, after_colon, legible};
use crate::scope::ScopeSet;

/// What a browser comes back with, at most.
pub(crate) const LONGEST_ANSWER: usize = 16 * 1024;

/// The two secrets of one attempt: `state` ties the answer to it, the verifier ties the code to us.
#[derive(Debug)]
pub(crate) struct FlowSecrets {
    pub(crate) state: Secret,
    pub(crate) verifier: Secret,
}

/// A question to a person, as an address to open.
#[derive(Debug)]
pub(crate) struct AuthorizationRequest<'a> {
    pub(crate) endpoint: &'a Url,
    pub(crate) client: &'a str,
    pub(crate) redirect: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) scope: &'a ScopeSet,
}

/// What the authorization server must be called in an answer.
#[derive(Debug)]
pub(crate) struct ExpectedAnswer<'a> {
    pub(crate) state: &'a Secret,
    pub(crate) issuer: &'a str,
    pub(crate) names_issuer: bool,
}

impl FlowSecrets {
    pub(crate) fn random() -> Result<Self, LoginError> {
        Ok(Self {
            state: random()?,
            verifier: random()?,
        })
    }
}

impl AuthorizationRequest<'_> {
    pub(crate) fn address(&self, secrets: &FlowSecrets) -> Url {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(secrets.verifier.expose()));
        let mut address = self.endpoint.clone();
        {
            let mut query = address.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", self.client)
                .append_pair("redirect_uri", self.redirect)
                .append_pair("state", secrets.state.expose())
                .append_pair("code_challenge", &challenge)
                .append_pair("code_challenge_method", "S256")
                .append_pair("resource", self.resource);
            if !self.scope.is_empty() {
                query.append_pair("scope", &self.scope.as_text());
            }
            if self.scope.contains("offline_access") {
                // OpenID gives a refresh token only after a person was asked.
                query.append_pair("prompt", "consent");
            }
        }
        address
    }
}

impl ExpectedAnswer<'_> {
    /// The code in an answer: the address that the browser was sent to, or the part behind its question
    /// mark.
    pub(crate) fn code(&self, answer: &str) -> Result<Secret, LoginError> {
        let fields = fields(answer);
        let field = |name: &str| {
            let found = fields.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        let state = field("state").unwrap_or_default();
        // First of all, and in constant time: without the state, whatever else stands there is not
        // an answer to this login.
        if !bool::from(state.as_bytes().ct_eq(self.state.expose().as_bytes())) {
            return Err(LoginError::OtherState);
        }
        match field("iss") {
            Some(issuer) if issuer != self.issuer => {
                return Err(LoginError::MixedUp {
                    said: legible(issuer),
                    expected: self.issuer.to_owned(),
                });
            }
            None if self.names_issuer => return Err(LoginError::NoIssuer(self.issuer.to_owned())),
            Some(_) | None => {}
        }
        if let Some(error) = field("error") {
            let words = after_colon(field("error_description").unwrap_or_default());
            return Err(LoginError::Denied(format!("{}{words}", legible(error))));
        }
        let code = field("code").filter(|code| !code.is_empty());
        code.map(Secret::new).ok_or(LoginError::NoCode)
    }
}

fn fields(answer: &str) -> Vec<(String, String)> {
    let answer = answer.trim();
    let answer = answer.get(..LONGEST_ANSWER).unwrap_or(answer);
    let query = answer.split_once('?').map_or(answer, |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    serde_urlencoded::from_str(query).unwrap_or_default()
}

fn random() -> Result<Secret, LoginError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(LoginError::Random)?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_belongs_to_its_attempt_and_to_its_issuer() {
        let state = Secret::new("s t&a");
        let mut expected = ExpectedAnswer {
            state: &state,
            issuer: "https://login.test",
            names_issuer: false,
        };
        let good = "http://127.0.0.1:1/callback?code=c%2F1&state=s+t%26a";
        assert_eq!(expected.code(good).expect("a code").expose(), "c/1");
        let named = "?code=c&state=s+t%26a&iss=https%3A%2F%2Flogin.test#x";
        assert!(expected.code(named).is_ok());
        let failed = |answer: &str, expected: &ExpectedAnswer<'_>| match expected.code(answer) {
            Err(error) => error,
            Ok(_) => unreachable!("{answer}"),
        };
        for foreign in [
            "",
            "code=c",
            "code=c&state=other",
            "code=c&state=",
            "%%%",
            "state",
        ] {
            assert!(
                matches!(failed(foreign, &expected), LoginError::OtherState),
                "{foreign}"
            );
        }
        let mixed = "code=c&state=s+t%26a&iss=https%3A%2F%2Fevil.test";
        assert!(matches!(
            failed(mixed, &expected),
            LoginError::MixedUp { .. }
        ));
        let denied = "error=access_denied&error_description=no%0Ano&state=s+t%26a";
        assert_eq!(
            failed(denied, &expected).to_string(),
            "the login was refused: access_denied: no no"
        );
        assert!(matches!(
            failed("state=s+t%26a", &expected),
            LoginError::NoCode
        ));
        expected.names_issuer = true;
        assert!(matches!(
            failed("code=c&state=s+t%26a", &expected),
            LoginError::NoIssuer(_)
        ));
    }

    #[test]
    fn every_attempt_has_secrets_of_its_own() {
        let (one, two) = (FlowSecrets::random(), FlowSecrets::random());
        let (one, two) = (one.expect("random"), two.expect("random"));
        assert_ne!(one.state, two.state);
        assert_ne!(one.verifier, two.verifier);
        assert_ne!(one.verifier, one.state);
        assert!(one.verifier.expose().len() >= 43);
    }
}
