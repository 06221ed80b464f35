//! Any endpoint that serves a model, whichever dialect it speaks.
//!
//! A thin client of our own: the dialects of compatible servers differ exactly where a library would
//! be strict, and the parsers here meet whatever an endpoint sends. What is the same for all of them
//! (the connection, its bounds, server-sent events, classes of failure) is here; what a dialect says
//! is in the folder of its name.

mod address;
mod body;
mod dialect;
pub(crate) mod failure;
mod settings;
mod sse;

use std::fmt;
use std::time::Duration;

use async_stream::try_stream;
use futures::stream::StreamExt;
use hermetic_types::SharedClock;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, Url, redirect};
use tokio_util::sync::CancellationToken;

use self::address::address;
use self::body::CountedBody;
pub use self::dialect::ApiDialect;
pub(crate) use self::dialect::written;
use self::settings::headers;
pub use self::settings::{EndpointSettings, KeyHeader, ModelEndpointError, ReasoningEffort};
use self::sse::{EventParser, EventTooLarge};
use crate::{Deltas, LanguageModel, ModelError, ModelRequest, ReplyDelta, TokenPrice, TokenUsage};

/// What a stream of events says that came cut like this, for fuzzing.
#[doc(hidden)]
pub fn read_events(
    settings: &EndpointSettings,
    pieces: &[&[u8]],
) -> Result<Vec<ReplyDelta>, ModelError> {
    let mut events = EventParser::new(settings.max_event_bytes());
    let mut reader = settings.dialect.reader(settings);
    let mut deltas = Vec::new();
    let mut ready = Vec::new();
    for piece in pieces {
        let Ok(more) = events.push(piece) else {
            return Ok(deltas);
        };
        ready.extend(more);
    }
    ready.extend(events.finish());
    for data in ready {
        deltas.extend(reader.event(&data)?);
        if let Some(error) = reader.failed() {
            return Err(error);
        }
        // Nothing is read beyond the end of an answer.
        if matches!(deltas.last(), Some(ReplyDelta::Finish(_))) {
            return Ok(deltas);
        }
    }
    deltas.extend(reader.end()?);
    Ok(deltas)
}

/// One model at one endpoint.
pub struct ModelEndpoint {
    client: Client,
    url: Url,
    settings: EndpointSettings,
    /// By which a date to try again is near or far.
    clock: SharedClock,
}

impl ModelEndpoint {
    pub fn new(settings: EndpointSettings, clock: SharedClock) -> Result<Self, ModelEndpointError> {
        let url = address(&settings)?;
        let mut builder = Client::builder()
            .default_headers(headers(&settings)?)
            .connect_timeout(settings.connect_timeout)
            // A redirect would carry the conversation to a host that nobody configured.
            .redirect(redirect::Policy::none())
            .no_proxy();
        if let Some(proxy) = &settings.proxy {
            builder = builder.proxy(proxy.for_client());
        }
        let client = builder.build().map_err(ModelEndpointError::Client)?;
        Ok(Self {
            client,
            url,
            settings,
            clock,
        })
    }

    fn answer<'a>(&'a self, ask: ModelRequest<'a>) -> Deltas<'a> {
        try_stream! {
            let mut response = self.send(ask).await?;
            let mut body = CountedBody::new(&mut response, self);
            let mut reader = self.settings.dialect.reader(&self.settings);
            let mut start = body.start().await?;
            // Servers that ignore `stream` answer with one object, whatever type they call it.
            if matches!(start.trim_ascii_start().first(), Some(b'{' | b'[')) {
                start.extend_from_slice(&body.rest().await?);
                for delta in reader.whole(&start)? {
                    yield delta;
                }
                if let Some(error) = reader.failed() {
                    Err(error)?;
                }
                return;
            }
            let mut first = Some(start.freeze());
            let most = self.settings.max_event_bytes();
            let mut events = EventParser::new(most);
            let mut over = false;
            while !over {
                let piece = match first.take() {
                    Some(piece) => Some(piece),
                    None => body.next().await?,
                };
                let ready = match piece {
                    Some(piece) => events.push(&piece).map_err(|EventTooLarge| self.too_large(most))?,
                    None => {
                        over = true;
                        events.finish().into_iter().collect()
                    }
                };
                for event in ready {
                    for delta in reader.event(&event)? {
                        let last = matches!(delta, ReplyDelta::Finish(_));
                        if says_something(&delta) {
                            body.progressed();
                        }
                        yield delta;
                        if last {
                            return;
                        }
                    }
                    if let Some(error) = reader.failed() {
                        Err(error)?;
                    }
                }
            }
            for delta in reader.end()? {
                yield delta;
            }
        }
        .boxed()
    }

    async fn send(&self, ask: ModelRequest<'_>) -> Result<Response, ModelError> {
        let body = self.settings.dialect.body(&self.settings, ask);
        // Before anything is sent: what the endpoint would refuse after minutes is told at once,
        // and the caller shortens it.
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
            failure::retry_after(response.headers(), self.clock.now()),
        );
        // A long error page is as good as its beginning.
        let text = CountedBody::new(&mut response, self).page(64 << 10).await;
        Err(failure::of_status(&self.settings, status, &text, asked))
    }

    /// What the provider says itself beats our table.
    fn priced(&self, delta: ReplyDelta) -> ReplyDelta {
        match (delta, self.settings.price) {
            (ReplyDelta::Usage(usage), Some(price)) if usage.cost.is_none() => {
                ReplyDelta::Usage(TokenUsage {
                    cost: Some(price.of(usage)),
                    ..usage
                })
            }
            (delta, _) => delta,
        }
    }

    async fn in_time<T>(&self, future: impl Future<Output = T>) -> Result<T, ModelError> {
        tokio::time::timeout(self.settings.silence, future)
            .await
            .map_err(|_| self.silent_for(self.settings.silence))
    }

    fn unreachable(&self, error: &reqwest::Error) -> ModelError {
        ModelError::Unreachable {
            model: self.settings.model.clone(),
            what: failure::plainly(error),
        }
    }

    fn too_large(&self, limit: usize) -> ModelError {
        ModelError::TooLarge {
            model: self.settings.model.clone(),
            limit,
        }
    }

    fn silent_for(&self, waited: Duration) -> ModelError {
        ModelError::Silent {
            model: self.settings.model.clone(),
            waited,
        }
    }
}

/// Figures may be repeated for ever, as may comments between events.
fn says_something(delta: &ReplyDelta) -> bool {
    match delta {
        ReplyDelta::Text(text) => !text.is_empty(),
        ReplyDelta::Usage(_) | ReplyDelta::GaveWay(_) => false,
        _ => true,
    }
}

impl LanguageModel for ModelEndpoint {
    fn name(&self) -> &str {
        &self.settings.model
    }

    fn price(&self) -> Option<TokenPrice> {
        self.settings.price
    }

    fn takes_files(&self) -> bool {
        self.settings.takes_files()
    }

    fn complete<'a>(&'a self, ask: ModelRequest<'a>, stop: CancellationToken) -> Deltas<'a> {
        let mut answer = self.answer(ask);
        async_stream::stream! {
            loop {
                let next = tokio::select! {
                    // The stop first: an endpoint that always has something ready would never let
                    // it be heard.
                    biased;
                    () = stop.cancelled() => Some(Err(ModelError::Stopped)),
                    next = answer.next() => next,
                };
                let Some(next) = next else { return };
                let last = next.is_err();
                yield next.map(|delta| self.priced(delta));
                if last {
                    return;
                }
            }
        }
        .boxed()
    }
}

impl fmt::Debug for ModelEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelEndpoint")
            .field("url", &self.url.as_str())
            .field("model", &self.settings.model)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod reader_tests;
