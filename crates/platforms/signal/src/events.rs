//! What the gateway is told of an event.

use std::time::Duration;

use hermetic_chat::{AdapterStateError, ChatEvent, SendError, SendFailure};
use hermetic_types::{
    ButtonPress, ChatId, ChatKind, ChatPlace, DeletedMessage, IncomingMessage, MessageId,
    QuotedMessage, Sender, UpdateId, UserId,
};
use serde_json::Value;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use crate::SignalAdapter;
use crate::hear::{self, HeardEnvelope, SignalAct, SignalListener, SignalQuote, SignalUtterance};
use crate::leftovers;
use crate::names;
use crate::people;
use crate::rpc::SignalCallError;
use crate::send::{message_id, not_ours};

const LOOKING_UP: Duration = Duration::from_secs(10);
/// What is kept of a message to be quoted: phones show two lines of it.
const QUOTED_LETTERS: usize = 200;

impl SignalAdapter {
    /// The event that something from the daemon is, if it is one for us. An error if that cannot be told
    /// now and may be later.
    pub(crate) async fn hear(&self, event: &Value) -> Result<Option<ChatEvent>, AdapterStateError> {
        let us = self.people.us();
        let listener = SignalListener {
            us: &us,
            hearing: &self.hearing,
        };
        match hear::hear(event, listener) {
            HeardEnvelope::Said(said) => self.told(*said).await,
            HeardEnvelope::Nothing(why) => {
                debug!(why, "an event is not for us");
                Ok(None)
            }
            HeardEnvelope::Unreadable { from, why } => {
                let from = from.map(|from| from.name().to_owned());
                warn!(account = %self.account, from, why, "signal-cli could not read a message; if their safety number changed, `signal-cli trust` lets it through");
                Ok(None)
            }
            HeardEnvelope::Malformed(why) => {
                warn!(account = %self.account, why, "signal-cli sent a malformed event; skipped");
                Ok(None)
            }
        }
    }

    async fn told(&self, said: SignalUtterance) -> Result<Option<ChatEvent>, AdapterStateError> {
        let name = names::theirs(said.timestamp, &said.sender);
        let Ok(update) = UpdateId::new(name.as_str()) else {
            return Ok(None);
        };
        if self.seen.contains(&update) || self.sent.contains(&said.timestamp) {
            debug!(%update, "an event came again, or is our own; skipped");
            return Ok(None);
        }
        match self.people.user(&said.sender).await? {
            Some(user) => Ok(self.done_by(user, said, name, update).await),
            None => Ok(None),
        }
    }

    async fn done_by(
        &self,
        user: UserId,
        said: SignalUtterance,
        name: String,
        update: UpdateId,
    ) -> Option<ChatEvent> {
        let sender = Sender {
            id: user,
            display: said.display,
            is_bot: false,
            roles: Vec::new(),
        };
        let message = MessageId::new(name).ok()?;
        let received_at = self.clock.now();
        match said.act {
            SignalAct::Words {
                text,
                quote,
                mentions_us,
                attachments,
            } => {
                self.remember(&said.place, &message, said.timestamp, &text);
                let original = said.edits.and_then(|target| {
                    let target = MessageId::new(names::theirs(target, &said.sender)).ok()?;
                    Some(self.original(&message, target))
                });
                let is_edit = original.is_some();
                let incoming = IncomingMessage {
                    account: self.account.clone(),
                    update,
                    message: original.unwrap_or(message),
                    place: said.place,
                    sender,
                    text,
                    reply_to: quote.and_then(quoted),
                    mentions_us,
                    attachments,
                    received_at,
                };
                let event = match is_edit {
                    true => ChatEvent::Edited,
                    false => ChatEvent::Message,
                };
                Some(event(incoming))
            }
            SignalAct::Reaction { emoji, target } => {
                let data = self.chosen(&emoji, target).await?;
                Some(ChatEvent::Press(ButtonPress {
                    account: self.account.clone(),
                    query: update.as_str().to_owned(),
                    update,
                    place: said.place,
                    message: message_id(target),
                    sender,
                    data,
                    received_at,
                }))
            }
            // Only whoever wrote a message can name it so.
            SignalAct::Deletion { target } => Some(ChatEvent::Deleted(DeletedMessage {
                account: self.account.clone(),
                chat: said.place.chat,
                message: MessageId::new(names::theirs(target, &said.sender)).ok()?,
            })),
        }
    }

    /// The first wording of a message that is changed once more: a change may name the one before it.
    fn original(&self, edit: &MessageId, target: MessageId) -> MessageId {
        let original = self.originals.get(&target).unwrap_or(target);
        self.originals.note(edit.clone(), original.clone());
        original
    }

    /// What a reaction to one of our messages means, if it means something.
    async fn chosen(&self, emoji: &str, target: u64) -> Option<String> {
        match self.choices.find(target).await {
            Ok(choices) => Some(choices?.data(emoji)?.to_owned()),
            Err(error) => {
                warn!(%error, "what a reaction means could not be read");
                None
            }
        }
    }

    fn remember(&self, place: &ChatPlace, message: &MessageId, timestamp: u64, text: &str) {
        let beginning = text.chars().take(QUOTED_LETTERS).collect();
        self.texts.note(message.clone(), beginning);
        if place.kind == ChatKind::Dm {
            self.presence.note_unread(&place.chat, timestamp);
        }
    }

    pub(crate) fn note_stored(&self, event: &ChatEvent) {
        if let Some(update) = leftovers::update(event) {
            self.seen.note(update.clone(), ());
        }
    }

    /// What is worth knowing once, before anything is heard.
    pub(crate) async fn look_around(&self) -> Result<(), SignalCallError> {
        let answer = self.daemon.ping().await?;
        let version = answer["version"].as_str().unwrap_or("unknown");
        info!(account = %self.account, version, "signal-cli answers");
        // Over a socket we would see ourselves.
        let receives =
            !self.daemon.is_socket() && self.daemon.receives_without_us().await.unwrap_or(false);
        if receives {
            warn!(
                account = %self.account,
                "signal-cli receives messages while nobody listens, and those are lost: start its daemon with \
                 --receive-mode=on-connection; if it was, it has not noticed yet that an earlier connection is gone"
            );
        }
        if let Err(error) = self.choices.tidy(self.clock.now()).await {
            debug!(%error, "old questions could not be forgotten");
        }
        // Signal may take its time for that, and messages are not to wait for it.
        if timeout(LOOKING_UP, self.people.look_up(&self.daemon))
            .await
            .is_err()
        {
            debug!("it took too long to ask whose the listed numbers are");
        }
        Ok(())
    }

    pub(crate) async fn place_of(&self, user: &UserId) -> Result<ChatPlace, SendError> {
        let number = user.as_str();
        let known = match self.people.uuid_of(number).await {
            Some(uuid) => Some(uuid),
            None if people::names_a_person(number) => {
                let asked = self.people.ask(&self.daemon, &[number.to_owned()]).await;
                asked.map_err(SendFailure::from)?;
                self.people.uuid_of(number).await
            }
            None => None,
        };
        let chat = known.and_then(|uuid| ChatId::new(uuid).ok());
        Ok(ChatPlace {
            chat: chat.ok_or_else(|| not_ours("user", number))?,
            kind: ChatKind::Dm,
            thread: None,
        })
    }
}

fn quoted(quote: SignalQuote) -> Option<QuotedMessage> {
    let message = match quote.from_us {
        true => message_id(quote.timestamp),
        false => MessageId::new(names::theirs(quote.timestamp, &quote.author)).ok()?,
    };
    Some(QuotedMessage {
        message,
        from_us: quote.from_us,
        text: quote.text,
    })
}
