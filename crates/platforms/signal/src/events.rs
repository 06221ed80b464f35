//! What the gateway is told of an event.

use std::time::Duration;

use hermetic_chat::{Event, SendError, SendFailure};
use hermetic_types::{
    ChatId, ChatKind, DeletedMessage, Incoming, MessageId, Place, Press, Quoted, Sender, UpdateId,
    UserId,
};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use crate::Signal;
use crate::hear::{self, Act, Heard, Listener, Quote, Said};
use crate::leftovers;
use crate::names;
use crate::people;
use crate::rpc::CallError;
use crate::send::{message_id, not_ours};

const LOOKING_UP: Duration = Duration::from_secs(10);
/// What is kept of a message to be quoted: phones show two lines of it.
const QUOTED_LETTERS: usize = 200;

impl Signal {
    /// The event that something from the daemon is, if it is one for us.
    pub(crate) async fn hear(&self, event: &Value) -> Option<Event> {
        let us = self.people.us();
        let listener = Listener {
            us: &us,
            hearing: &self.hearing,
        };
        match hear::hear(event, listener) {
            Heard::Said(said) => self.told(*said).await,
            Heard::Nothing(why) => {
                debug!(why, "an event is not for us");
                None
            }
            Heard::Unreadable { from, why } => {
                let from = from.map(|from| from.name().to_owned());
                warn!(account = %self.account, from, why, "signal-cli could not read a message; if their safety number changed, `signal-cli trust` lets it through");
                None
            }
            Heard::Malformed(why) => {
                warn!(account = %self.account, why, "signal-cli sent a malformed event; skipped");
                None
            }
        }
    }

    async fn told(&self, said: Said) -> Option<Event> {
        let name = names::theirs(said.timestamp, &said.sender);
        let update = UpdateId::new(name.as_str()).ok()?;
        if self.seen.contains(&update) || self.sent.contains(&said.timestamp) {
            debug!(%update, "an event came again, or is our own; skipped");
            return None;
        }
        let sender = Sender {
            id: self.people.user(&said.sender).await?,
            display: said.display,
            is_bot: false,
        };
        let message = MessageId::new(name).ok()?;
        let received_at = self.now();
        match said.act {
            Act::Words {
                text,
                quote,
                mentions_us,
                attachments,
            } => {
                self.remember(&said.place, &message, said.timestamp, &text);
                Some(Event::Message(Incoming {
                    account: self.account.clone(),
                    update,
                    message,
                    place: said.place,
                    sender,
                    text,
                    reply_to: quote.and_then(quoted),
                    mentions_us,
                    attachments,
                    received_at,
                }))
            }
            Act::Reaction { emoji, target } => {
                let data = self.chosen(&emoji, target).await?;
                Some(Event::Press(Press {
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
            Act::Deletion { target } => Some(Event::Deleted(DeletedMessage {
                account: self.account.clone(),
                chat: said.place.chat,
                message: MessageId::new(names::theirs(target, &said.sender)).ok()?,
            })),
        }
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

    fn remember(&self, place: &Place, message: &MessageId, timestamp: u64, text: &str) {
        let beginning = text.chars().take(QUOTED_LETTERS).collect();
        self.texts.note(message.clone(), beginning);
        if place.kind == ChatKind::Dm {
            self.presence.note_unread(&place.chat, timestamp);
        }
    }

    pub(crate) fn note_stored(&self, event: &Event) {
        if let Some(update) = leftovers::update(event) {
            self.seen.note(update.clone(), ());
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.clock.now().millis()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// What is worth knowing once, before anything is heard.
    pub(crate) async fn look_around(&self) -> Result<(), CallError> {
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

    pub(crate) async fn place_of(&self, user: &UserId) -> Result<Place, SendError> {
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
        Ok(Place {
            chat: chat.ok_or_else(|| not_ours("user", number))?,
            kind: ChatKind::Dm,
            thread: None,
        })
    }
}

fn quoted(quote: Quote) -> Option<Quoted> {
    let message = match quote.from_us {
        true => message_id(quote.timestamp),
        false => MessageId::new(names::theirs(quote.timestamp, &quote.author)).ok()?,
    };
    Some(Quoted {
        message,
        from_us: quote.from_us,
        text: quote.text,
    })
}
