//! One request to the bridge and its answer.

use std::time::Duration;

use futures::StreamExt;
use hermetic_chat::SendFailure;
use reqwest::{Client, RequestBuilder, Url, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use super::{BridgeConfig, BridgeConfigError};

/// A hundred messages, which is what the bridge keeps, are far below this.
const ANSWER_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct BridgeApi {
    client: Client,
    base: String,
    request: Duration,
}

#[derive(Debug, Error)]
pub(super) enum BridgeCallError {
    /// The request never left.
    #[error("the bridge cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// It left; what became of it is unknown.
    #[error("the connection to the bridge broke")]
    Broken(#[source] reqwest::Error),
    #[error("the bridge answered {status} with something we cannot read")]
    Garbled { status: u16 },
    #[error("the bridge refused with {status}: {error}")]
    Refused { status: u16, error: String },
}

#[derive(Deserialize)]
struct BridgeFailure {
    error: String,
}

impl BridgeApi {
    pub(super) fn new(config: &BridgeConfig) -> Result<Self, BridgeConfigError> {
        let base = config.url.trim_end_matches('/');
        let url = Url::parse(base).map_err(|_| BridgeConfigError::Url)?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() {
            return Err(BridgeConfigError::Url);
        }
        let client = Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .redirect(redirect::Policy::none())
            // The bridge stands beside us.
            .no_proxy()
            .build()
            .map_err(|_| BridgeConfigError::Client)?;
        Ok(Self {
            client,
            base: base.to_owned(),
            request: config.timing.request,
        })
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, BridgeCallError> {
        self.call(self.client.get(format!("{}{path}", self.base)))
            .await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, BridgeCallError> {
        let request = self.client.post(format!("{}{path}", self.base));
        self.call(request.json(body)).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, BridgeCallError> {
        let sent = request.timeout(self.request).send().await;
        let response = sent.map_err(BridgeCallError::of)?;
        let status = response.status();
        let garbled = || BridgeCallError::Garbled {
            status: status.as_u16(),
        };
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| BridgeCallError::Broken(error.without_url()))?;
            if body.len() + chunk.len() > ANSWER_BYTES {
                return Err(garbled());
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|_| garbled());
        }
        match serde_json::from_slice::<BridgeFailure>(&body) {
            Ok(failed) => Err(BridgeCallError::Refused {
                status: status.as_u16(),
                error: failed.error.chars().take(300).collect(),
            }),
            Err(_) => Err(garbled()),
        }
    }
}

impl BridgeCallError {
    fn of(error: reqwest::Error) -> Self {
        let error = error.without_url();
        match error.is_connect() || error.is_builder() {
            true => Self::Unreachable(error),
            false => Self::Broken(error),
        }
    }
}

impl From<BridgeCallError> for SendFailure {
    fn from(error: BridgeCallError) -> Self {
        match error {
            // It says so before it tries.
            BridgeCallError::Refused { status: 503, .. } | BridgeCallError::Unreachable(_) => {
                Self::NotSent(Box::new(error))
            }
            // WhatsApp did not answer it in time, for example.
            BridgeCallError::Refused { status: 500.., .. }
            | BridgeCallError::Garbled { .. }
            | BridgeCallError::Broken(_) => Self::Uncertain(Box::new(error)),
            BridgeCallError::Refused { error, .. } => Self::Refused { description: error },
        }
    }
}
