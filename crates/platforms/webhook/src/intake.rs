//! Requests in.

use std::sync::{Arc, PoisonError};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use hermetic_chat::{ChatEvent, Receipt, ReceivedEvent};
use hermetic_types::{
    AccountId, ButtonPress, ChatId, ChatKind, ChatPlace, IncomingMessage, MessageId, Platform,
    Sender, ThreadId, Timestamp, UpdateId, UserId,
};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;
use tracing::warn;

use crate::nonces::NonceCheck;
use crate::{SignedHeaders, WebhookAdapter};

const BODY_BYTES: usize = 1 << 20;

pub(crate) fn router(webhook: Arc<WebhookAdapter>) -> Router {
    Router::new()
        .route("/", post(take))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(webhook)
}

async fn take(
    State(webhook): State<Arc<WebhookAdapter>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let now = webhook.config.clock.now();
    let signature = match SignedHeaders::read(&headers).and_then(|signature| {
        signature
            .check(&webhook.config.secret, &body, now)
            .map(|()| signature)
    }) {
        Ok(signature) => signature,
        Err(error) => {
            if let Some(refused) = webhook.refusals.refuse() {
                warn!(rule = "webhook signature", %error, refused, "refused");
            }
            return StatusCode::UNAUTHORIZED.into_response();
        }
    };
    let request: PostedMessage = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let place = request.place();
    let Some(event) = request.event(&webhook.config.account, &signature.nonce, now) else {
        return refuse(StatusCode::BAD_REQUEST, "expected either text or press");
    };
    // When the request is known to be whole: a nonce that a malformed one used up could not be used
    // by the mended one.
    match webhook.take_nonce(&signature.nonce, now) {
        NonceCheck::Fresh => {}
        NonceCheck::Used => return refuse(StatusCode::CONFLICT, "this nonce was used"),
        NonceCheck::TooMany => return refuse(StatusCode::TOO_MANY_REQUESTS, "too many requests"),
    }
    webhook.hand_over(place, event, &signature.nonce).await
}

/// A nonce whose message is on its way into the store. It is given back where it does not arrive there, also
/// where the sender hangs up and nobody is left to see the end: who sends again is then not told that it was used.
struct TakenNonce<'a> {
    webhook: &'a WebhookAdapter,
    nonce: &'a str,
    is_stored: bool,
}

impl TakenNonce<'_> {
    fn keep(mut self) {
        self.is_stored = true;
    }
}

impl Drop for TakenNonce<'_> {
    fn drop(&mut self) {
        if !self.is_stored {
            let mut nonces = self
                .webhook
                .nonces
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            nonces.give_back(self.nonce);
        }
    }
}

impl WebhookAdapter {
    async fn hand_over(&self, place: ChatPlace, event: ChatEvent, nonce: &str) -> Response {
        // Before the event is handed over: the reply may be faster than we are.
        let waiter = self
            .config
            .wait
            .map(|wait| (self.wait_for(place, nonce), wait));
        let nonce = TakenNonce {
            webhook: self,
            nonce,
            is_stored: false,
        };
        let (receipt, counterfoil) = Receipt::pair();
        let stored = timeout(self.config.storing, async {
            let handed = self.hand_in.send(ReceivedEvent { event, receipt }).await;
            handed.is_ok() && counterfoil.signed().await
        });
        if !stored.await.unwrap_or(false) {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "not stored, try again");
        }
        nonce.keep();
        let Some((mut waiter, wait)) = waiter else {
            return accepted();
        };
        match timeout(wait, waiter.reply()).await {
            Ok(Some(reply)) => Json(reply).into_response(),
            Ok(None) | Err(_) => accepted(),
        }
    }

    fn take_nonce(&self, nonce: &str, now: Timestamp) -> NonceCheck {
        self.nonces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(nonce, now)
    }
}

/// What a signed body says.
pub(crate) fn hear_signed(body: &[u8], nonce: &str, now: Timestamp) -> Option<ChatEvent> {
    let request: PostedMessage = serde_json::from_slice(body).ok()?;
    request.event(&Platform::Webhook.into(), nonce, now)
}

fn accepted() -> Response {
    (StatusCode::ACCEPTED, Json(json!({ "status": "accepted" }))).into_response()
}

fn refuse(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PostedMessage {
    chat: ChatId,
    user: UserId,
    thread: Option<ThreadId>,
    display: Option<String>,
    #[serde(default)]
    group: bool,
    text: Option<String>,
    press: Option<PressRequest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PressRequest {
    message: MessageId,
    data: String,
}

impl PostedMessage {
    fn place(&self) -> ChatPlace {
        ChatPlace {
            chat: self.chat.clone(),
            kind: if self.group {
                ChatKind::Group
            } else {
                ChatKind::Dm
            },
            thread: self.thread.clone(),
        }
    }

    fn event(self, account: &AccountId, nonce: &str, now: Timestamp) -> Option<ChatEvent> {
        let update = UpdateId::new(nonce).ok()?;
        let place = self.place();
        let sender = Sender {
            display: self.display.unwrap_or_else(|| self.user.to_string()),
            id: self.user,
            is_bot: false,
            roles: Vec::new(),
        };
        match (self.text, self.press) {
            (Some(text), None) => Some(ChatEvent::Message(IncomingMessage {
                account: account.clone(),
                message: MessageId::new(nonce).ok()?,
                update,
                place,
                sender,
                text,
                reply_to: None,
                mentions_us: true,
                attachments: Vec::new(),
                received_at: now,
            })),
            (None, Some(press)) => Some(ChatEvent::Press(ButtonPress {
                account: account.clone(),
                query: nonce.to_owned(),
                update,
                place,
                message: press.message,
                sender,
                data: press.data,
                received_at: now,
            })),
            _ => None,
        }
    }
}
