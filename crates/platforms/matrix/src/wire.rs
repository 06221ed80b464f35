//! One request to the homeserver and its answer.

use std::time::Duration;

use futures::StreamExt;
use hermetic_chat::{Backoff, SendFailure};
use hermetic_types::Secret;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::sleep;
use tracing::debug;

use crate::{MatrixConfig, MatrixConfigError, MatrixTiming};

/// The first sync of an account in thousands of rooms is below this.
const ANSWER_BYTES: usize = 64 << 20;
/// How often a request is tried.
const ATTEMPTS: u32 = 5;
/// What a wait is worth where a 429 names none.
const SOME_WAIT: Duration = Duration::from_secs(1);
/// Nobody is waited for longer, whatever a homeserver says: it is asked again.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// A request, but for its body.
#[derive(Clone, Debug)]
pub(crate) struct MatrixRoute {
    pub(crate) method: Method,
    /// Below the homeserver's address; each step is escaped.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct MatrixApi {
    client: Client,
    base: Url,
    timing: MatrixTiming,
}

/// No variant shows an address or a token.
#[derive(Debug, Error)]
pub(crate) enum MatrixCallError {
    /// The request never left.
    #[error("the homeserver cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// It left, and nothing came in time.
    #[error("the homeserver fell silent")]
    Silent(#[source] reqwest::Error),
    /// It left; what became of it is unknown.
    #[error("the connection to the homeserver broke")]
    Broken(#[source] reqwest::Error),
    #[error("the homeserver answered {status} with something we cannot read")]
    Garbled { status: u16 },
    #[error("the homeserver wants us to wait {}s", retry_after.as_secs())]
    Throttled { retry_after: Duration },
    #[error("the homeserver refused with {status}: {description} ({code})")]
    Refused {
        status: u16,
        /// As in `M_FORBIDDEN`.
        code: String,
        description: String,
    },
}

#[derive(Deserialize)]
struct MatrixRefusal {
    #[serde(default)]
    errcode: String,
    #[serde(default)]
    error: String,
    retry_after_ms: Option<u64>,
}

impl MatrixRoute {
    /// Below the version of the API that everything of ours is in.
    pub(crate) fn new(method: Method, path: &[&str]) -> Self {
        let all = ["_matrix", "client", "v3"].iter().chain(path);
        Self {
            method,
            path: all.map(|step| (*step).to_owned()).collect(),
            query: Vec::new(),
            timeout: None,
        }
    }

    pub(crate) fn get(path: &[&str]) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: &[&str]) -> Self {
        Self::new(Method::POST, path)
    }

    pub(crate) fn put(path: &[&str]) -> Self {
        Self::new(Method::PUT, path)
    }

    /// Outside of that version.
    pub(crate) fn elsewhere(method: Method, path: &[&str]) -> Self {
        Self {
            path: path.iter().map(|step| (*step).to_owned()).collect(),
            ..Self::new(method, &[])
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(crate) fn within(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// What a log may say of it.
    fn name(&self) -> &str {
        self.path.get(3).map_or("versions", String::as_str)
    }
}

impl MatrixApi {
    pub(crate) fn new(config: &MatrixConfig) -> Result<Self, MatrixConfigError> {
        let base = Url::parse(config.homeserver.trim_end_matches('/'));
        let base = base.map_err(|_| MatrixConfigError::Homeserver)?;
        let is_http = matches!(base.scheme(), "http" | "https");
        if !is_http || base.query().is_some() || base.fragment().is_some() || !base.has_host() {
            return Err(MatrixConfigError::Homeserver);
        }
        let mut client = Client::builder()
            .connect_timeout(Duration::from_secs(10))
            // A redirect would carry the token elsewhere.
            .redirect(redirect::Policy::none());
        // The configuration has read the environment already.
        client = client.no_proxy();
        if let Some(proxy) = &config.proxy {
            client = client.proxy(proxy.for_client());
        }
        Ok(Self {
            client: client.build().map_err(|_| MatrixConfigError::Client)?,
            base,
            timing: config.timing.clone(),
        })
    }

    pub(crate) fn request(&self, route: &MatrixRoute, token: Option<&Secret>) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(&route.path);
        }
        if !route.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&route.query);
        }
        let mut request = self.client.request(route.method.clone(), url);
        if let Some(token) = token {
            request = request.bearer_auth(token.expose());
        }
        request
    }

    /// Asks once.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        route: &MatrixRoute,
        token: Option<&Secret>,
        fill: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<T, MatrixCallError> {
        let timeout = route.timeout.unwrap_or(self.timing.request);
        let request = self.request(route, token).timeout(timeout);
        let response = fill(request).send().await.map_err(MatrixCallError::of)?;
        read(response).await
    }

    /// Tries again what failed on the way, and waits where the homeserver asks for it. Only for what may
    /// be asked twice: a transaction's id makes one message of two requests.
    pub(crate) async fn patiently<T: DeserializeOwned>(
        &self,
        route: &MatrixRoute,
        token: Option<&Secret>,
        fill: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<T, MatrixCallError> {
        let mut backoff = Backoff::new(self.timing.retry.0, self.timing.retry.1);
        let mut attempt = 1;
        loop {
            let error = match self.call(route, token, &fill).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let wait = match &error {
                MatrixCallError::Throttled { retry_after }
                    if *retry_after <= self.timing.throttle =>
                {
                    *retry_after
                }
                MatrixCallError::Unreachable(_) | MatrixCallError::Broken(_) => backoff.next_wait(),
                error if error.is_a_failure_on_the_way() => backoff.next_wait(),
                _ => return Err(error),
            };
            if attempt == ATTEMPTS {
                return Err(error);
            }
            debug!(%error, request = route.name(), attempt, "trying again");
            attempt += 1;
            sleep(wait).await;
        }
    }
}

impl MatrixCallError {
    pub(crate) fn of(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if error.is_connect() || error.is_builder() {
            Self::Unreachable(error)
        } else if error.is_timeout() {
            Self::Silent(error)
        } else {
            Self::Broken(error)
        }
    }

    /// Whether the homeserver does not know our token any more.
    pub(crate) fn is_logged_out(&self) -> bool {
        self.code()
            .is_some_and(|code| matches!(code, "M_UNKNOWN_TOKEN" | "M_MISSING_TOKEN"))
    }

    /// Matrix' own word for a refusal.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Something between us and the homeserver, or inside of it, gave up.
    fn is_a_failure_on_the_way(&self) -> bool {
        matches!(
            self,
            Self::Garbled { status: 500.. } | Self::Refused { status: 500.., .. }
        )
    }
}

impl From<MatrixCallError> for SendFailure {
    fn from(error: MatrixCallError) -> Self {
        match error {
            MatrixCallError::Throttled { retry_after } => Self::Throttled { retry_after },
            MatrixCallError::Unreachable(_) => Self::NotSent(Box::new(error)),
            // It waits for a token that is good.
            MatrixCallError::Refused { .. } if error.is_logged_out() => {
                Self::NotSent(Box::new(error))
            }
            MatrixCallError::Silent(_)
            | MatrixCallError::Broken(_)
            | MatrixCallError::Refused { status: 500.., .. }
            | MatrixCallError::Garbled {
                status: 500.. | ..=399,
            } => Self::Uncertain(Box::new(error)),
            MatrixCallError::Refused { .. } | MatrixCallError::Garbled { .. } => Self::Refused {
                description: error.to_string(),
            },
        }
    }
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, MatrixCallError> {
    let (status, headers) = (response.status(), response.headers().clone());
    let code = status.as_u16();
    let body = body(response).await?;
    if status.is_success() {
        return serde_json::from_slice(&body)
            .map_err(|_| MatrixCallError::Garbled { status: code });
    }
    Err(refusal(status, &headers, &body))
}

/// What an answer that is no success says.
pub(crate) fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> MatrixCallError {
    let refusal = serde_json::from_slice::<MatrixRefusal>(body).ok();
    if status == StatusCode::TOO_MANY_REQUESTS {
        let asked = refusal.and_then(|refusal| refusal.retry_after_ms);
        let header = headers.get(RETRY_AFTER).and_then(|wait| wait.to_str().ok());
        let header = header.and_then(|wait| wait.parse().ok());
        let retry_after = asked
            .map(Duration::from_millis)
            .or(header.map(Duration::from_secs))
            .unwrap_or(SOME_WAIT)
            .min(LONGEST_WAIT);
        return MatrixCallError::Throttled { retry_after };
    }
    let status = status.as_u16();
    match refusal {
        Some(refusal) => MatrixCallError::Refused {
            status,
            code: refusal.errcode.chars().take(100).collect(),
            description: refusal.error.chars().take(500).collect(),
        },
        None => MatrixCallError::Garbled { status },
    }
}

async fn body(response: Response) -> Result<Vec<u8>, MatrixCallError> {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(MatrixCallError::of)?;
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(MatrixCallError::Garbled { status });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
