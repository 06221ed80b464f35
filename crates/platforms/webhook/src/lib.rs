//! A signed JSON message in, the reply out: for tests, scripts and platforms we do not have yet.
//!
//! A request is a POST with these headers:
//!
//! ```text
//! X-Hermetic-Timestamp: 1700000000          seconds, at most five minutes off
//! X-Hermetic-Nonce: 1 to 128 of A-Za-z0-9_- the idempotency key: each works once
//! X-Hermetic-Signature: v1=<hex>            HMAC-SHA256 of "v1.<timestamp>.<nonce>.<body>"
//! ```
//!
//! and this body: `{"chat": "ops", "user": "alice", "text": "hello"}`, where `thread`, `display`,
//! `group` (a boolean) and `press` (`{"message", "data"}` instead of `text`) may be added. The reply
//! comes in the response, if it comes in time, or is posted to the callback address of the
//! configuration, signed the same way. No address is ever taken from a request.

#![forbid(unsafe_code)]

mod intake;
mod nonces;
#[doc(hidden)]
pub mod parser;
mod reply;
mod signature;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_types::{Attachment, MessageId, Place, Platform, Press, Secret};
use reqwest::Url;
use thiserror::Error;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio_util::sync::CancellationToken;

use hermetic_chat::{
    AttachmentStream, Button, Chat, ChatState, DownloadError, Outgoing, OutgoingFile, ReceiveError,
    Received, Reply, SendError, SendFailure,
};
use nonces::Nonces;
use reply::Waiting;

pub use signature::{NONCE_HEADER, SIGNATURE_HEADER, Signature, SignatureError, TIMESTAMP_HEADER};

#[derive(Clone, Debug)]
pub struct WebhookConfig {
    /// `WEBHOOK_SECRET`.
    pub secret: Secret,
    /// How long a request waits for its reply; none means it is answered as soon as it is stored.
    pub wait: Option<Duration>,
    /// Where replies go that no request waits for.
    pub callback: Option<String>,
    /// How long a request waits to be stored.
    pub storing: Duration,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum WebhookConfigError {
    #[error(
        "the webhook secret has {bytes} bytes: expected at least {}",
        WebhookConfig::SECRET_BYTES
    )]
    ShortSecret { bytes: usize },
    #[error("the callback address is not an http address")]
    Callback,
    #[error("the HTTP client cannot be built")]
    Client,
}

#[derive(Debug)]
pub struct Webhook {
    config: WebhookConfig,
    callback: Option<Url>,
    client: reqwest::Client,
    state: Mutex<ChatState>,
    nonces: Mutex<Nonces>,
    waiting: Mutex<Waiting>,
    hand_in: mpsc::Sender<Received>,
    take_out: AsyncMutex<mpsc::Receiver<Received>>,
}

impl WebhookConfig {
    pub const SECRET_BYTES: usize = 16;

    pub fn new(secret: Secret) -> Self {
        Self {
            secret,
            wait: Some(Duration::from_secs(120)),
            callback: None,
            storing: Duration::from_secs(10),
        }
    }
}

impl Webhook {
    pub fn new(config: WebhookConfig) -> Result<Self, WebhookConfigError> {
        let bytes = config.secret.expose().len();
        if bytes < WebhookConfig::SECRET_BYTES {
            return Err(WebhookConfigError::ShortSecret { bytes });
        }
        let callback = match config.callback.as_deref().map(Url::parse) {
            None => None,
            Some(Ok(url)) if matches!(url.scheme(), "http" | "https") => Some(url),
            Some(_) => return Err(WebhookConfigError::Callback),
        };
        let client = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .timeout(Duration::from_secs(30))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(|_| WebhookConfigError::Client)?;
        let (hand_in, take_out) = mpsc::channel(64);
        Ok(Self {
            config,
            callback,
            client,
            state: Mutex::new(ChatState::Starting),
            nonces: Mutex::default(),
            waiting: Mutex::default(),
            hand_in,
            take_out: AsyncMutex::new(take_out),
        })
    }

    /// Takes messages at `/`.
    pub fn router(self: &Arc<Self>) -> axum::Router {
        intake::router(Arc::clone(self))
    }

    fn set_state(&self, state: ChatState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Chat for Webhook {
    fn platform(&self) -> Platform {
        Platform::Webhook
    }

    fn state(&self) -> ChatState {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn edits(&self) -> bool {
        false
    }

    fn receive(&self, stop: CancellationToken) -> BoxStream<'_, Result<Received, ReceiveError>> {
        let inbox = async move {
            self.set_state(ChatState::Connected);
            let inbox = self.take_out.lock().await;
            stream::unfold((inbox, stop), move |(mut inbox, stop)| async move {
                let next = stop.run_until_cancelled(inbox.recv()).await.flatten();
                if next.is_none() {
                    self.set_state(ChatState::Stopped {
                        why: "asked to".to_owned(),
                    });
                }
                next.map(|received| (Ok(received), (inbox, stop)))
            })
        };
        inbox.flatten_stream().boxed()
    }

    fn parts(&self, text: &Outgoing) -> Vec<Outgoing> {
        vec![text.clone()]
    }

    fn send<'a>(
        &'a self,
        place: &'a Place,
        reply: &'a Reply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        self.deliver(place, reply).boxed()
    }

    fn edit<'a>(
        &'a self,
        _: &'a Place,
        _: &'a MessageId,
        _: &'a Outgoing,
        _: &'a [Vec<Button>],
    ) -> BoxFuture<'a, Result<(), SendError>> {
        let description = "a webhook message cannot be edited".to_owned();
        future::ready(Err(SendFailure::Refused { description }.into())).boxed()
    }

    fn typing<'a>(&'a self, _: &'a Place) -> BoxFuture<'a, Result<(), SendError>> {
        future::ready(Ok(())).boxed()
    }

    fn answer_press<'a>(
        &'a self,
        _: &'a Press,
        _: Option<&'a Outgoing>,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        future::ready(Ok(())).boxed()
    }

    fn send_file<'a>(
        &'a self,
        _: &'a Place,
        _: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        let description = "a webhook carries no files".to_owned();
        future::ready(Err(SendFailure::Refused { description }.into())).boxed()
    }

    fn download<'a>(
        &'a self,
        _: &'a Attachment,
        _: u64,
    ) -> BoxFuture<'a, Result<AttachmentStream, DownloadError>> {
        let description = "a webhook carries no files".to_owned();
        future::ready(Err(DownloadError::Refused { description })).boxed()
    }
}
