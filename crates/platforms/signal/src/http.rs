//! The daemon over HTTP: calls by POST, events as Server-Sent Events.

use std::time::Duration;

use futures::StreamExt;
use reqwest::{Client, Response, Url, redirect};
use serde_json::Value;
use tokio::time::timeout;

use crate::SignalConfigError;
use crate::rpc::{self, SignalCallError};
use crate::sse::SseEvents;

/// Until the stream of events begins. Daemons before 0.14 say so with the first sign of life only, which
/// comes after fifteen seconds.
const OPENING: Duration = Duration::from_secs(40);
/// For asking whether it is the wrapper that listens.
const LOOKING: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct HttpDaemon {
    client: Client,
    base: Url,
}

impl HttpDaemon {
    pub(crate) fn new(base: Url, is_loopback: bool) -> Result<Self, SignalConfigError> {
        let mut client = Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .redirect(redirect::Policy::none());
        // A proxy out of the environment would look for the daemon on its own machine.
        if is_loopback {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|_| SignalConfigError::Client)?;
        Ok(Self { client, base })
    }

    pub(crate) async fn call(
        &self,
        id: u64,
        method: &str,
        params: &Value,
        limit: Duration,
        longest: usize,
    ) -> Result<Value, SignalCallError> {
        let request = self.client.post(self.path("api/v1/rpc"));
        let request = request
            .timeout(limit)
            .json(&rpc::request(id, method, params));
        let response = request.send().await.map_err(of_request)?;
        self.see_status(&response).await?;
        let body = read(response, longest).await?;
        let answer = serde_json::from_slice(&body).map_err(|_| SignalCallError::Garbled)?;
        rpc::answer(answer).1
    }

    pub(crate) async fn events(&self, account: &str) -> Result<SseEvents, SignalCallError> {
        let mut url = self.path("api/v1/events");
        url.query_pairs_mut().append_pair("account", account);
        let opened = timeout(OPENING, self.client.get(url).send()).await;
        let response = opened
            .map_err(|_| SignalCallError::Silent)?
            .map_err(of_request)?;
        self.see_status(&response).await?;
        Ok(SseEvents::new(response.bytes_stream().boxed()))
    }

    /// What a status other than success means.
    async fn see_status(&self, response: &Response) -> Result<(), SignalCallError> {
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        if status.as_u16() == 404 && self.is_wrapper().await {
            return Err(SignalCallError::Wrapper);
        }
        Err(SignalCallError::Status {
            status: status.as_u16(),
        })
    }

    /// Whether it is bbernhard's signal-cli-rest-api that listens there.
    async fn is_wrapper(&self) -> bool {
        let about = self.client.get(self.path("v1/about")).timeout(LOOKING);
        let Ok(response) = about.send().await else {
            return false;
        };
        response.status().is_success()
            && read(response, 64 << 10).await.is_ok_and(|body| {
                let about: Value = serde_json::from_slice(&body).unwrap_or_default();
                about["versions"].is_array()
            })
    }

    fn path(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let before = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{before}/{path}"));
        url
    }
}

fn of_request(error: reqwest::Error) -> SignalCallError {
    let error = error.without_url();
    // Only a call that certainly never began is tried again: of one that broke off, nobody knows
    // whether the daemon carried it out.
    if error.is_connect() || error.is_builder() {
        SignalCallError::unreachable(error)
    } else {
        SignalCallError::broken(error)
    }
}

async fn read(response: Response, longest: usize) -> Result<Vec<u8>, SignalCallError> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| SignalCallError::broken(error.without_url()))?;
        if body.len() + chunk.len() > longest {
            return Err(SignalCallError::Garbled);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
