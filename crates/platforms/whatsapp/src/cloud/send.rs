//! Replies out.

use std::future::Future;
use std::time::Duration;

use hermetic_chat::{
    Backoff, ChatReply, OutgoingText, ReplyButton, SendError, SendFailure, SendKey,
};
use hermetic_types::{ChatId, ChatKind, ChatPlace, MessageId};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;
use tracing::{debug, warn};

use super::graph::GraphCallError;
use super::refusal::{GraphRefusal, WINDOW_CLOSED};
use super::requests::{self, CloudRecipient};
use super::{CHOICE_TEXT, MESSAGE, WhatsAppCloud};
use crate::dialect::to_whatsapp;

const CLOUD_SEND_ATTEMPTS: u32 = 5;
/// A longer answer belongs in a file.
const PARTS: usize = 40;
/// Stands above buttons whose question is too long to stand there itself.
const CHOOSE: &str = "Your answer:";

/// What a message of ours refers to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MessageReferences<'a> {
    pub(super) reply_to: Option<&'a MessageId>,
    /// The delivery that it is a part of.
    pub(super) key: Option<&'a SendKey>,
}

impl WhatsAppCloud {
    pub(super) async fn send_reply(
        &self,
        place: &ChatPlace,
        reply: &ChatReply,
    ) -> Result<Vec<MessageId>, SendError> {
        let limit = PARTS * MESSAGE.length / 2;
        if MESSAGE.unit.count(reply.text.as_str()) > limit {
            let unit = MESSAGE.unit.name();
            return Err(SendFailure::TooLong { limit, unit }.into());
        }
        let parts = reply.text.split(MESSAGE);
        let Some((last, before)) = parts.split_last() else {
            return Err(SendFailure::Empty.into());
        };
        let (_, sent) = tokio::join!(self.mark_read(place), async {
            self.say_what_was_lost(place).await;
            let mut sent = Vec::with_capacity(parts.len());
            let mut refers = MessageReferences {
                reply_to: reply.reply_to.as_ref(),
                key: reply.key.as_ref(),
            };
            let texts = before.iter();
            let texts = texts.map(|part| requests::text(&to_whatsapp(part.as_str())));
            for content in texts.chain(with_choices(place, last, &reply.buttons)) {
                self.send_one(place, content, refers, &mut sent).await?;
                // Only the first shows what it answers. The key stays: whichever of them is lost,
                // the delivery is.
                refers.reply_to = None;
            }
            Ok(sent)
        });
        sent
    }

    async fn send_one(
        &self,
        place: &ChatPlace,
        content: (&'static str, Value),
        refers: MessageReferences<'_>,
        sent: &mut Vec<MessageId>,
    ) -> Result<(), SendError> {
        match self.deliver(place, content, refers).await {
            Ok(id) => {
                sent.push(id);
                Ok(())
            }
            Err(failure) => Err(SendError {
                sent: std::mem::take(sent),
                failure,
            }),
        }
    }

    /// Sends one message and waits for the first word about it.
    pub(super) async fn deliver(
        &self,
        place: &ChatPlace,
        content: (&'static str, Value),
        refers: MessageReferences<'_>,
    ) -> Result<MessageId, SendFailure> {
        let recipient = CloudRecipient::of(place)?;
        // Before it is sent: the first word about it may come by the webhook before the answer
        // does.
        let status = self.statuses.expect(&place.chat, refers.key);
        let mark = Some(status.mark());
        let body = requests::message(&recipient, content, refers.reply_to, mark);
        let taken = self
            .patiently(&place.chat, || {
                self.graph.post::<CloudSent>(&self.messages, &body)
            })
            .await;
        // Taken is not delivered: Meta says of a closed window only afterwards, so the first word
        // is waited for.
        let told = match taken {
            Ok(sent) => status.wait(self.timing.status).await.map(|()| sent),
            Err(GraphCallError::Refused(refusal)) => Err(refusal),
            Err(error) => return Err(error.into()),
        };
        match told {
            Ok(sent) => sent.id(),
            Err(refusal) => {
                self.note_refusal(place, &refusal).await;
                Err(refusal.into())
            }
        }
    }

    async fn note_refusal(&self, place: &ChatPlace, refusal: &GraphRefusal) {
        if let Some((whom, wait)) = refusal.hold() {
            self.pace.hold(whom, &place.chat, wait);
            return;
        }
        if refusal.code == WINDOW_CLOSED {
            self.note_lost(&place.chat, refusal).await;
        }
    }

    /// A message is lost: they are told when they write again. Where they wrote nothing for a day, a
    /// template asks them to, if one is configured; once, because each costs money.
    pub(super) async fn note_lost(&self, chat: &ChatId, refusal: &GraphRefusal) {
        warn!(account = %self.account, %chat, code = refusal.code, why = refusal.words(), "not delivered");
        let is_first = match self.undelivered.note(chat, refusal.code).await {
            Ok(is_first) => is_first,
            Err(error) => {
                warn!(%chat, %error, "that a message was lost could not be written down");
                return;
            }
        };
        // Behind the note, which is what says whether it is the first: two that are lost at once
        // pay for one template.
        let template = self.template.as_ref().filter(|_| is_first);
        let Some(template) = template.filter(|_| refusal.code == WINDOW_CLOSED) else {
            return;
        };
        let place = ChatPlace {
            chat: chat.clone(),
            kind: ChatKind::Dm,
            thread: None,
        };
        let Ok(recipient) = CloudRecipient::of(&place) else {
            return;
        };
        let body = requests::message(&recipient, requests::template(template), None, None);
        let sent = self.graph.post::<CloudSent>(&self.messages, &body).await;
        if let Err(error) = sent {
            warn!(%chat, template = template.name, %error, "a template could not be sent");
        }
    }

    /// Before anything else is said to them.
    async fn say_what_was_lost(&self, place: &ChatPlace) {
        let Some(notice) = self.undelivered.notice(&place.chat).await else {
            return;
        };
        let said = self
            .deliver(
                place,
                requests::text(notice.as_str()),
                MessageReferences::default(),
            )
            .await;
        let noted = match said {
            Ok(_) => self.undelivered.told(&place.chat).await,
            Err(error) => {
                debug!(%error, "that a message was lost could not be said");
                Ok(())
            }
        };
        if let Err(error) = noted {
            debug!(%error, "it may be said twice that a message was lost");
        }
    }

    /// Tries again what certainly did not arrive, and waits where Meta asks for it.
    pub(super) async fn patiently<T, F>(
        &self,
        chat: &ChatId,
        mut call: impl FnMut() -> F,
    ) -> Result<T, GraphCallError>
    where
        F: Future<Output = Result<T, GraphCallError>>,
    {
        let mut backoff = Backoff::new(self.timing.retry.0, self.timing.retry.1);
        let mut attempt = 1;
        loop {
            let wait = self.pace.wait(chat);
            if wait > self.timing.throttle {
                return Err(GraphCallError::Held { wait });
            }
            sleep(wait).await;
            let error = match call().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let wait = match &error {
                GraphCallError::Refused(refusal) => {
                    let Some((whom, wait)) = refusal.hold() else {
                        return Err(error);
                    };
                    self.pace.hold(whom, chat, wait);
                    Duration::ZERO
                }
                GraphCallError::Unreachable(_) => backoff.next_wait(),
                _ => return Err(error),
            };
            if attempt == CLOUD_SEND_ATTEMPTS {
                return Err(error);
            }
            debug!(%error, attempt, "trying again");
            attempt += 1;
            sleep(wait).await;
        }
    }
}

/// The last messages of an answer: one, unless the text is too long to stand above buttons.
fn with_choices(
    place: &ChatPlace,
    text: &OutgoingText,
    buttons: &[Vec<ReplyButton>],
) -> Vec<(&'static str, Value)> {
    let text = to_whatsapp(text.as_str());
    // In groups WhatsApp takes no buttons: whoever may answer types.
    let buttons = if place.kind == ChatKind::Dm {
        buttons
    } else {
        &[]
    };
    if CHOICE_TEXT.fits(&text) {
        let chosen = requests::choices(&text, buttons);
        return vec![chosen.unwrap_or_else(|| requests::text(&text))];
    }
    let mut contents = vec![requests::text(&text)];
    contents.extend(requests::choices(CHOOSE, buttons));
    contents
}

/// All we need of the answer.
#[derive(Debug, Deserialize)]
pub(super) struct CloudSent {
    messages: Vec<SentMessage>,
}

#[derive(Debug, Deserialize)]
struct SentMessage {
    id: MessageId,
}

impl CloudSent {
    fn id(self) -> Result<MessageId, SendFailure> {
        let first = self.messages.into_iter().next();
        let id = first.map(|message| message.id);
        id.ok_or_else(|| SendFailure::Uncertain("meta named no message".into()))
    }
}
