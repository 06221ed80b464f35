//! Replies out.
//!
//! Each event is sent under a transaction's id, which is made of the delivery's key: the homeserver makes
//! one event of any number of requests with the same id. So what failed on the way is simply sent again.

use std::borrow::Cow;

use hermetic_chat::{
    AdapterState, ChatReply, OutgoingText, ReactionChoices, ReplyButton, SaveDurability, SendError,
    SendFailure, SendKey, TextLimit,
};
use hermetic_types::{ChatId, ChatKind, ChatPlace, MessageId, UserId};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tracing::{debug, warn};

use crate::choices::KeptQuestion;
use crate::config::EncryptionMode;
use crate::content;
use crate::names::{event_of, is_user, not_ours, room_of};
use crate::rooms::RoomFacts;
use crate::session::SessionError;
use crate::wire::{MatrixCallError, MatrixRoute};
use crate::{MatrixAdapter, UNSPOKEN};

/// A longer answer belongs in a file.
const PARTS: usize = 40;
/// Where the salt of transactions is kept.
const SALT_KEY: &str = "transaction-salt";

/// All we need of what the homeserver made; a strict reading would turn an arrived message into a failed
/// one.
#[derive(Deserialize)]
struct RawSent {
    event_id: String,
}

#[derive(Deserialize)]
struct RawRoom {
    room_id: String,
}

impl MatrixAdapter {
    pub(crate) async fn send_reply(
        &self,
        place: &ChatPlace,
        reply: &ChatReply,
    ) -> Result<Vec<MessageId>, SendError> {
        let message = self.capabilities.text;
        let limit = PARTS * message.length / 2;
        if message.unit.count(reply.text.as_str()) > limit {
            return Err(too_long(limit).into());
        }
        let choices = ReactionChoices::of(&reply.buttons);
        // The words that say what reactions mean have to fit as well.
        let words = choices.as_ref().map_or("", |(_, words)| words);
        let parts = reply
            .text
            .split(TextLimit::bytes(message.length - words.len()));
        let last = parts.len().checked_sub(1).ok_or(SendFailure::Empty)?;
        let room = self.speakable(place).await?;
        let mut sent = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let choices = choices.as_ref().filter(|_| index == last);
            let words = choices.map_or("", |(_, words)| words);
            let mut content = content::text(&format!("{}{words}", part.as_str()));
            let reply_to = reply.reply_to.as_ref().filter(|_| index == 0);
            self.relate(&mut content, place, reply_to)?;
            let transaction = self.transaction(reply.key.as_ref(), index).await?;
            let sending = self.send_question(room, place, &content, &transaction, choices);
            match sending.await {
                Ok(id) => sent.push(id),
                Err(failure) => return Err(SendError { sent, failure }),
            }
        }
        self.show_answered(room).await;
        Ok(sent)
    }

    async fn send_question(
        &self,
        room: &str,
        place: &ChatPlace,
        content: &Value,
        transaction: &str,
        choices: Option<&(ReactionChoices, String)>,
    ) -> Result<MessageId, SendFailure> {
        let Some((choices, _)) = choices else {
            return self
                .send_event(room, "m.room.message", content, transaction)
                .await;
        };
        // Until what its reactions mean is kept.
        let asking = self.choices.ask().await;
        let sent = self
            .send_event(room, "m.room.message", content, transaction)
            .await?;
        let question = KeptQuestion {
            room: room.to_owned(),
            thread: place
                .thread
                .as_ref()
                .map(|thread| thread.as_str().to_owned()),
            choices: choices.clone(),
            asked_at: self.clock.now(),
        };
        self.choices.keep(sent.as_str(), &question).await;
        drop(asking);
        self.offer_reactions(room, sent.as_str(), choices).await;
        Ok(sent)
    }

    /// Puts the reactions below a question, so that answering is one touch. As far as there is room: they
    /// can be given without.
    async fn offer_reactions(&self, room: &str, event: &str, choices: &ReactionChoices) {
        for emoji in choices.emojis() {
            if self.budget.spare().is_err() {
                return;
            }
            let content = json!({ "m.relates_to": {
                "rel_type": "m.annotation", "event_id": event, "key": emoji,
            } });
            let Ok(transaction) = random() else { return };
            let route = MatrixRoute::put(&["rooms", room, "send", "m.reaction", &transaction]);
            if let Err(error) = self.call::<Value>(&route, |r| r.json(&content)).await {
                debug!(%error, "a reaction could not be offered");
                self.note_throttling(&error);
                return;
            }
        }
    }

    pub(crate) async fn send_event(
        &self,
        room: &str,
        kind: &str,
        content: &Value,
        transaction: &str,
    ) -> Result<MessageId, SendFailure> {
        let (kind, content) = self.sealed(room, kind, content).await?;
        self.budget.spend();
        let route = MatrixRoute::put(&["rooms", room, "send", kind, transaction]);
        let sent = self
            .patiently::<RawSent>(&route, |r| r.json(&*content))
            .await;
        let sent = sent.inspect_err(|error| self.note_throttling(error))?;
        let garbled = |_| SendFailure::from(MatrixCallError::Garbled { status: 200 });
        MessageId::new(sent.event_id).map_err(garbled)
    }

    /// Puts a message into its thread and below what it answers. Who is answered is called.
    pub(crate) fn relate(
        &self,
        content: &mut Value,
        place: &ChatPlace,
        reply_to: Option<&MessageId>,
    ) -> Result<(), SendFailure> {
        let reply_to = reply_to.map(event_of).transpose()?;
        let author = reply_to.and_then(|event| self.author(event));
        let author = author.filter(|_| place.kind != ChatKind::Dm);
        content::relate(content, place, reply_to, author.as_deref());
        if let Some(root) = &place.thread {
            self.rooms.note_thread(root.as_str(), true);
        }
        Ok(())
    }

    pub(crate) async fn edit_message(
        &self,
        place: &ChatPlace,
        message: &MessageId,
        text: &OutgoingText,
        buttons: &[Vec<ReplyButton>],
    ) -> Result<(), SendError> {
        let content = self.edited(message, text, buttons)?;
        let room = self.speakable(place).await?;
        let transaction = random()?;
        self.send_event(room, "m.room.message", &content, &transaction)
            .await?;
        Ok(())
    }

    /// Neither waits nor tries again, and leaves the homeserver's patience for what has to be said.
    pub(crate) async fn refresh_message(
        &self,
        place: &ChatPlace,
        message: &MessageId,
        text: &OutgoingText,
    ) -> Result<(), SendError> {
        let content = self.edited(message, text, &[])?;
        let room = self.speakable(place).await?;
        let wait = self.budget.spare();
        wait.map_err(|retry_after| SendFailure::Throttled { retry_after })?;
        let (kind, content) = self.sealed(room, "m.room.message", &content).await?;
        let route = MatrixRoute::put(&["rooms", room, "send", kind, &random()?]);
        let sent = self.call::<RawSent>(&route, |r| r.json(&*content)).await;
        sent.map(drop)
            .inspect_err(|error| self.note_throttling(error))
            .map_err(|error| SendFailure::from(error).into())
    }

    fn edited(
        &self,
        message: &MessageId,
        text: &OutgoingText,
        buttons: &[Vec<ReplyButton>],
    ) -> Result<Value, SendFailure> {
        let words = ReactionChoices::of(buttons).map_or(String::new(), |(_, words)| words);
        let text = format!("{}{words}", text.as_str());
        if !self.capabilities.text.fits(&text) {
            return Err(too_long(self.capabilities.text.length));
        }
        if text.trim().is_empty() {
            return Err(SendFailure::Empty);
        }
        Ok(content::edit(event_of(message)?, &content::text(&text)))
    }

    /// The room of a place, if we may say something there.
    pub(crate) async fn speakable<'a>(&self, place: &'a ChatPlace) -> Result<&'a str, SendFailure> {
        let room = room_of(place)?;
        let is_encrypted = self.is_encrypted(room).await?;
        if self.encryption.speaks(is_encrypted) {
            return Ok(room);
        }
        let description = match is_encrypted {
            true => format!("the room is end-to-end encrypted and nothing was sent: {UNSPOKEN}"),
            false => "the room is not encrypted and MATRIX_E2EE_MODE is required; nothing was sent"
                .to_owned(),
        };
        Err(SendFailure::Refused { description })
    }

    /// An event as it leaves: sealed, where the room is encrypted. Reactions never are, in any app.
    async fn sealed<'a>(
        &self,
        room: &str,
        kind: &'a str,
        content: &'a Value,
    ) -> Result<(&'a str, Cow<'a, Value>), SendFailure> {
        if kind != "m.room.message" || !self.is_encrypted(room).await? {
            return Ok((kind, Cow::Borrowed(content)));
        }
        let sealed = self.seal(room, kind, content).await?;
        Ok(("m.room.encrypted", Cow::Owned(sealed)))
    }

    pub(crate) async fn is_encrypted(&self, room: &str) -> Result<bool, SendFailure> {
        self.rooms
            .load()
            .await
            .map_err(|error| SendFailure::NotSent(Box::new(error)))?;
        match self.rooms.facts(room) {
            Some(facts) => Ok(facts.is_encrypted),
            None => self.ask_if_encrypted(room).await,
        }
    }

    async fn ask_if_encrypted(&self, room: &str) -> Result<bool, SendFailure> {
        let route = MatrixRoute::get(&["rooms", room, "state", "m.room.encryption", ""]);
        match self.patiently::<Value>(&route, |r| r).await {
            Ok(_) => Ok(true),
            Err(SessionError::Call(MatrixCallError::Refused { status: 404, .. })) => Ok(false),
            Err(error) => match SendFailure::from(error) {
                // Whatever became of the question, the message certainly did not leave.
                SendFailure::Uncertain(error) => Err(SendFailure::NotSent(error)),
                failure => Err(failure),
            },
        }
    }

    /// A room of two in which we can speak; one is opened where there is none.
    pub(crate) async fn open_private(&self, user: &UserId) -> Result<ChatPlace, SendError> {
        let name = user.as_str();
        if !is_user(name) {
            return Err(not_ours("user", name).into());
        }
        let failed = |error| SendFailure::NotSent(Box::new(error));
        self.rooms.load().await.map_err(failed)?;
        let _one_at_a_time = self.opening.lock().await;
        let room = match self.rooms.private_with(name, self.encryption) {
            Some(room) if self.is_alone_with(&room, name).await? => room,
            _ => self.create_private(name).await?,
        };
        Ok(ChatPlace {
            chat: ChatId::new(room)
                .map_err(|_| SendFailure::from(MatrixCallError::Garbled { status: 200 }))?,
            kind: ChatKind::Dm,
            thread: None,
        })
    }

    /// Whether nobody else reads a room of theirs now. What is said in private is asked about first: somebody
    /// may have come, or taken their place.
    async fn is_alone_with(&self, room: &str, user: &str) -> Result<bool, SendFailure> {
        let route = MatrixRoute::get(&["rooms", room, "joined_members"]);
        let answer = match self.patiently::<Value>(&route, |r| r).await {
            Ok(answer) => answer,
            // We are not in it any more.
            Err(SessionError::Call(MatrixCallError::Refused {
                status: 403 | 404, ..
            })) => return Ok(false),
            Err(error) => {
                return Err(match SendFailure::from(error) {
                    SendFailure::Uncertain(error) => SendFailure::NotSent(error),
                    failure => failure,
                });
            }
        };
        let us = self.me.get();
        let joined = answer.get("joined").and_then(Value::as_object);
        let others = joined.into_iter().flatten().map(|(member, _)| member);
        let mut others = others.filter(|member| Some(*member) != us);
        // Whoever was invited and has not come reads it when they do.
        Ok(others.all(|member| member == user))
    }

    async fn create_private(&self, user: &str) -> Result<String, SendFailure> {
        let mut body = json!({
            "preset": "trusted_private_chat", "is_direct": true, "invite": [user],
        });
        let is_encrypted = self.encryption != EncryptionMode::Off;
        if is_encrypted {
            body["initial_state"] = json!([{ "type": "m.room.encryption", "state_key": "",
                "content": { "algorithm": "m.megolm.v1.aes-sha2" } }]);
        }
        let route = MatrixRoute::post(&["createRoom"]);
        // Once: a second request would open a second room.
        let room = self.call::<RawRoom>(&route, |r| r.json(&body)).await;
        let room = room.map_err(|error| match SendFailure::from(error) {
            SendFailure::Uncertain(error) => SendFailure::NotSent(error),
            failure => failure,
        })?;
        let facts = RoomFacts {
            joined: 1,
            invited: 1,
            with: Some(user.to_owned()),
            is_encrypted,
            ..RoomFacts::default()
        };
        if let Err(error) = self
            .rooms
            .note(&room.room_id, facts, SaveDurability::OnDisk)
            .await
        {
            warn!(account = %self.account, %error, "a private room will not be known after a restart");
        }
        Ok(room.room_id)
    }

    pub(crate) fn note_throttling(&self, error: &SessionError) {
        if let Some(MatrixCallError::Throttled { retry_after }) = error.call() {
            self.budget.exhausted(*retry_after);
        }
    }

    /// The same for the same part of the same delivery, and for no other: neither another part nor the
    /// same number in a store that was begun anew, whose message the homeserver would take for sent.
    pub(crate) async fn transaction(
        &self,
        key: Option<&SendKey>,
        part: usize,
    ) -> Result<String, SendFailure> {
        let Some(key) = key else {
            return random();
        };
        let salt = self.salt.get_or_try_init(|| salt(&*self.store)).await?;
        let hash = Sha256::digest(format!("{salt}:{}:{part}", key.as_str()));
        let name = hash.iter().take(16).map(|byte| format!("{byte:02x}"));
        Ok(name.collect())
    }
}

/// For what is sent once, however often it is tried.
pub(crate) fn random() -> Result<String, SendFailure> {
    let failed = |error| SendFailure::NotSent(Box::new(error));
    let (one, two) = (
        getrandom::u64().map_err(failed)?,
        getrandom::u64().map_err(failed)?,
    );
    Ok(format!("{one:016x}{two:016x}"))
}

async fn salt(store: &dyn AdapterState) -> Result<String, SendFailure> {
    let failed = |error| SendFailure::NotSent(Box::new(error));
    if let Some(kept) = store.load(SALT_KEY).await.map_err(failed)? {
        return Ok(kept);
    }
    let salt = random()?;
    // A name that a restart does not make again would show a message twice.
    let saved = store.save(SALT_KEY, &salt, SaveDurability::OnDisk).await;
    saved.map_err(failed)?;
    Ok(salt)
}

fn too_long(limit: usize) -> SendFailure {
    SendFailure::TooLong {
        limit,
        unit: "bytes",
    }
}
