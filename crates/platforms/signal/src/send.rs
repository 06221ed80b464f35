//! Replies out.

use std::future::Future;
use std::time::Duration;

use futures::future::join;
use hermetic_chat::{
    Backoff, ChatReply, OutgoingText, ReactionChoices, SendError, SendFailure, TextLimit,
};
use hermetic_types::{ChatId, ChatKind, ChatPlace, MessageId};
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::names::MessageName;
use crate::people;
use crate::rpc::SignalCallError;
use crate::styles::StyledText;
use crate::{MESSAGE, SignalAdapter};

const SIGNAL_SEND_ATTEMPTS: u32 = 5;
/// A longer answer belongs in a file.
const PARTS: usize = 40;

impl SignalAdapter {
    pub(crate) async fn send_reply(
        &self,
        place: &ChatPlace,
        reply: &ChatReply,
    ) -> Result<Vec<MessageId>, SendError> {
        let limit = PARTS * MESSAGE.length / 2;
        if MESSAGE.unit.count(reply.text.as_str()) > limit {
            return Err(too_long(limit, MESSAGE.unit.name()).into());
        }
        let choices = ReactionChoices::of(&reply.buttons);
        // The words that say what reactions mean have to fit as well.
        let room = choices.as_ref().map_or(0, |(_, words)| words.len());
        // Room for those words in every part, although only the last has them: which is the last is
        // known when all are cut.
        let parts = reply.text.split(TextLimit::bytes(MESSAGE.length - room));
        let last = parts.len().checked_sub(1).ok_or(SendFailure::Empty)?;
        let mut sent = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let quoted = reply.reply_to.as_ref().filter(|_| index == 0);
            let choices = choices.as_ref().filter(|_| index == last);
            let sending = self.send_part(place, part, quoted, choices);
            let sending = async {
                match index {
                    0 => join(self.show_reading(place, quoted), sending).await.1,
                    _ => sending.await,
                }
            };
            match sending.await {
                Ok(id) => sent.push(id),
                Err(failure) => return Err(SendError { sent, failure }),
            }
        }
        Ok(sent)
    }

    async fn send_part(
        &self,
        place: &ChatPlace,
        part: &OutgoingText,
        quoted: Option<&MessageId>,
        choices: Option<&(ReactionChoices, String)>,
    ) -> Result<MessageId, SendFailure> {
        let mut plain = self.target(place)?;
        if let Some(quoted) = quoted {
            self.quote(&mut plain, quoted)?;
        }
        let words = choices.map_or("", |(_, words)| words);
        let StyledText { text, styles } = StyledText::of(part.as_str());
        let mut styled = plain.clone();
        styled["message"] = json!(format!("{text}{words}"));
        styled["textStyle"] = json!(styles);
        plain["message"] = json!(format!("{}{words}", part.as_str()));
        // Until what its reactions mean is kept.
        let _asking = match choices {
            Some(_) => Some(self.choices.ask().await),
            None => None,
        };
        let send = async |params: &Value| {
            self.patiently(&place.chat, || self.daemon.call("send", params.clone()))
                .await
        };
        let sent = match send(&styled).await {
            Err(error) if error.is_about_styles() => {
                warn!(%error, "signal-cli refused our formatting; sending it plain");
                send(&plain).await?
            }
            sent => sent?,
        };
        let timestamp = self.note_sent(&sent)?;
        if let Some((choices, _)) = choices {
            self.choices.keep(timestamp, choices).await;
        }
        Ok(message_id(timestamp))
    }

    /// Remembers one of our own, so that we do not take it for the owner's words.
    pub(crate) fn note_sent(&self, sent: &Value) -> Result<u64, SendFailure> {
        let timestamp = sent["timestamp"].as_u64().ok_or(SignalCallError::Garbled)?;
        // Before anybody else hears of it: linked to somebody's own number, the daemon tells us our
        // own words as theirs.
        self.sent.note(timestamp, ());
        Ok(timestamp)
    }

    /// Makes a message of these fields a reply to that one.
    fn quote(&self, fields: &mut Value, quoted: &MessageId) -> Result<(), SendFailure> {
        let name = MessageName::read(quoted).ok_or_else(|| not_ours("message", quoted.as_str()))?;
        fields["quoteTimestamp"] = json!(name.timestamp);
        fields["quoteAuthor"] = json!(name.author.as_deref().unwrap_or(&self.number));
        // Phones show the words that come along, not those that they have.
        if let Some(text) = self.texts.get(quoted) {
            fields["quoteMessage"] = json!(text);
        }
        Ok(())
    }

    /// The fields that say where a message goes.
    pub(crate) fn target(&self, place: &ChatPlace) -> Result<Value, SendFailure> {
        let chat = place.chat.as_str();
        let wrong = || not_ours("chat", chat);
        match place.kind {
            ChatKind::Dm if self.people.is_us(chat) => Ok(json!({ "noteToSelf": true })),
            ChatKind::Dm => people::recipient(chat).ok_or_else(wrong),
            ChatKind::Group => Ok(json!({ "groupId": chat })),
            ChatKind::Channel | ChatKind::Thread => Err(wrong()),
        }
    }

    /// Tries again what certainly did not arrive, and waits where Signal asks for it.
    pub(crate) async fn patiently<F>(
        &self,
        chat: &ChatId,
        mut call: impl FnMut() -> F,
    ) -> Result<Value, CallFailure>
    where
        F: Future<Output = Result<Value, SignalCallError>>,
    {
        let mut backoff = Backoff::new(self.timing.retry.0, self.timing.retry.1);
        let mut attempt = 1;
        loop {
            let hold = self.pace.wait(chat);
            if hold > self.timing.throttle {
                return Err(CallFailure::Held(hold));
            }
            sleep(hold).await;
            let error = match call().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let wait = match (&error, error.retry_after()) {
                (_, Some(wait)) => {
                    warn!(account = %self.account, %error, wait_s = wait.as_secs(), "signal limits us");
                    self.pace.hold(chat, wait);
                    Duration::ZERO
                }
                (SignalCallError::Unreachable(_), None) => backoff.next_wait(),
                _ => return Err(error.into()),
            };
            if attempt == SIGNAL_SEND_ATTEMPTS {
                return Err(error.into());
            }
            debug!(%error, attempt, "trying again");
            attempt += 1;
            sleep(wait).await;
        }
    }
}

/// Why a patient call came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallFailure {
    /// Signal wants to be left alone for longer than is waited here.
    #[error("signal limits us for {}s", .0.as_secs())]
    Held(Duration),
    #[error(transparent)]
    Call(#[from] SignalCallError),
}

impl CallFailure {
    fn is_about_styles(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_about_styles())
    }
}

impl From<CallFailure> for SendFailure {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Held(retry_after) => Self::Throttled { retry_after },
            CallFailure::Call(error) => error.into(),
        }
    }
}

pub(crate) fn message_id(timestamp: u64) -> MessageId {
    // A timestamp of this century is far from the end of an i64.
    MessageId::from(i64::try_from(timestamp).unwrap_or(i64::MAX))
}

pub(crate) fn too_long(limit: usize, unit: &'static str) -> SendFailure {
    SendFailure::TooLong { limit, unit }
}

pub(crate) fn not_ours(what: &str, id: &str) -> SendFailure {
    SendFailure::Refused {
        description: format!("{id:?} is no signal {what}"),
    }
}
