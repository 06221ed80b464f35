//! Tokens, and the one endpoint that gives them out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermetic_types::{Secret, Timestamp};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

use crate::failure::{LoginError, after_colon, legible};
use crate::scope::ScopeSet;
use crate::wire::{AuthorityRoute, WireAnswer, shown};

/// A shorter one could be guessed, and cannot be taken out of text without tearing it apart.
const LEAST_TOKEN: usize = 8;
const LONGEST_TOKEN: usize = 16 * 1024;
/// What is believed of how long a token holds.
const LONGEST_LIFE: u64 = 10 * 365 * 24 * 3600;

/// How a client shows at the token endpoint that it is the one it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClientAuth {
    #[serde(rename = "none")]
    Public,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

/// The client that tokens are given to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClientIdentity {
    pub(crate) id: String,
    #[serde(serialize_with = "expose", skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Secret>,
    pub(crate) auth: ClientAuth,
}

/// What came from the token endpoint.
#[derive(Debug)]
pub(crate) struct GivenTokens {
    pub(crate) access: Secret,
    pub(crate) refresh: Option<Secret>,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) scope: Option<ScopeSet>,
}

/// Where tokens are asked for, and as whom.
#[derive(Debug)]
pub(crate) struct TokenEndpoint<'a> {
    pub(crate) http: &'a AuthorityRoute,
    pub(crate) address: &'a Url,
    pub(crate) client: &'a ClientIdentity,
    pub(crate) resource: &'a str,
}

impl ClientAuth {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::Public),
            "client_secret_basic" => Some(Self::Basic),
            "client_secret_post" => Some(Self::Post),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Public => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    /// For a client with a secret, at an authority that takes these.
    pub(crate) fn with_secret(offered: Option<&[Self]>) -> Self {
        match offered {
            // What RFC 8414 says of those who say nothing.
            None => Self::Basic,
            Some(offered) if offered.contains(&Self::Basic) => Self::Basic,
            Some(offered) if offered.contains(&Self::Post) => Self::Post,
            Some(_) => Self::Public,
        }
    }
}

impl TokenEndpoint<'_> {
    /// `fields` besides those that every request has.
    pub(crate) async fn ask(
        &self,
        fields: &[(&str, &str)],
        now: Timestamp,
    ) -> Result<GivenTokens, LoginError> {
        let answer = self.post(self.address, fields).await?;
        if !answer.status.is_success() {
            return Err(self.refused(&answer));
        }
        GivenTokens::read(&answer.json, now)
    }

    /// The same at another endpoint of the authority, whose answer is read by whoever asks.
    pub(crate) async fn ask_at(
        &self,
        address: &Url,
        fields: &[(&str, &str)],
    ) -> Result<WireAnswer, LoginError> {
        let answer = self.post(address, fields).await?;
        match answer.status.is_success() {
            true => Ok(answer),
            false => Err(self.refused(&answer)),
        }
    }

    async fn post(&self, address: &Url, fields: &[(&str, &str)]) -> Result<WireAnswer, LoginError> {
        let client = self.client;
        let mut form = fields.to_vec();
        form.push(("resource", self.resource));
        let secret = client
            .secret
            .as_ref()
            .map(Secret::expose)
            .unwrap_or_default();
        let mut authorization = None;
        match client.auth {
            ClientAuth::Public => form.push(("client_id", &client.id)),
            ClientAuth::Post => {
                form.push(("client_id", &client.id));
                form.push(("client_secret", secret));
            }
            ClientAuth::Basic => authorization = Some(basic(&client.id, secret)),
        }
        let form = serde_urlencoded::to_string(&form);
        let form = form.map_err(|error| LoginError::Client(error.to_string()))?;
        let (form, authorization) = (Secret::new(form), authorization.as_ref());
        self.http.post_form(address, &form, authorization).await
    }

    fn refused(&self, answer: &WireAnswer) -> LoginError {
        let words = after_colon(answer.text("error_description").unwrap_or_default());
        match answer.text("error") {
            Some(code) => LoginError::TokenRefused {
                code: legible(code),
                words,
            },
            None => LoginError::Refused {
                address: shown(self.address),
                status: answer.status,
                words,
            },
        }
    }
}

impl GivenTokens {
    fn read(json: &Value, now: Timestamp) -> Result<Self, LoginError> {
        let kind = json.get("token_type").and_then(Value::as_str);
        if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
            return Err(LoginError::UnusableToken("it is no bearer token"));
        }
        let token = |name: &str| match json.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if is_token(text) => Ok(Some(Secret::new(text))),
            Some(_) => Err(LoginError::UnusableToken(
                "it is too short, too long, or no text for a header",
            )),
        };
        let seconds = match json.get("expires_in") {
            Some(Value::Number(number)) => number.as_u64(),
            // Some write the number as a text.
            Some(Value::String(text)) => text.parse().ok(),
            _ => None,
        };
        let life = |seconds: u64| now.plus(Duration::from_secs(seconds.min(LONGEST_LIFE)));
        let scope = json.get("scope").and_then(Value::as_str);
        Ok(Self {
            access: token("access_token")?.ok_or(LoginError::UnusableToken("there is none"))?,
            refresh: token("refresh_token")?,
            expires: seconds.map(life),
            scope: scope.map(ScopeSet::parse),
        })
    }
}

fn is_token(text: &str) -> bool {
    let is_visible = |byte: u8| (0x21..=0x7e).contains(&byte);
    (LEAST_TOKEN..=LONGEST_TOKEN).contains(&text.len()) && text.bytes().all(is_visible)
}

/// Name and secret are encoded before they are joined, as RFC 6749 has it.
fn basic(id: &str, secret: &str) -> Secret {
    let encoded = |text: &str| {
        // As the name of a field without a value, whose equals sign is cut off again.
        let field = serde_urlencoded::to_string([(text, "")]).unwrap_or_default();
        field.trim_end_matches('=').to_owned()
    };
    let pair = Secret::new(format!("{}:{}", encoded(id), encoded(secret)));
    Secret::new(format!("Basic {}", STANDARD.encode(pair.expose())))
}

pub(crate) fn expose<S: serde::Serializer>(
    secret: &Option<Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_are_taken_where_they_fit_into_a_header() {
        let now = Timestamp::from_seconds(1000);
        let good = json!({"access_token": "abc-0123", "token_type": "bearer", "expires_in": "60"});
        let given = GivenTokens::read(&good, now).expect("a token");
        assert_eq!(given.expires, Some(Timestamp::from_seconds(1060)));
        for bad in [
            json!({}),
            json!({"access_token": "abc-0123"}),
            json!({"access_token": "abc-0123", "token_type": "mac"}),
            json!({"access_token": "a\r\nx: y", "token_type": "Bearer"}),
            json!({"access_token": "the", "token_type": "Bearer"}),
            json!({"access_token": "", "token_type": "Bearer"}),
            json!({"access_token": "x".repeat(LONGEST_TOKEN + 1), "token_type": "Bearer"}),
            json!({"access_token": "abc-0123", "refresh_token": 7, "token_type": "Bearer"}),
        ] {
            assert!(GivenTokens::read(&bad, now).is_err(), "{bad}");
        }
        let endless =
            json!({"access_token": "abcdefgh", "token_type": "Bearer", "expires_in": u64::MAX});
        assert!(GivenTokens::read(&endless, now).is_ok());
    }

    #[test]
    fn a_secret_with_a_colon_stays_one() {
        let header = basic("a:b", "c d=");
        assert_eq!(
            header.expose(),
            format!("Basic {}", STANDARD.encode("a%3Ab:c+d%3D"))
        );
    }
}
