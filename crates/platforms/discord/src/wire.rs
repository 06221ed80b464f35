//! One request to the HTTP API and its answer.

use std::time::Duration;

use futures::StreamExt;
use hermetic_chat::{Backoff, SendFailure};
use hermetic_types::Secret;
use reqwest::header::{AUTHORIZATION, USER_AGENT};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::sleep;
use tracing::debug;

use crate::rate_limits::{RateLimits, TooMany};
use crate::route::ApiRoute;
use crate::{DiscordConfig, DiscordConfigError, DiscordTiming};

/// A hundred messages with all that hangs on them are below this.
const ANSWER_BYTES: usize = 16 << 20;
/// How often a request is tried whose end is certain.
const REQUEST_ATTEMPTS: u32 = 5;
/// What Discord wants to be told: who asks, and where they are found.
const AGENT: &str = concat!(
    "DiscordBot (https://github.com/hermetic-gateway/hermetic, ",
    env!("CARGO_PKG_VERSION"),
    ")"
);
/// What a wait is worth where a 429 names none.
const SOME_WAIT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct DiscordApi {
    client: Client,
    base: Url,
    authorization: Secret,
    limits: RateLimits,
    timing: DiscordTiming,
}

/// No variant shows an address: some hold the token of an interaction.
#[derive(Debug, Error)]
pub(crate) enum DiscordCallError {
    /// The request never left.
    #[error("discord cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// It left; what became of it is unknown.
    #[error("the connection to discord broke")]
    Broken(#[source] reqwest::Error),
    #[error("discord answered {status} with something we cannot read")]
    Garbled { status: u16 },
    #[error("discord wants us to wait {}s", retry_after.as_secs())]
    Throttled { retry_after: Duration },
    #[error("discord refused with {status}: {description} ({code})")]
    Refused {
        status: u16,
        /// Discord's own number for it, or 0.
        code: u32,
        description: String,
    },
}

#[derive(Deserialize)]
struct DiscordRefusal {
    #[serde(default)]
    message: String,
    #[serde(default)]
    code: u32,
    retry_after: Option<f64>,
    #[serde(default)]
    global: bool,
}

impl DiscordApi {
    pub(crate) fn new(config: &DiscordConfig) -> Result<Self, DiscordConfigError> {
        let token = config.token.expose();
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        if token.is_empty() || token.len() > 256 || !token.bytes().all(plain) {
            return Err(DiscordConfigError::Token);
        }
        let base = Url::parse(config.base_url.trim_end_matches('/'));
        let base = base.map_err(|_| DiscordConfigError::BaseUrl)?;
        if !matches!(base.scheme(), "http" | "https") || base.query().is_some() {
            return Err(DiscordConfigError::BaseUrl);
        }
        let mut client = Client::builder()
            // The gateway's websocket begins as a request of HTTP/1.1.
            .http1_only()
            .connect_timeout(Duration::from_secs(10))
            // A redirect would carry the token elsewhere.
            .redirect(redirect::Policy::none());
        // The configuration has read the environment already.
        client = client.no_proxy();
        if let Some(proxy) = &config.proxy {
            client = client.proxy(proxy.for_client());
        }
        Ok(Self {
            client: client.build().map_err(|_| DiscordConfigError::Client)?,
            base,
            authorization: Secret::new(format!("Bot {token}")),
            limits: RateLimits::default(),
            timing: config.timing.clone(),
        })
    }

    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// For addresses outside of the API: files and the gateway's socket. Without our token.
    pub(crate) fn get_elsewhere(&self, url: Url) -> RequestBuilder {
        self.client.get(url).header(USER_AGENT, AGENT)
    }

    /// Asks once and waits for no bucket.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        route: &ApiRoute,
        fill: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<T, DiscordCallError> {
        let throttled = |retry_after| DiscordCallError::Throttled { retry_after };
        self.limits.take(&route.key).map_err(throttled)?;
        let url = format!("{}{}", self.base.as_str().trim_end_matches('/'), route.path);
        let request = self
            .client
            .request(route.method.clone(), url)
            .header(USER_AGENT, AGENT)
            .header(AUTHORIZATION, self.authorization.expose())
            .timeout(self.timing.request);
        let response = fill(request).send().await.map_err(DiscordCallError::of)?;
        self.read(route, response).await
    }

    /// Tries again what certainly did not happen, and waits where Discord asks for it.
    pub(crate) async fn patiently<T: DeserializeOwned>(
        &self,
        route: &ApiRoute,
        fill: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<T, DiscordCallError> {
        let mut backoff = Backoff::new(self.timing.retry.0, self.timing.retry.1);
        let mut attempt = 1;
        loop {
            let error = match self.call(route, &fill).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let wait = match &error {
                DiscordCallError::Throttled { retry_after }
                    if *retry_after <= self.timing.throttle =>
                {
                    *retry_after
                }
                DiscordCallError::Unreachable(_) => backoff.next_wait(),
                _ => return Err(error),
            };
            if attempt == REQUEST_ATTEMPTS {
                return Err(error);
            }
            // Not its path, which may hold the token of an interaction.
            let request = route.key.template;
            debug!(%error, request, attempt, "trying again");
            attempt += 1;
            sleep(wait).await;
        }
    }

    async fn read<T: DeserializeOwned>(
        &self,
        route: &ApiRoute,
        response: Response,
    ) -> Result<T, DiscordCallError> {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = body(response).await;
        let refusal = match &body {
            Ok(body) => serde_json::from_slice::<DiscordRefusal>(body).ok(),
            Err(_) => None,
        };
        let too_many = (status == StatusCode::TOO_MANY_REQUESTS).then(|| TooMany {
            retry_after: refusal
                .as_ref()
                .and_then(|refusal| Duration::try_from_secs_f64(refusal.retry_after?).ok())
                .unwrap_or(SOME_WAIT),
            global: headers.contains_key("x-ratelimit-global")
                || refusal.as_ref().is_some_and(|refusal| refusal.global),
        });
        self.limits.note(&route.key, status, &headers, too_many);
        let code = status.as_u16();
        match (too_many, refusal) {
            (Some(TooMany { retry_after, .. }), _) => {
                Err(DiscordCallError::Throttled { retry_after })
            }
            (None, _) if status.is_success() => {
                let body = body?;
                // Some answers have no body, and nothing is read of them.
                let text = if body.is_empty() { b"null" } else { &body[..] };
                serde_json::from_slice(text).map_err(|_| DiscordCallError::Garbled { status: code })
            }
            (None, Some(refusal)) => Err(DiscordCallError::Refused {
                status: code,
                code: refusal.code,
                description: refusal.message.chars().take(500).collect(),
            }),
            (None, None) => {
                body?;
                Err(DiscordCallError::Garbled { status: code })
            }
        }
    }
}

impl DiscordCallError {
    pub(crate) fn of(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if error.is_connect() || error.is_builder() {
            Self::Unreachable(error)
        } else {
            Self::Broken(error)
        }
    }

    /// Discord's own number for a refusal.
    pub(crate) fn code(&self) -> Option<u32> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether what was asked about is not there, or not for us.
    pub(crate) fn is_out_of_reach(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if matches!(status, 403 | 404))
    }
}

impl From<DiscordCallError> for SendFailure {
    fn from(error: DiscordCallError) -> Self {
        match error {
            DiscordCallError::Throttled { retry_after } => Self::Throttled { retry_after },
            // Something on the way gave up; the message may be through.
            DiscordCallError::Refused { status: 500.., .. }
            | DiscordCallError::Garbled {
                status: 500.. | ..=399,
            }
            | DiscordCallError::Broken(_) => Self::Uncertain(Box::new(error)),
            DiscordCallError::Refused { .. } | DiscordCallError::Garbled { .. } => Self::Refused {
                description: error.to_string(),
            },
            DiscordCallError::Unreachable(_) => Self::NotSent(Box::new(error)),
        }
    }
}

async fn body(response: Response) -> Result<Vec<u8>, DiscordCallError> {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| DiscordCallError::Broken(error.without_url()))?;
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(DiscordCallError::Garbled { status });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
