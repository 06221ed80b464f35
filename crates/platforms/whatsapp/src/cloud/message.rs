//! What a message says, as far as we listen.

use hermetic_chat::ChatEvent;
use hermetic_types::{
    AccountId, Attachment, AttachmentId, AttachmentKind, ButtonPress, ChatId, ChatKind, ChatPlace,
    DeletedMessage, IncomingMessage, MessageId, QuotedMessage, Sender, Timestamp, UpdateId, UserId,
};
use serde::Deserialize;
use serde_json::Value;

use super::notification::{PostedCloudMessage, RawContact};
use crate::WhatsAppHearing;
use crate::hearing::{is_a_word_of, passed_on};

/// Why a message is not handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotForUs(pub(crate) &'static str);

/// Who sent it and where, by the names under which they are kept.
#[derive(Clone, Debug)]
pub(crate) struct CloudSender {
    pub(crate) user: UserId,
    /// The private chat with them.
    pub(crate) private: ChatId,
}

/// Reads the Cloud API's messages for one account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CloudReader<'a> {
    pub(crate) account: &'a AccountId,
    pub(crate) hearing: &'a WhatsAppHearing,
    pub(crate) now: Timestamp,
}

/// Only the fields used are read, and unknown ones are no error.
#[derive(Debug, Deserialize)]
pub(crate) struct CloudMessage {
    pub(crate) id: MessageId,
    pub(crate) from: Option<String>,
    pub(crate) from_user_id: Option<String>,
    group_id: Option<ChatId>,
    timestamp: Option<String>,
    #[serde(rename = "type", default)]
    kind: String,
    context: Option<RawContext>,
    text: Option<RawText>,
    interactive: Option<RawInteractive>,
    button: Option<RawButton>,
    image: Option<RawMedia>,
    video: Option<RawMedia>,
    audio: Option<RawMedia>,
    document: Option<RawMedia>,
    sticker: Option<RawMedia>,
    location: Option<RawLocation>,
    contacts: Option<Vec<RawCard>>,
    revoke: Option<RawRevoke>,
    edit: Option<RawMessageEdit>,
}

/// Only numbers that are also used in the WhatsApp Business app are told of it.
#[derive(Debug, Deserialize)]
struct RawRevoke {
    original_message_id: MessageId,
}

/// The same numbers are told what a message reads now.
#[derive(Debug, Deserialize)]
struct RawMessageEdit {
    original_message_id: MessageId,
    message: Value,
}

#[derive(Debug, Deserialize)]
struct RawContext {
    id: Option<MessageId>,
    from: Option<String>,
    #[serde(default)]
    forwarded: bool,
    #[serde(default)]
    frequently_forwarded: bool,
}

#[derive(Debug, Deserialize)]
struct RawText {
    body: String,
}

#[derive(Debug, Deserialize)]
struct RawInteractive {
    button_reply: Option<RawChoice>,
    list_reply: Option<RawChoice>,
}

#[derive(Debug, Deserialize)]
struct RawChoice {
    id: String,
}

/// A button of a template, which answers with words.
#[derive(Debug, Deserialize)]
struct RawButton {
    text: String,
}

#[derive(Debug, Deserialize)]
struct RawMedia {
    id: AttachmentId,
    mime_type: Option<String>,
    filename: Option<String>,
    caption: Option<String>,
    file_size: Option<u64>,
    #[serde(default)]
    voice: bool,
}

#[derive(Debug, Deserialize)]
struct RawLocation {
    latitude: f64,
    longitude: f64,
    name: Option<String>,
    address: Option<String>,
}

/// A contact that was sent along.
#[derive(Debug, Deserialize)]
struct RawCard {
    #[serde(default)]
    name: Value,
    #[serde(default)]
    phones: Vec<Value>,
}

impl CloudMessage {
    /// When it was sent; what cannot be read comes first.
    pub(crate) fn seconds(&self) -> i64 {
        self.written().map_or(0, Timestamp::seconds)
    }

    /// When it was sent, where that can be read.
    pub(crate) fn written(&self) -> Option<Timestamp> {
        let seconds = self.timestamp.as_deref()?.parse().ok()?;
        Some(Timestamp::from_seconds(seconds))
    }

    pub(crate) fn is_from(&self, contact: &RawContact) -> bool {
        let same = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
        same(&self.from_user_id, &contact.user_id) || same(&self.from, &contact.wa_id)
    }
}

impl PostedCloudMessage {
    pub(crate) fn update(&self) -> Option<UpdateId> {
        UpdateId::new(self.message.id.as_str()).ok()
    }

    /// The event that this is, or why it is none.
    pub(crate) fn event(
        mut self,
        origin: CloudSender,
        reader: CloudReader<'_>,
    ) -> Result<ChatEvent, NotForUs> {
        let update = self.update().ok_or(NotForUs("it has no name"))?;
        let sender = Sender {
            id: origin.user.clone(),
            display: self.display(),
            is_bot: false,
            roles: Vec::new(),
        };
        // Who changed it is told by the outer message alone: what stands within could name anybody.
        if let Some(edit) = self.message.edit.take() {
            let ChatEvent::Message(message) = self.changed(edit)?.event(origin, reader)? else {
                return Err(NotForUs("no message was changed"));
            };
            return Ok(ChatEvent::Edited(IncomingMessage { update, ..message }));
        }
        let place = self.place(origin.private);
        if let Some(revoked) = self.message.revoke.take() {
            return Ok(ChatEvent::Deleted(DeletedMessage {
                account: reader.account.clone(),
                chat: place.chat,
                message: revoked.original_message_id,
            }));
        }
        let context = self.message.context.take();
        if let Some(pressed) = self.pressed() {
            let message = context.and_then(|context| context.id);
            let message = message.ok_or(NotForUs("a button without a message of ours"))?;
            return Ok(ChatEvent::Press(ButtonPress {
                account: reader.account.clone(),
                query: update.to_string(),
                update,
                place,
                message,
                sender,
                data: pressed,
                received_at: reader.now,
            }));
        }
        let attachments = self.attachments();
        let words = self.words(context.as_ref());
        if words.is_empty() && attachments.is_empty() {
            return Err(NotForUs("it says nothing that we can read"));
        }
        let reply_to = context.and_then(|context| context.quoted(&self.own_number));
        let mentions_us = place.kind == ChatKind::Dm
            || reply_to.as_ref().is_some_and(|quoted| quoted.from_us)
            || self.names_us(&words, reader);
        if let Some(why) = reader.hearing.ignores(&place, mentions_us) {
            return Err(NotForUs(why));
        }
        Ok(ChatEvent::Message(IncomingMessage {
            account: reader.account.clone(),
            update,
            message: self.message.id,
            place,
            sender,
            text: words,
            reply_to,
            mentions_us,
            attachments,
            received_at: reader.now,
        }))
    }

    fn names_us(&self, words: &str, reader: CloudReader<'_>) -> bool {
        is_a_word_of(words, &format!("@{}", self.own_number)) || reader.hearing.names_us(words)
    }

    /// What a message reads now, as if it had been posted so.
    fn changed(mut self, edit: RawMessageEdit) -> Result<Self, NotForUs> {
        let mut message = edit.message;
        if let Some(fields) = message.as_object_mut() {
            fields.insert("id".to_owned(), edit.original_message_id.as_str().into());
        }
        let message = CloudMessage::deserialize(message);
        let message = message.map_err(|_| NotForUs("a change that we cannot read"))?;
        self.message = CloudMessage {
            group_id: self.message.group_id.take(),
            // Nothing is changed within a change.
            edit: None,
            ..message
        };
        Ok(self)
    }

    fn place(&self, private: ChatId) -> ChatPlace {
        let (chat, kind) = match &self.message.group_id {
            Some(group) => (group.clone(), ChatKind::Group),
            None => (private, ChatKind::Dm),
        };
        ChatPlace {
            chat,
            kind,
            thread: None,
        }
    }

    fn pressed(&mut self) -> Option<String> {
        let interactive = self.message.interactive.take()?;
        let choice = interactive.button_reply.or(interactive.list_reply)?;
        Some(choice.id)
    }

    fn words(&mut self, context: Option<&RawContext>) -> String {
        let message = &mut self.message;
        let media = [
            &mut message.image,
            &mut message.video,
            &mut message.document,
            &mut message.audio,
        ];
        let caption = media
            .into_iter()
            .find_map(|media| media.as_mut()?.caption.take());
        let written = message.text.take().map(|text| text.body);
        let words = written
            .or(caption)
            .or_else(|| message.button.take().map(|button| button.text))
            .or_else(|| message.location.as_ref().map(RawLocation::words))
            .or_else(|| message.contacts.as_deref().map(cards))
            .unwrap_or_default();
        let forwarded =
            context.is_some_and(|context| context.forwarded || context.frequently_forwarded);
        match forwarded && !words.is_empty() {
            true => passed_on(&words),
            false => words,
        }
    }

    fn attachments(&self) -> Vec<Attachment> {
        let message = &self.message;
        let audio = message.audio.as_ref();
        let audio_kind = match audio.is_some_and(|audio| audio.voice) {
            true => AttachmentKind::Voice,
            false => AttachmentKind::Audio,
        };
        [
            (message.document.as_ref(), AttachmentKind::Document),
            (message.image.as_ref(), AttachmentKind::Photo),
            (audio, audio_kind),
            (message.video.as_ref(), AttachmentKind::Video),
            (message.sticker.as_ref(), AttachmentKind::Sticker),
        ]
        .into_iter()
        .filter_map(|(media, kind)| media.map(|media| media.attachment(kind)))
        .collect()
    }

    /// What Meta calls the kind of message, for the log.
    pub(crate) fn kind(&self) -> &str {
        &self.message.kind
    }
}

impl RawContext {
    /// Meta names the message that was replied to and does not repeat its words.
    fn quoted(self, own_number: &str) -> Option<QuotedMessage> {
        Some(QuotedMessage {
            message: self.id?,
            from_us: !own_number.is_empty() && self.from.as_deref() == Some(own_number),
            text: String::new(),
        })
    }
}

impl RawMedia {
    fn attachment(&self, kind: AttachmentKind) -> Attachment {
        Attachment {
            id: self.id.clone(),
            kind,
            name: self.filename.clone(),
            mime: self.mime_type.clone(),
            bytes: self.file_size,
        }
    }
}

impl RawLocation {
    fn words(&self) -> String {
        let named = [self.name.as_deref(), self.address.as_deref()];
        let named: Vec<_> = named.into_iter().flatten().collect();
        let at = format!("{}, {}", self.latitude, self.longitude);
        match named.is_empty() {
            true => format!("[a place: {at}]"),
            false => format!("[a place: {at} ({})]", named.join(", ")),
        }
    }
}

/// People whom somebody sent along: whatever their cards say was written by nobody here.
fn cards(cards: &[RawCard]) -> String {
    let card = |card: &RawCard| {
        let name = card.name["formatted_name"].as_str().unwrap_or("somebody");
        let phones = card
            .phones
            .iter()
            .filter_map(|phone| phone["phone"].as_str());
        let phones: Vec<_> = phones.collect();
        format!("{name} {}", phones.join(", ")).trim().to_owned()
    };
    let all: Vec<_> = cards.iter().map(card).collect();
    format!("[contacts: {}]", all.join("; "))
}
