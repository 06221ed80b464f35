//! Replies out: to the request that waits for one, or to the callback.

use std::sync::PoisonError;
use std::time::Duration;

use hermetic_chat::{Backoff, ChatReply, ReplyButton, SendError, SendFailure, TextLimit};
use hermetic_types::{ChatPlace, MessageId};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::signature::{NONCE_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};
use crate::{SignedHeaders, WebhookAdapter};

/// Of one reply.
pub(crate) const LIMIT: TextLimit = TextLimit::bytes(4 << 20);
const CALLBACK_ATTEMPTS: usize = 3;

/// The requests that are still open.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests(Vec<WaitingRequest>);

#[derive(Debug)]
struct WaitingRequest {
    place: ChatPlace,
    nonce: String,
    answer: oneshot::Sender<ReplyBody>,
}

/// A request's end of the wait. Dropping it is giving up.
pub(crate) struct ReplyWaiter(oneshot::Receiver<ReplyBody>);

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReplyBody {
    id: String,
    chat: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    buttons: Vec<Vec<ButtonBody>>,
}

#[derive(Clone, Debug, Serialize)]
struct ButtonBody {
    label: String,
    data: String,
}

impl ReplyWaiter {
    pub(crate) async fn reply(&mut self) -> Option<ReplyBody> {
        (&mut self.0).await.ok()
    }
}

impl OpenRequests {
    fn open(&mut self, place: ChatPlace, nonce: &str) -> ReplyWaiter {
        let (answer, reply) = oneshot::channel();
        self.0.retain(|open| !open.answer.is_closed());
        self.0.push(WaitingRequest {
            place,
            nonce: nonce.to_owned(),
            answer,
        });
        ReplyWaiter(reply)
    }

    /// The request this reply is for: the one it answers by name, else the oldest in its place.
    fn close(&mut self, place: &ChatPlace, reply_to: Option<&MessageId>) -> Option<WaitingRequest> {
        // Those whose sender hung up are closed: a reply must go to somebody who still listens, or
        // to the callback.
        self.0.retain(|open| !open.answer.is_closed());
        let here = |open: &WaitingRequest| open.place == *place;
        let index = match reply_to {
            Some(id) => self
                .0
                .iter()
                .position(|open| here(open) && open.nonce == id.as_str()),
            None => self.0.iter().position(here),
        }?;
        Some(self.0.remove(index))
    }
}

impl WebhookAdapter {
    pub(crate) fn wait_for(&self, place: ChatPlace, nonce: &str) -> ReplyWaiter {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .open(place, nonce)
    }

    pub(crate) async fn deliver(
        &self,
        place: &ChatPlace,
        reply: &ChatReply,
    ) -> Result<Vec<MessageId>, SendError> {
        let text = reply.text.as_str();
        if text.trim().is_empty() {
            return Err(SendFailure::Empty.into());
        }
        if !LIMIT.fits(text) {
            return Err(SendFailure::TooLong {
                limit: LIMIT.length,
                unit: LIMIT.unit.name(),
            }
            .into());
        }
        let id = random_id()?;
        let mut body = body(place, reply, &id);
        let open = self
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .close(place, reply.reply_to.as_ref());
        if let Some(open) = open {
            match open.answer.send(body) {
                Ok(()) => return Ok(vec![id]),
                Err(unsent) => body = unsent,
            }
        }
        self.post(&body).await?;
        Ok(vec![id])
    }

    async fn post(&self, body: &ReplyBody) -> Result<(), SendFailure> {
        let Some(url) = &self.callback else {
            return Err(SendFailure::Refused {
                description: "no request waits for this reply and there is no callback".to_owned(),
            });
        };
        let json = serde_json::to_vec(body).map_err(|error| SendFailure::NotSent(error.into()))?;
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        let mut attempt = 1;
        loop {
            let sent = self
                .signed(url.clone(), &body.id, json.clone())
                .send()
                .await;
            let failure = match sent.map(|response| response.status()) {
                Ok(status) if status.is_success() => return Ok(()),
                Ok(status) if status.is_server_error() => {
                    SendFailure::Uncertain(format!("the callback answered {status}").into())
                }
                Ok(status) => SendFailure::Refused {
                    description: format!("the callback answered {status}"),
                },
                Err(error) if error.is_connect() => {
                    SendFailure::NotSent(error.without_url().into())
                }
                Err(error) => SendFailure::Uncertain(error.without_url().into()),
            };
            if !failure.is_safe_to_repeat() || attempt == CALLBACK_ATTEMPTS {
                return Err(failure);
            }
            attempt += 1;
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }

    fn signed(&self, url: reqwest::Url, id: &str, json: Vec<u8>) -> reqwest::RequestBuilder {
        let now = self.config.clock.now().seconds();
        let signature = SignedHeaders::sign(&self.config.secret, now, id, &json);
        self.client
            .post(url)
            .header("content-type", "application/json")
            .header(TIMESTAMP_HEADER, signature.timestamp)
            .header(NONCE_HEADER, signature.nonce)
            .header(SIGNATURE_HEADER, signature.value)
            .body(json)
    }
}

fn body(place: &ChatPlace, reply: &ChatReply, id: &MessageId) -> ReplyBody {
    let button = |button: &ReplyButton| ButtonBody {
        label: button.label().to_owned(),
        data: button.data().to_owned(),
    };
    ReplyBody {
        id: id.to_string(),
        chat: place.chat.to_string(),
        thread: place.thread.as_ref().map(ToString::to_string),
        reply_to: reply.reply_to.as_ref().map(ToString::to_string),
        text: reply.text.as_str().to_owned(),
        buttons: reply
            .buttons
            .iter()
            .map(|row| row.iter().map(button).collect())
            .collect(),
    }
}

fn random_id() -> Result<MessageId, SendFailure> {
    let high = getrandom::u64().map_err(|error| SendFailure::NotSent(error.into()))?;
    let low = getrandom::u64().map_err(|error| SendFailure::NotSent(error.into()))?;
    MessageId::new(format!("{high:016x}{low:016x}"))
        .map_err(|error| SendFailure::NotSent(error.into()))
}
