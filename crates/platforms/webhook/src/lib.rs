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

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{
    ButtonLimits, Capabilities, Chat, ChatReply, ChatState, ChoiceShape, HttpIntake,
    MissedMessages, ReceiveError, ReceivedEvent, Redelivery, RefusalLog, ReplyButton, ReplyRule,
    ReportedChanges, SendError, UnaskedMessages,
};
use hermetic_types::{AccountId, ChatPlace, MessageId, Platform, Secret, SharedClock};
use reqwest::Url;
use thiserror::Error;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio_util::sync::CancellationToken;

use nonces::UsedNonces;
use reply::OpenRequests;

pub use signature::{
    NONCE_HEADER, SIGNATURE_HEADER, SignedHeaders, TIMESTAMP_HEADER, WebhookSignatureError,
};

/// What a request and its reply can carry.
const CAPABILITIES: Capabilities = Capabilities {
    text: reply::LIMIT,
    edits: false,
    reports_changes: ReportedChanges::NONE,
    buttons: Some(ButtonLimits {
        most: 100,
        data_bytes: ReplyButton::DATA_BYTES,
        shown: ChoiceShape::Buttons,
    }),
    files_in: None,
    files_out: None,
    threads: true,
    typing: None,
    redelivery: Redelivery::Always,
    missed: MissedMessages::Repeated,
    send_keys: None,
    ordered_messages: false,
    replies: ReplyRule::OneForEach,
    unasked: UnaskedMessages::Never,
};

#[derive(Clone, Debug)]
pub struct WebhookConfig {
    pub account: AccountId,
    /// `WEBHOOK_SECRET`.
    pub secret: Secret,
    /// How long a request waits for its reply; none means it is answered as soon as it is stored.
    pub wait: Option<Duration>,
    /// Where replies go that no request waits for.
    pub callback: Option<String>,
    /// How long a request waits to be stored.
    pub storing: Duration,
    /// By which a signature is fresh or stale.
    pub clock: SharedClock,
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
pub struct WebhookAdapter {
    config: WebhookConfig,
    callback: Option<Url>,
    client: reqwest::Client,
    state: Mutex<ChatState>,
    nonces: Mutex<UsedNonces>,
    refusals: RefusalLog,
    waiting: Mutex<OpenRequests>,
    hand_in: mpsc::Sender<ReceivedEvent>,
    take_out: AsyncMutex<mpsc::Receiver<ReceivedEvent>>,
}

impl WebhookConfig {
    pub const SECRET_BYTES: usize = 16;

    pub fn new(secret: Secret, clock: SharedClock) -> Self {
        Self {
            account: Platform::Webhook.into(),
            secret,
            wait: Some(Duration::from_secs(120)),
            callback: None,
            storing: Duration::from_secs(10),
            clock,
        }
    }
}

impl WebhookAdapter {
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
            // A redirect would carry a signed answer to an address that nobody configured.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(|_| WebhookConfigError::Client)?;
        // Bounded: what does not fit waits in its own request, which is refused when that took too
        // long.
        let (hand_in, take_out) = mpsc::channel(64);
        Ok(Self {
            config,
            callback,
            client,
            state: Mutex::new(ChatState::Starting),
            nonces: Mutex::default(),
            refusals: RefusalLog::default(),
            waiting: Mutex::default(),
            hand_in,
            take_out: AsyncMutex::new(take_out),
        })
    }

    fn set_state(&self, state: ChatState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Chat for WebhookAdapter {
    fn account(&self) -> &AccountId {
        &self.config.account
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn state(&self) -> ChatState {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn intake(self: Arc<Self>) -> Option<HttpIntake> {
        Some(HttpIntake {
            path: String::new(),
            router: intake::router(self),
        })
    }

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
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

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        self.deliver(place, reply).boxed()
    }
}
