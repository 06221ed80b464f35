//! Any endpoint that speaks OpenAI's chat completions.
//!
//! A thin client of our own: the dialects of compatible servers differ exactly where a library would
//! be strict, and the parsers here meet whatever an endpoint sends.

mod body;
mod chunk;
mod content;
mod failure;
mod request;
mod settings;
mod sse;

use std::fmt;

use async_stream::try_stream;
use futures::stream::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Proxy, Response, Url, redirect};
use tokio_util::sync::CancellationToken;

use self::body::Body;
use self::chunk::Chunks;
pub use self::settings::{EndpointError, Settings};
use self::settings::{endpoint, headers};
use self::sse::{EventTooLarge, Events};
use crate::{Ask, Delta, Deltas, Model, ModelError};

/// What a stream of events says that came cut like this, for fuzzing.
#[doc(hidden)]
pub fn read_events(settings: &Settings, pieces: &[&[u8]]) -> Result<Vec<Delta>, ModelError> {
    let mut events = Events::new(settings.max_response_bytes);
    let mut chunks = Chunks::new(settings);
    let mut deltas = Vec::new();
    for piece in pieces {
        let Ok(ready) = events.push(piece) else {
            return Ok(deltas);
        };
        for data in ready {
            deltas.extend(chunks.event(&data)?);
        }
    }
    if let Some(data) = events.finish() {
        deltas.extend(chunks.event(&data)?);
    }
    deltas.extend(chunks.end()?);
    Ok(deltas)
}

/// One model at one endpoint.
pub struct OpenAi {
    client: Client,
    url: Url,
    settings: Settings,
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
