//! Updates by webhook.
//!
//! Telegram posts one update and repeats it until it gets a 200. It gets one when the update is
//! stored, so a crash in between costs nothing. Who does not know the secret learns nothing.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{Backoff, ChatState, ReceiveError, ReceivedEvent};
use hermetic_types::Secret;
use serde_json::Value;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::requests::{ALLOWED_UPDATES, SetWebhook};
use crate::wire::TelegramCallError;
use crate::{TelegramAdapter, TelegramConfigError, update};

const BODY_BYTES: usize = 1 << 20;
const WAITING: usize = 64;
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";

#[derive(Debug)]
pub(crate) struct WebhookIntake {
    url: String,
    secret: Secret,
    hand_in: mpsc::Sender<ReceivedEvent>,
    take_out: Mutex<mpsc::Receiver<ReceivedEvent>>,
}

impl WebhookIntake {
    pub(crate) fn new(url: String, secret: Secret) -> Result<Self, TelegramConfigError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
        let text = secret.expose();
        if !(1..=256).contains(&text.len()) || !text.bytes().all(plain) {
            return Err(TelegramConfigError::WebhookSecret);
        }
        let (hand_in, take_out) = mpsc::channel(WAITING);
        Ok(Self {
            url,
            secret,
            hand_in,
            take_out: Mutex::new(take_out),
        })
    }

    /// The public address that Telegram is told.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn stream<'a>(
        &'a self,
        telegram: &'a TelegramAdapter,
        stop: CancellationToken,
    ) -> BoxStream<'a, Result<ReceivedEvent, ReceiveError>> {
        let listen = move |stage: HookStage<'a>| {
            let stop = stop.clone();
            async move {
                let next = stop.run_until_cancelled(self.next(telegram, stage)).await;
                if next.is_none() {
                    telegram.set_state(ChatState::Stopped {
                        why: "asked to".to_owned(),
                    });
                }
                next.flatten()
            }
        };
        stream::unfold(HookStage::Register, listen).boxed()
    }

    async fn next<'a>(
        &'a self,
        telegram: &'a TelegramAdapter,
        stage: HookStage<'a>,
    ) -> Option<(Result<ReceivedEvent, ReceiveError>, HookStage<'a>)> {
        let mut inbox = match stage {
            HookStage::Register => {
                if let Err(error) = self.register(telegram).await {
                    return Some((Err(error), HookStage::Over));
                }
                self.take_out.lock().await
            }
            HookStage::Listen(inbox) => inbox,
            HookStage::Over => return None,
        };
        let received = inbox.recv().await?;
        Some((Ok(received), HookStage::Listen(inbox)))
    }

    async fn register(&self, telegram: &TelegramAdapter) -> Result<(), ReceiveError> {
        let mut backoff = Backoff::new(telegram.timing.retry.0, telegram.timing.retry.1);
        loop {
            let error = match self.try_register(telegram).await {
                Ok(()) => {
                    telegram.set_state(ChatState::Connected);
                    return Ok(());
                }
                Err(error) => error,
            };
            let why = error.to_string();
            if let TelegramCallError::Refused {
                code: 401 | 404,
                description,
                ..
            } = error
            {
                telegram.set_state(ChatState::Stopped { why });
                return Err(ReceiveError::Ended {
                    account: telegram.account.clone(),
                    description,
                });
            }
            warn!(account = %telegram.account, %error, "the webhook could not be set");
            telegram.set_state(ChatState::Retrying { why });
            sleep(backoff.next_wait()).await;
        }
    }

    async fn try_register(&self, telegram: &TelegramAdapter) -> Result<(), TelegramCallError> {
        telegram.learn_own_name().await?;
        let params = SetWebhook {
            url: &self.url,
            secret_token: self.secret.expose(),
            allowed_updates: ALLOWED_UPDATES,
        };
        let _: Value = telegram.wire.call("setWebhook", &params).await?;
        telegram.announce_commands().await;
        info!(account = %telegram.account, "telegram posts updates to us");
        Ok(())
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        let shown = headers
            .get(SECRET_HEADER)
            .map_or(&[][..], |value| value.as_bytes());
        let digest = |bytes: &[u8]| Sha256::digest(bytes);
        // Hashed first, so that the comparison says nothing about the length either.
        digest(shown)
            .as_slice()
            .ct_eq(digest(self.secret.expose().as_bytes()).as_slice())
            .into()
    }
}

enum HookStage<'a> {
    Register,
    Listen(tokio::sync::MutexGuard<'a, mpsc::Receiver<ReceivedEvent>>),
    Over,
}

pub(crate) fn router(telegram: Arc<TelegramAdapter>) -> Router {
    Router::new()
        .route("/", post(take_update))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(telegram)
}

async fn take_update(
    State(telegram): State<Arc<TelegramAdapter>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let Some(hook) = telegram.hook.as_ref().filter(|hook| hook.knows(&headers)) else {
        if let Some(refused) = telegram.refusals.refuse() {
            warn!(account = %telegram.account, rule = "webhook secret", refused, "refused");
        }
        // As if nothing were here: a refusal would tell a stranger that a bot listens at this
        // address.
        return StatusCode::NOT_FOUND;
    };
    let parsed = serde_json::from_slice::<Value>(&body).ok();
    let Some((id, update)) = parsed.and_then(|update| update::id(&update).map(|id| (id, update)))
    else {
        warn!("telegram posted something that is no update; skipped");
        return StatusCode::OK;
    };
    // Before we know our own name we cannot tell what is meant for us.
    if telegram.me.get().is_none() {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    // Taken over, and our answer did not reach Telegram: it repeats until it gets one.
    if telegram.seen(id) {
        return StatusCode::OK;
    }
    let (received, counterfoil) = match telegram.hear(&update, id) {
        Ok(Some(heard)) => heard,
        Ok(None) => return StatusCode::OK,
        Err(why) => {
            warn!(
                update = id,
                why, "telegram sent a malformed update; skipped"
            );
            return StatusCode::OK;
        }
    };
    let stored = timeout(telegram.timing.storing, async {
        hook.hand_in.send(received).await.is_ok() && counterfoil.signed().await
    });
    if stored.await.unwrap_or(false) {
        // Only what is stored: an update that is noted too early would be answered with OK when it
        // comes again, and be lost.
        telegram.note_seen(id);
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}
