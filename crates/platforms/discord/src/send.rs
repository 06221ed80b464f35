//! Replies out.

use hermetic_chat::{
    AdapterState, ChatReply, OutgoingText, ReplyButton, SaveDurability, SendError, SendFailure,
    SendKey,
};
use hermetic_types::{ChatKind, ChatPlace, MessageId, UserId};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::dialect::to_dialect;
use crate::requests::{CreateMessage, EditMessage, MessageReference, components};
use crate::route::ApiRoute;
use crate::snowflake::Snowflake;
use crate::threads::{SendTarget, snowflake};
use crate::{DiscordAdapter, MESSAGE};

/// A longer answer belongs in a file.
const PARTS: usize = 40;
/// What Discord takes as a nonce.
const NONCE_CHARACTERS: usize = 25;
/// Where the salt of nonces is kept.
const SALT_KEY: &str = "nonce-salt";

/// All we need of the message Discord made; a strict reading would turn an arrived message into a
/// failed one.
#[derive(Deserialize)]
pub(crate) struct DiscordSent {
    pub(crate) id: Snowflake,
}

impl DiscordAdapter {
    pub(crate) async fn send_reply(
        &self,
        place: &ChatPlace,
        reply: &ChatReply,
    ) -> Result<Vec<MessageId>, SendError> {
        let limit = PARTS * MESSAGE.length / 2;
        if MESSAGE.unit.count(reply.text.as_str()) > limit {
            return Err(too_long(limit).into());
        }
        let parts = reply.text.split(MESSAGE);
        let last = parts.len().checked_sub(1).ok_or(SendFailure::Empty)?;
        let target = self.target(place).await?;
        let mut sent = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let mut message = CreateMessage::new(formatted(part));
            if index == 0 {
                message.message_reference = self.reference(place, target, reply.reply_to.as_ref());
            }
            if index == last {
                message.components = components(&reply.buttons);
            }
            // With the same nonce a second try makes no second message, which is what makes it safe
            // to try after a timeout.
            if let Some(key) = &reply.key {
                message.nonce = Some(self.nonce(key, index).await?);
                message.enforce_nonce = true;
            }
            match self.create_message(target.channel, &message).await {
                Ok(id) => sent.push(id),
                Err(failure) => return Err(SendError { sent, failure }),
            }
        }
        Ok(sent)
    }

    async fn create_message(
        &self,
        channel: Snowflake,
        message: &CreateMessage,
    ) -> Result<MessageId, SendFailure> {
        let route = ApiRoute::post("/channels/{}/messages", &[&channel]);
        let sent: DiscordSent = self.wire.patiently(&route, |r| r.json(message)).await?;
        Ok(sent.id.into())
    }

    /// What a message shows as replied to. Under the message that a thread hangs under, everything is a
    /// reply to it; and a command was never a message.
    fn reference(
        &self,
        place: &ChatPlace,
        target: SendTarget,
        reply_to: Option<&MessageId>,
    ) -> Option<MessageReference> {
        let to = Snowflake::parse(reply_to?.as_str())?;
        let needless = target.thread == Some(to) || self.interactions.knows(to);
        let elsewhere = place.thread.is_some() && target.thread.is_none() && {
            let root = place.thread.as_ref().map(|id| id.as_str());
            root != Some(to.to_string().as_str())
        };
        (!needless && !elsewhere).then(|| MessageReference::to(to))
    }

    pub(crate) async fn edit_message(
        &self,
        place: &ChatPlace,
        message: &MessageId,
        text: &OutgoingText,
        buttons: &[Vec<ReplyButton>],
    ) -> Result<(), SendError> {
        if !MESSAGE.fits(text.as_str()) {
            return Err(too_long(MESSAGE.length).into());
        }
        let channel = self.target(place).await?.channel;
        let route = edit_route(channel, message)?;
        let body = EditMessage::new(formatted(text), Some(components(buttons)));
        let edited = self
            .wire
            .patiently::<Value>(&route, |r| r.json(&body))
            .await;
        edited
            .map(drop)
            .map_err(|error| SendFailure::from(error).into())
    }

    /// As it is: half a sentence seldom is good Markdown. Neither waits nor tries again.
    pub(crate) async fn refresh_message(
        &self,
        place: &ChatPlace,
        message: &MessageId,
        text: &OutgoingText,
    ) -> Result<(), SendError> {
        let channel = self.target(place).await?.channel;
        let route = edit_route(channel, message)?;
        let body = EditMessage::new(text.as_str().to_owned(), None);
        let edited = self.wire.call::<Value>(&route, |r| r.json(&body)).await;
        edited
            .map(drop)
            .map_err(|error| SendFailure::from(error).into())
    }

    pub(crate) async fn show_typing(&self, place: &ChatPlace) -> Result<(), SendError> {
        let channel = self.target(place).await?.channel;
        let route = ApiRoute::post("/channels/{}/typing", &[&channel]);
        // Worth nothing late: no waiting, no second try.
        let shown = self.wire.call::<Value>(&route, |r| r).await;
        shown
            .map(drop)
            .map_err(|error| SendFailure::from(error).into())
    }

    /// Opening the private channel with somebody twice opens one.
    pub(crate) async fn open_private(&self, user: &UserId) -> Result<ChatPlace, SendError> {
        let recipient = snowflake("user", user.as_str())?;
        let route = ApiRoute::post("/users/@me/channels", &[]);
        let body = json!({ "recipient_id": recipient });
        let opened = self
            .wire
            .patiently::<DiscordSent>(&route, |r| r.json(&body))
            .await;
        let channel = opened.map_err(SendFailure::from)?.id;
        Ok(ChatPlace {
            chat: channel.into(),
            kind: ChatKind::Dm,
            thread: None,
        })
    }

    /// The same for the same part of the same delivery, and for no other: neither another part nor the
    /// same number in a store that was begun anew, whose message Discord would take for sent.
    async fn nonce(&self, key: &SendKey, part: usize) -> Result<String, SendFailure> {
        let salt = self.salt.get_or_try_init(|| salt(&*self.store)).await?;
        let hash = Sha256::digest(format!("{salt}:{}:{part}", key.as_str()));
        let mut nonce: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        nonce.truncate(NONCE_CHARACTERS);
        Ok(nonce)
    }
}

async fn salt(store: &dyn AdapterState) -> Result<String, SendFailure> {
    let failed = |error| SendFailure::NotSent(Box::new(error));
    if let Some(kept) = store.load(SALT_KEY).await.map_err(failed)? {
        return Ok(kept);
    }
    let random = getrandom::u64().map_err(|error| SendFailure::NotSent(Box::new(error)))?;
    let salt = format!("{random:x}");
    // A nonce that a restart does not make again would show a message twice.
    let saved = store.save(SALT_KEY, &salt, SaveDurability::OnDisk).await;
    saved.map_err(failed)?;
    Ok(salt)
}

/// In Discord's dialect, or as it is where that would not fit.
fn formatted(part: &OutgoingText) -> String {
    let formatted = to_dialect(part.as_str());
    if MESSAGE.fits(&formatted) && !formatted.trim().is_empty() {
        formatted
    } else {
        part.as_str().to_owned()
    }
}

fn edit_route(channel: Snowflake, message: &MessageId) -> Result<ApiRoute, SendFailure> {
    let message = snowflake("message", message.as_str())?;
    Ok(ApiRoute::patch(
        "/channels/{}/messages/{}",
        &[&channel, &message],
    ))
}

fn too_long(limit: usize) -> SendFailure {
    SendFailure::TooLong {
        limit,
        unit: MESSAGE.unit.name(),
    }
}
