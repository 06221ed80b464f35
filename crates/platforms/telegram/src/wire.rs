//! One request to the Bot API and its answer.

use std::time::Duration;

use futures::StreamExt;
use hermetic_chat::SendFailure;
use hermetic_types::Secret;
use reqwest::{Client, Response, Url, redirect};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{TelegramConfig, TelegramConfigError};

/// A hundred updates are far below this.
const ANSWER_BYTES: usize = 16 << 20;
/// Nobody waits longer because a stand-in of Telegram says so.
const LONGEST_TELEGRAM_RETRY: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(crate) struct TelegramApi {
    client: Client,
    /// Both addresses hold the token.
    methods: Secret,
    files: Secret,
    request: Duration,
}

/// No variant shows the address, which holds the token.
#[derive(Debug, Error)]
pub(crate) enum TelegramCallError {
    /// The request never left.
    #[error("telegram cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// It left; what became of it is unknown.
    #[error("the connection to telegram broke")]
    Broken(#[source] reqwest::Error),
    #[error("telegram answered {status} with something we cannot read")]
    Garbled { status: u16 },
    #[error("telegram refused with {code}: {description}")]
    Refused {
        code: u16,
        description: String,
        retry_after: Option<Duration>,
    },
}

#[derive(Deserialize)]
struct BotApiAnswer<T> {
    ok: bool,
    result: Option<T>,
    error_code: Option<u16>,
    description: Option<String>,
    parameters: Option<AnswerParameters>,
}

#[derive(Deserialize)]
struct AnswerParameters {
    retry_after: Option<u64>,
}

impl TelegramApi {
    pub(crate) fn new(config: &TelegramConfig) -> Result<Self, TelegramConfigError> {
        let token = config.token.expose();
        let plain = |b: u8| b.is_ascii_alphanumeric() || b":_-".contains(&b);
        if token.is_empty() || token.len() > 256 || !token.bytes().all(plain) {
            return Err(TelegramConfigError::Token);
        }
        let base = config.api_base.trim_end_matches('/');
        let url = Url::parse(base).map_err(|_| TelegramConfigError::ApiBase)?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() {
            return Err(TelegramConfigError::ApiBase);
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
            client: client.build().map_err(|_| TelegramConfigError::Client)?,
            methods: Secret::new(format!("{base}/bot{token}")),
            files: Secret::new(format!("{base}/file/bot{token}")),
            request: config.timing.request,
        })
    }

    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, TelegramCallError> {
        self.call_within(method, params, self.request).await
    }

    pub(crate) async fn call_within<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
    ) -> Result<T, TelegramCallError> {
        let request = self
            .client
            .post(self.method(method))
            .timeout(limit)
            .json(params);
        read(request.send().await.map_err(TelegramCallError::of)?).await
    }

    pub(crate) async fn upload<T: DeserializeOwned>(
        &self,
        method: &str,
        form: reqwest::multipart::Form,
        limit: Duration,
    ) -> Result<T, TelegramCallError> {
        let request = self
            .client
            .post(self.method(method))
            .timeout(limit)
            .multipart(form);
        read(request.send().await.map_err(TelegramCallError::of)?).await
    }

    /// The file at a path that `getFile` named.
    pub(crate) async fn file(&self, path: &str) -> Result<Response, TelegramCallError> {
        let url = format!("{}/{path}", self.files.expose());
        self.client
            .get(url)
            .send()
            .await
            .map_err(TelegramCallError::of)
    }

    fn method(&self, method: &str) -> String {
        format!("{}/{method}", self.methods.expose())
    }
}

impl TelegramCallError {
    fn of(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if error.is_connect() || error.is_builder() {
            Self::Unreachable(error)
        } else {
            Self::Broken(error)
        }
    }

    pub(crate) fn is_refusal_with(&self, text: &str) -> bool {
        matches!(self, Self::Refused { description, .. } if description.contains(text))
    }
}

impl From<TelegramCallError> for SendFailure {
    fn from(error: TelegramCallError) -> Self {
        match error {
            TelegramCallError::Refused {
                retry_after: Some(retry_after),
                ..
            } => Self::Throttled { retry_after },
            // A gateway on the way gave up; the message may be through.
            TelegramCallError::Refused { code: 500.., .. }
            | TelegramCallError::Garbled { .. }
            | TelegramCallError::Broken(_) => Self::Uncertain(Box::new(error)),
            TelegramCallError::Refused { description, .. } => Self::Refused { description },
            TelegramCallError::Unreachable(_) => Self::NotSent(Box::new(error)),
        }
    }
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, TelegramCallError> {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| TelegramCallError::Broken(error.without_url()))?;
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(TelegramCallError::Garbled { status });
        }
        body.extend_from_slice(&chunk);
    }
    let answer: BotApiAnswer<T> =
        serde_json::from_slice(&body).map_err(|_| TelegramCallError::Garbled { status })?;
    match answer.result {
        Some(result) if answer.ok => Ok(result),
        // Enough where nothing is read of it; there are servers that say no more.
        _ if answer.ok => {
            T::deserialize(Value::Null).map_err(|_| TelegramCallError::Garbled { status })
        }
        _ => Err(TelegramCallError::Refused {
            code: answer.error_code.unwrap_or(status),
            description: answer.description.unwrap_or_default(),
            retry_after: answer
                .parameters
                .and_then(|parameters| parameters.retry_after)
                .map(|seconds| Duration::from_secs(seconds).min(LONGEST_TELEGRAM_RETRY)),
        }),
    }
}
