//! One request to the Web API and its answer.

use std::net::IpAddr;
use std::time::Duration;

use futures::StreamExt;
use hermetic_chat::SendFailure;
use hermetic_types::Secret;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::config::{SlackConfig, SlackConfigError};

/// A page of a history is far below this.
const ANSWER_BYTES: usize = 16 << 20;
/// Nobody waits longer because a stand-in of Slack says so.
const LONGEST_SLACK_RETRY: Duration = Duration::from_secs(3600);
/// What is waited where Slack says that it was too much, and not for how long.
const USUAL_RETRY: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct SlackApi {
    client: Client,
    base: Url,
    bot_token: Secret,
    request: Duration,
}

#[derive(Debug, Error)]
pub(crate) enum SlackCallError {
    /// The request never left.
    #[error("slack cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// It left; what became of it is unknown.
    #[error("the connection to slack broke")]
    Broken(#[source] reqwest::Error),
    #[error("slack answered {status} with something we cannot read")]
    Garbled { status: u16 },
    #[error("slack wants us to wait {}s", retry_after.as_secs())]
    Throttled { retry_after: Duration },
    #[error("slack refused: {error}")]
    Refused { error: String },
}

/// What Slack said, and which scopes it says that the token has.
#[derive(Debug)]
pub(crate) struct SlackAnswer {
    pub(crate) value: Value,
    pub(crate) scopes: Option<String>,
}

impl SlackApi {
    pub(crate) fn new(config: &SlackConfig) -> Result<Self, SlackConfigError> {
        let mut base = Url::parse(config.api_base.trim_end_matches('/'))
            .map_err(|_| SlackConfigError::ApiBase)?;
        if !matches!(base.scheme(), "http" | "https") || base.query().is_some() {
            return Err(SlackConfigError::ApiBase);
        }
        base.set_path(&format!("{}/", base.path().trim_end_matches('/')));
        let mut client = Client::builder()
            .connect_timeout(Duration::from_secs(10))
            // A redirect would carry the token elsewhere.
            .redirect(redirect::Policy::none())
            // A websocket begins as a request of HTTP/1.1.
            .http1_only();
        // The configuration has read the environment already.
        client = client.no_proxy();
        if let Some(proxy) = &config.proxy {
            client = client.proxy(proxy.for_client());
        }
        Ok(Self {
            client: client.build().map_err(|_| SlackConfigError::Client)?,
            base,
            bot_token: config.bot_token.clone(),
            request: config.timing.request,
        })
    }

    /// A method that takes JSON: those that write.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, SlackCallError> {
        let request = self.method(method, &self.bot_token)?.json(params);
        read_as(answer(request).await?)
    }

    /// A method that takes a form: those that read do not all know JSON.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: &[(&str, &str)],
    ) -> Result<SlackAnswer, SlackCallError> {
        self.ask_as(method, params, &self.bot_token).await
    }

    /// The same with another token than the bot's.
    pub(crate) async fn ask_as(
        &self,
        method: &str,
        params: &[(&str, &str)],
        token: &Secret,
    ) -> Result<SlackAnswer, SlackCallError> {
        let mut form = self.base.clone();
        form.query_pairs_mut().clear().extend_pairs(params);
        let body = form.query().unwrap_or_default().to_owned();
        let request = self
            .method(method, token)?
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        answer(request).await
    }

    /// A request to an address that Slack named, without a token; `None` where it leads elsewhere.
    pub(crate) fn post_to(&self, url: &str) -> Option<RequestBuilder> {
        self.own_address(url).map(|url| self.client.post(url))
    }

    /// The file at an address that Slack named; `None` where it leads elsewhere, and the token with it.
    pub(crate) fn fetch(&self, url: &str) -> Option<RequestBuilder> {
        let url = self.own_address(url)?;
        Some(self.client.get(url).bearer_auth(self.bot_token.expose()))
    }

    /// The request that opens a websocket at an address that Slack named.
    pub(crate) fn open_socket(&self, url: &str) -> Option<RequestBuilder> {
        let rest = url.strip_prefix("ws")?;
        let url = self.own_address(&format!("http{rest}"))?;
        Some(self.client.get(url))
    }

    /// An address at our own Slack: its host or one below it.
    fn own_address(&self, url: &str) -> Option<Url> {
        let url = Url::parse(url).ok()?;
        let (own, theirs) = (self.base.host_str()?, url.host_str()?);
        let below = theirs
            .strip_suffix(own)
            .is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'));
        let near = is_loopback(&self.base) && is_loopback(&url);
        (url.scheme() == self.base.scheme() && (below || near)).then_some(url)
    }

    fn method(&self, method: &str, token: &Secret) -> Result<RequestBuilder, SlackCallError> {
        let url = self.base.join(method);
        let url = url.map_err(|_| SlackCallError::Garbled { status: 0 })?;
        let request = self.client.post(url).timeout(self.request);
        Ok(request.bearer_auth(token.expose()))
    }
}

impl SlackCallError {
    pub(crate) fn of(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if error.is_connect() || error.is_builder() {
            Self::Unreachable(error)
        } else {
            Self::Broken(error)
        }
    }

    pub(crate) fn is_refusal_with(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { error } if error.split(' ').next() == Some(wanted))
    }

    /// Slack does not know our token, or not for this.
    pub(crate) fn is_final(&self) -> bool {
        const FINAL: [&str; 8] = [
            "invalid_auth",
            "not_authed",
            "account_inactive",
            "token_revoked",
            "token_expired",
            "not_allowed_token_type",
            "missing_scope",
            "no_permission",
        ];
        FINAL.iter().any(|error| self.is_refusal_with(error))
    }

    /// What Slack answers when something broke within, maybe after the deed was done.
    fn leaves_doubt(&self) -> bool {
        [
            "internal_error",
            "fatal_error",
            "service_unavailable",
            "request_timeout",
        ]
        .iter()
        .any(|error| self.is_refusal_with(error))
    }
}

impl From<SlackCallError> for SendFailure {
    fn from(error: SlackCallError) -> Self {
        match error {
            SlackCallError::Throttled { retry_after } => Self::Throttled { retry_after },
            SlackCallError::Unreachable(_) => Self::NotSent(Box::new(error)),
            SlackCallError::Garbled { .. } | SlackCallError::Broken(_) => {
                Self::Uncertain(Box::new(error))
            }
            error if error.leaves_doubt() => Self::Uncertain(Box::new(error)),
            SlackCallError::Refused { error } => Self::Refused { description: error },
        }
    }
}

/// The answer's fields, as far as they are wanted.
pub(crate) fn read_as<T: DeserializeOwned>(answer: SlackAnswer) -> Result<T, SlackCallError> {
    serde_json::from_value(answer.value).map_err(|_| SlackCallError::Garbled { status: 200 })
}

async fn answer(request: RequestBuilder) -> Result<SlackAnswer, SlackCallError> {
    let response = request.send().await.map_err(SlackCallError::of)?;
    let status = response.status();
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let scopes = header("x-oauth-scopes");
    let wait = header(RETRY_AFTER.as_str()).and_then(|seconds| seconds.trim().parse().ok());
    let retry_after = wait
        .map_or(USUAL_RETRY, Duration::from_secs)
        .min(LONGEST_SLACK_RETRY);
    if status == StatusCode::TOO_MANY_REQUESTS {
        return Err(SlackCallError::Throttled { retry_after });
    }
    let status = status.as_u16();
    let body = bounded_body(response, status).await?;
    let value: Value =
        serde_json::from_slice(&body).map_err(|_| SlackCallError::Garbled { status })?;
    match value.get("ok").and_then(Value::as_bool) {
        Some(true) => Ok(SlackAnswer { value, scopes }),
        Some(false) => Err(refusal(&value, retry_after)),
        None => Err(SlackCallError::Garbled { status }),
    }
}

fn refusal(value: &Value, retry_after: Duration) -> SlackCallError {
    let error = value["error"].as_str().unwrap_or("no reason given");
    if matches!(error, "ratelimited" | "rate_limited") {
        return SlackCallError::Throttled { retry_after };
    }
    let error = match value["needed"].as_str() {
        Some(scopes) => format!("{error} (needed: {scopes})"),
        None => error.to_owned(),
    };
    SlackCallError::Refused { error }
}

async fn bounded_body(response: Response, status: u16) -> Result<Vec<u8>, SlackCallError> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| SlackCallError::Broken(error.without_url()))?;
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(SlackCallError::Garbled { status });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SlackEventIntake;

    fn wire(base: &str) -> SlackApi {
        let intake = SlackEventIntake::SocketMode {
            app_token: Secret::new("xapp-1"),
        };
        let mut config = SlackConfig::new(
            Secret::new("xoxb-1"),
            intake,
            hermetic_types::SystemClock::shared(),
        );
        config.api_base = base.to_owned();
        SlackApi::new(&config).unwrap()
    }

    #[test]
    fn a_token_goes_to_slack_and_nowhere_else() {
        let wire = wire("https://slack.com/api");
        assert!(
            wire.fetch("https://files.slack.com/files-pri/T1-F1/a.txt")
                .is_some()
        );
        assert!(
            wire.open_socket("wss://wss-primary.slack.com/link/?ticket=1")
                .is_some()
        );
        for elsewhere in [
            "http://files.slack.com/a",
            "https://slack.com.evil.example/a",
            "https://notslack.com/a",
            "https://drive.example/a",
            "file:///etc/passwd",
            "",
        ] {
            assert!(wire.fetch(elsewhere).is_none(), "{elsewhere}");
        }
        assert!(wire.open_socket("https://wss-primary.slack.com/").is_none());
    }
}
