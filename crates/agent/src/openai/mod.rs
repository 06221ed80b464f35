//! Any endpoint that speaks OpenAI's chat completions.
//!
//! A thin client of our own: the dialects of compatible servers differ exactly where a library would
//! be strict, and the parsers here meet whatever an endpoint sends.

mod chunk;
mod failure;
mod request;
mod sse;

use std::fmt;
use std::time::Duration;

use async_stream::try_stream;
use bytes::{Bytes, BytesMut};
use futures::stream::StreamExt;
use hermetic_types::Secret;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Proxy, Response, Url, redirect};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use self::chunk::Chunks;
use self::sse::{EventTooLarge, Events};
use crate::{Ask, Delta, Deltas, Model, ModelError};

/// One model at one endpoint.
pub struct OpenAi {
    client: Client,
    url: Url,
    settings: Settings,
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// Up to and including `/v1`.
    pub base_url: String,
    /// Absent for a server that asks for none.
    pub key: Option<Secret>,
    pub model: String,
    pub headers: Vec<(String, Secret)>,
    /// A proxy for our own requests, as a URL.
    pub proxy: Option<Secret>,
    pub connect_timeout: Duration,
    /// How long the endpoint may be silent, before the answer and within it.
    pub silence: Duration,
    pub max_output_tokens: Option<u32>,
    pub temperature: Option<f32>,
    pub max_request_bytes: usize,
    pub max_response_bytes: usize,
}

impl Settings {
    pub fn new(base_url: impl Into<String>, key: Option<Secret>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key,
            model: model.into(),
            headers: Vec::new(),
            proxy: None,
            connect_timeout: Duration::from_secs(20),
            silence: Duration::from_secs(300),
            max_output_tokens: None,
            temperature: None,
            max_request_bytes: 32 << 20,
            max_response_bytes: 16 << 20,
        }
    }
}

#[derive(Debug, Error)]
pub enum EndpointError {
    #[error(
        "the base_url with host {host:?} is not the address of an endpoint: expected something like https://host/v1, without name and password"
    )]
    Url { host: String },
    #[error("the header {name:?} cannot be sent")]
    Header { name: String },
    #[error("the key of model {model} holds characters that no header can carry")]
    Key { model: String },
    #[error("the proxy's address cannot be read")]
    Proxy,
    #[error("cannot set up an HTTP client")]
    Client(#[source] reqwest::Error),
}

impl OpenAi {
    pub fn new(settings: Settings) -> Result<Self, EndpointError> {
        let url = endpoint(&settings.base_url)?;
        let mut builder = Client::builder()
            .default_headers(headers(&settings)?)
            .connect_timeout(settings.connect_timeout)
            // A redirect would carry the conversation to a host that nobody configured.
            .redirect(redirect::Policy::none())
            .no_proxy();
        if let Some(proxy) = &settings.proxy {
            builder = builder.proxy(Proxy::all(proxy.expose()).map_err(|_| EndpointError::Proxy)?);
        }
        let client = builder.build().map_err(EndpointError::Client)?;
        Ok(Self {
            client,
            url,
            settings,
        })
    }

    fn answer<'a>(&'a self, ask: Ask<'a>) -> Deltas<'a> {
        try_stream! {
            let mut response = self.send(ask).await?;
            let mut body = Body::new(&mut response, self);
            let mut chunks = Chunks::new(&self.settings);
            let mut start = body.start().await?;
            // Servers that ignore `stream` answer with one object, whatever type they call it.
            if start.trim_ascii_start().starts_with(b"{") {
                start.extend_from_slice(&body.rest().await?);
                for delta in chunks.whole(&start)? {
                    yield delta;
                }
                return;
            }
            let mut first = Some(start.freeze());
            let mut events = Events::new(self.settings.max_response_bytes);
            let mut over = false;
            while !over {
                let piece = match first.take() {
                    Some(piece) => Some(piece),
                    None => body.next().await?,
                };
                let ready = match piece {
                    Some(piece) => events.push(&piece).map_err(|EventTooLarge| self.too_large())?,
                    None => {
                        over = true;
                        events.finish().into_iter().collect()
                    }
                };
                for event in ready {
                    for delta in chunks.event(&event)? {
                        let last = matches!(delta, Delta::Finish(_));
                        yield delta;
                        if last {
                            return;
                        }
                    }
                }
            }
            for delta in chunks.end()? {
                yield delta;
            }
        }
        .boxed()
    }

    async fn send(&self, ask: Ask<'_>) -> Result<Response, ModelError> {
        let body = request::body(&self.settings, ask);
        if body.len() > self.settings.max_request_bytes {
            return Err(ModelError::AskTooLarge {
                model: self.settings.model.clone(),
                size: body.len(),
                limit: self.settings.max_request_bytes,
            });
        }
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(body);
        let mut response = self
            .in_time(request.send())
            .await?
            .map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, asked) = (
            response.status().as_u16(),
            failure::retry_after(response.headers()),
        );
        // A long error page is as good as its beginning.
        let text = Body::new(&mut response, self).page(64 << 10).await;
        Err(failure::of_status(&self.settings, status, &text, asked))
    }

    async fn in_time<T>(&self, future: impl Future<Output = T>) -> Result<T, ModelError> {
        tokio::time::timeout(self.settings.silence, future)
            .await
            .map_err(|_| ModelError::Silent {
                model: self.settings.model.clone(),
                waited: self.settings.silence,
            })
    }

    fn unreachable(&self, error: &reqwest::Error) -> ModelError {
        ModelError::Unreachable {
            model: self.settings.model.clone(),
            what: failure::plainly(error),
        }
    }

    fn too_large(&self) -> ModelError {
        ModelError::TooLarge {
            model: self.settings.model.clone(),
            limit: self.settings.max_response_bytes,
        }
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.settings.model
    }

    fn complete<'a>(&'a self, ask: Ask<'a>, stop: CancellationToken) -> Deltas<'a> {
        let mut answer = self.answer(ask);
        async_stream::stream! {
            loop {
                let next = tokio::select! {
                    biased;
                    () = stop.cancelled() => Some(Err(ModelError::Stopped)),
                    next = answer.next() => next,
                };
                let Some(next) = next else { return };
                let last = next.is_err();
                yield next;
                if last {
                    return;
                }
            }
        }
        .boxed()
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi")
            .field("url", &self.url.as_str())
            .field("model", &self.settings.model)
            .finish_non_exhaustive()
    }
}

/// A response's bytes, counted.
struct Body<'a> {
    response: &'a mut Response,
    model: &'a OpenAi,
    read: usize,
}

impl<'a> Body<'a> {
    fn new(response: &'a mut Response, model: &'a OpenAi) -> Self {
        Self {
            response,
            model,
            read: 0,
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let piece = self.model.in_time(self.response.chunk()).await?;
        // A connection that breaks within an answer cuts it.
        let piece = piece.map_err(|_| ModelError::Cut {
            model: self.model.settings.model.clone(),
        })?;
        self.read += piece.as_ref().map_or(0, Bytes::len);
        if self.read > self.model.settings.max_response_bytes {
            return Err(self.model.too_large());
        }
        Ok(piece)
    }

    /// Up to the first byte that means something.
    async fn start(&mut self) -> Result<BytesMut, ModelError> {
        let mut start = BytesMut::new();
        while start.trim_ascii_start().is_empty()
            && let Some(piece) = self.next().await?
        {
            start.extend_from_slice(&piece);
        }
        Ok(start)
    }

    async fn rest(&mut self) -> Result<BytesMut, ModelError> {
        let mut whole = BytesMut::new();
        while let Some(piece) = self.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// What can be had of the first `most` bytes.
    async fn page(&mut self, most: usize) -> String {
        let mut start = BytesMut::new();
        while start.len() < most
            && let Ok(Some(piece)) = self.next().await
        {
            start.extend_from_slice(&piece);
        }
        start.truncate(most);
        String::from_utf8_lossy(&start).into_owned()
    }
}

fn endpoint(base_url: &str) -> Result<Url, EndpointError> {
    let parsed = Url::parse(base_url).ok();
    let fits = |url: &Url| {
        let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && plain
    };
    let wrong = EndpointError::Url {
        // An address may hold a password; the host is enough to recognise it.
        host: parsed
            .as_ref()
            .and_then(Url::host_str)
            .unwrap_or_default()
            .to_owned(),
    };
    let mut url = parsed.filter(fits).ok_or(wrong)?;
    let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn headers(settings: &Settings) -> Result<HeaderMap, EndpointError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &settings.key {
        let mut value =
            HeaderValue::from_str(&format!("Bearer {}", key.expose())).map_err(|_| {
                EndpointError::Key {
                    model: settings.model.clone(),
                }
            })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in &settings.headers {
        let wrong = || EndpointError::Header { name: name.clone() };
        let header = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}
