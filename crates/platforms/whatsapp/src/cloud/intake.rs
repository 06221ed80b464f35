//! What Meta posts to us.
//!
//! Meta repeats a notification until it gets a 200, for up to seven days. It gets one when everything in
//! it is stored. What was stored the first time is known by its id and not handed out again; what cannot
//! be read will never be, and is no reason to have it repeated.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hermetic_chat::{
    AdapterStateError, ChatEvent, Receipt, ReceiptWaiter, ReceivedEvent, UndeliveredReply,
};
use hermetic_types::{ChatPlace, MessageId};
use serde_json::Value;
use tokio::time::timeout;
use tracing::{debug, error, info, warn};

use super::message::{CloudReader, NotForUs};
use super::notification::{CloudNotification, PostedCloudMessage};
use super::{WhatsAppCloud, signature};

/// What Meta posts at most.
const BODY_BYTES: usize = 3 << 20;

pub(super) fn router(cloud: Arc<WhatsAppCloud>) -> Router {
    Router::new()
        .route("/", get(answer_challenge).post(take))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(cloud)
}

/// Meta asks once whether the address is ours, when it is registered.
async fn answer_challenge(
    State(cloud): State<Arc<WhatsAppCloud>>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let part = |name: &str| query.get(name).map_or("", String::as_str);
    let known = cloud.verify_token.as_ref();
    let known = known.is_some_and(|token| signature::is_same(part("hub.verify_token"), token));
    if !known || part("hub.mode") != "subscribe" {
        if let Some(refused) = cloud.refusals.refuse() {
            warn!(account = %cloud.account, rule = "verify token", refused, "refused");
        }
        return StatusCode::FORBIDDEN.into_response();
    }
    info!(account = %cloud.account, "meta has checked the address of our webhook");
    part("hub.challenge").to_owned().into_response()
}

async fn take(
    State(cloud): State<Arc<WhatsAppCloud>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    // Over the bytes as they came, before anything is read from them.
    if !signature::is_signed(&headers, &body, &cloud.app_secret) {
        if let Some(refused) = cloud.refusals.refuse() {
            warn!(account = %cloud.account, rule = "notification signature", refused, "refused");
        }
        return StatusCode::FORBIDDEN;
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        // Taken all the same: Meta would repeat it for a week, and it would be no more readable
        // then.
        warn!(account = %cloud.account, "meta posted something that is no JSON; skipped");
        return StatusCode::OK;
    };
    match timeout(cloud.timing.storing, cloud.store_all(&body)).await {
        Ok(Ok(true)) => StatusCode::OK,
        Ok(Ok(false)) | Err(_) => StatusCode::SERVICE_UNAVAILABLE,
        Ok(Err(error)) => {
            error!(account = %cloud.account, %error, "a notification could not be taken");
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

impl WhatsAppCloud {
    /// Hands out what a body says, number by number. Whether all of it is stored.
    async fn store_all(&self, body: &Value) -> Result<bool, AdapterStateError> {
        let mut all = true;
        for number in self.numbers() {
            let notification = CloudNotification::read(body, &number.phone_number_id);
            // All of them in any case: one number that is not stored must not keep the others from
            // being heard; what is stored is known when the body comes again.
            all &= number.store(notification).await?;
        }
        Ok(all)
    }

    /// Hands out what is in it. Whether all of it is stored.
    async fn store(&self, notification: CloudNotification) -> Result<bool, AdapterStateError> {
        let mut open = Vec::new();
        for status in notification.statuses {
            let Some(late) = self.statuses.hear(&status) else {
                continue;
            };
            self.note_lost(&late.chat, &late.refusal).await;
            if let Some(key) = late.key {
                let (receipt, counterfoil) = Receipt::pair();
                let event = ChatEvent::Undelivered(UndeliveredReply {
                    account: self.account.clone(),
                    key,
                    why: late.refusal.words(),
                });
                open.push((None, counterfoil));
                if self
                    .hand_in
                    .send(ReceivedEvent { event, receipt })
                    .await
                    .is_err()
                {
                    return Ok(false);
                }
            }
        }
        for posted in notification.messages {
            let id = posted.message.id.clone();
            if let Some(written) = posted.message.written()
                // Before it is looked up among those that were stored: this is for what the store
                // has forgotten.
                && self.newest.is_stale(written, self.now()).await?
            {
                warn!(account = %self.account, update = %id, rule = "age of a message", "refused");
                continue;
            }
            if !self.was_stored(&id)
                && let Some((received, counterfoil)) = self.hear(posted).await?
            {
                open.push((Some(id), counterfoil));
                if self.hand_in.send(received).await.is_err() {
                    return Ok(false);
                }
            }
        }
        // Waited for only when all of the body is handed out: the gateway writes them down
        // together.
        let mut all = true;
        for (id, counterfoil) in open {
            match counterfoil.signed().await {
                true => id.into_iter().for_each(|id| self.note_stored(id)),
                false => all = false,
            }
        }
        Ok(all)
    }

    async fn hear(
        &self,
        posted: PostedCloudMessage,
    ) -> Result<Option<(ReceivedEvent, ReceiptWaiter)>, AdapterStateError> {
        let (message, kind) = (posted.message.id.clone(), posted.kind().to_owned());
        let (id, number) = posted.shown();
        let Some(origin) = self.people.identify(id, number).await? else {
            warn!(update = %message, "nobody is named as its sender; skipped");
            return Ok(None);
        };
        let reader = CloudReader {
            account: &self.account,
            hearing: &self.hearing,
            now: self.now(),
        };
        let event = match posted.event(origin, reader) {
            Ok(event) => event,
            Err(NotForUs(why)) => {
                debug!(update = %message, kind, why, "not for us");
                return Ok(None);
            }
        };
        if let Some(place) = said_in(&event) {
            self.note_last(&place.chat, &message);
            self.undelivered.heard_from(&place.chat).await?;
        }
        let (receipt, counterfoil) = Receipt::pair();
        Ok(Some((ReceivedEvent { event, receipt }, counterfoil)))
    }

    fn was_stored(&self, id: &MessageId) -> bool {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.get(id).is_some()
    }

    fn note_stored(&self, id: MessageId) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.note(id, ());
    }
}

/// Where something was said that opens the window for an answer.
fn said_in(event: &ChatEvent) -> Option<&ChatPlace> {
    match event {
        ChatEvent::Message(message) => Some(&message.place),
        ChatEvent::Press(press) => Some(&press.place),
        ChatEvent::Edited(_) | ChatEvent::Deleted(_) | ChatEvent::Undelivered(_) => None,
    }
}
