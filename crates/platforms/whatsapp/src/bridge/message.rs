//! What the bridge hands over, as far as we listen.

use hermetic_chat::ChatEvent;
use hermetic_types::{
    AccountId, Attachment, AttachmentId, AttachmentKind, ChatId, ChatKind, ChatPlace,
    IncomingMessage, MessageId, QuotedMessage, Sender, Timestamp, UpdateId, UserId,
};
use serde::Deserialize;

use crate::WhatsAppHearing;
use crate::hearing::passed_on;
use crate::person::PhoneNumber;

/// Reads the bridge's messages for one account.
#[derive(Clone, Copy, Debug)]
pub(super) struct BridgeReader<'a> {
    pub(super) account: &'a AccountId,
    pub(super) hearing: &'a WhatsAppHearing,
    pub(super) now: Timestamp,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BridgeMessage {
    pub(super) message_id: MessageId,
    chat_id: String,
    sender_id: String,
    #[serde(default)]
    sender_name: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    media_type: String,
    #[serde(default)]
    mime: String,
    #[serde(default)]
    file_name: String,
    #[serde(default)]
    media_urls: Vec<String>,
    #[serde(default)]
    mentioned_ids: Vec<String>,
    quoted_message_id: Option<MessageId>,
    quoted_participant: Option<String>,
    quoted_text: Option<String>,
    #[serde(default)]
    bot_ids: Vec<String>,
    /// Not told by every bridge.
    #[serde(default)]
    is_forwarded: bool,
}

/// Somebody's address at WhatsApp: a number, or an id of its own where the number is hidden. The two
/// are told apart by their domain, and an id of one kind is never taken for one of the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Jid {
    user: String,
    domain: JidDomain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JidDomain {
    Number,
    Hidden,
}

impl Jid {
    /// `4917…:12@s.whatsapp.net` is the same person on their twelfth device.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (user, domain) = text.rsplit_once('@')?;
        // The bridge writes the colon of its own addresses as another `@`.
        let user = user.split([':', '@']).next()?;
        let domain = match domain {
            "s.whatsapp.net" | "c.us" => JidDomain::Number,
            "lid" => JidDomain::Hidden,
            _ => return None,
        };
        PhoneNumber::read(user)?;
        Some(Self {
            user: user.to_owned(),
            domain,
        })
    }

    /// The address of somebody who is listed.
    pub(super) fn of(user: &UserId) -> Option<Self> {
        let text = user.as_str();
        Self::read(text).or_else(|| Self::read(&format!("{text}@s.whatsapp.net")))
    }

    /// By which an allowlist names them.
    fn user(&self) -> Option<UserId> {
        UserId::new(match self.domain {
            JidDomain::Number => self.user.clone(),
            JidDomain::Hidden => format!("{}@lid", self.user),
        })
        .ok()
    }

    pub(super) fn chat(&self) -> Option<ChatId> {
        let domain = match self.domain {
            JidDomain::Number => "s.whatsapp.net",
            JidDomain::Hidden => "lid",
        };
        ChatId::new(format!("{}@{domain}", self.user)).ok()
    }
}

impl BridgeMessage {
    /// The event that this is, or why it is none.
    pub(super) fn event(self, reader: BridgeReader<'_>) -> Result<ChatEvent, &'static str> {
        let update = UpdateId::new(self.message_id.as_str()).map_err(|_| "it has no name")?;
        let from = Jid::read(&self.sender_id).ok_or("nobody is named as its sender")?;
        let id = from.user().ok_or("nobody is named as its sender")?;
        let place = self
            .place()
            .ok_or("it was said nowhere that we can answer")?;
        if matches!(self.media_type.as_str(), "reaction" | "poll_update") {
            return Err("it says nothing");
        }
        let attachments = self.attachments();
        let text = self.words(!attachments.is_empty());
        if text.is_empty() && attachments.is_empty() {
            return Err("it says nothing");
        }
        let reply_to = self.quoted();
        let mentions_us = place.kind == ChatKind::Dm
            || reply_to.as_ref().is_some_and(|quoted| quoted.from_us)
            || self.mentioned_ids.iter().any(|id| self.is_us(id))
            || reader.hearing.names_us(&text);
        if let Some(why) = reader.hearing.ignores(&place, mentions_us) {
            return Err(why);
        }
        Ok(ChatEvent::Message(IncomingMessage {
            account: reader.account.clone(),
            update,
            place,
            sender: Sender {
                id,
                display: self.sender_name,
                is_bot: false,
                roles: Vec::new(),
            },
            message: self.message_id,
            text,
            reply_to,
            mentions_us,
            attachments,
            received_at: reader.now,
        }))
    }

    fn place(&self) -> Option<ChatPlace> {
        let (chat, kind) = match self.chat_id.ends_with("@g.us") {
            true => (ChatId::new(self.chat_id.clone()).ok()?, ChatKind::Group),
            false => (Jid::read(&self.chat_id)?.chat()?, ChatKind::Dm),
        };
        Some(ChatPlace {
            chat,
            kind,
            thread: None,
        })
    }

    fn words(&self, has_files: bool) -> String {
        // What the bridge writes where the person wrote nothing.
        let filler = format!("[{} received]", self.media_type);
        if has_files && (self.body == filler || self.body == "[Sticker]") {
            return String::new();
        }
        match self.is_forwarded && !self.body.is_empty() {
            true => passed_on(&self.body),
            false => self.body.clone(),
        }
    }

    fn quoted(&self) -> Option<QuotedMessage> {
        let participant = self.quoted_participant.as_deref().unwrap_or_default();
        Some(QuotedMessage {
            message: self.quoted_message_id.clone()?,
            from_us: self.is_us(participant),
            text: self.quoted_text.clone().unwrap_or_default(),
        })
    }

    fn is_us(&self, address: &str) -> bool {
        let somebody = Jid::read(address);
        let mut ours = self.bot_ids.iter().map(|own| Jid::read(own));
        somebody.is_some() && ours.any(|own| own == somebody)
    }

    fn attachments(&self) -> Vec<Attachment> {
        let kind = match self.media_type.as_str() {
            "image" => AttachmentKind::Photo,
            "video" | "gif" => AttachmentKind::Video,
            "ptt" => AttachmentKind::Voice,
            "audio" => AttachmentKind::Audio,
            "sticker" => AttachmentKind::Sticker,
            _ => AttachmentKind::Document,
        };
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let paths = self.media_urls.iter();
        paths
            .filter_map(|path| AttachmentId::new(path.clone()).ok())
            .map(|id| Attachment {
                id,
                kind,
                name: some(&self.file_name),
                mime: some(&self.mime),
                bytes: None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_id_is_never_taken_for_a_number() {
        let user = |text| {
            Jid::read(text)
                .and_then(|jid| jid.user())
                .map(|user| user.to_string())
        };
        let number = Some("491701234567".to_owned());
        assert_eq!(user("491701234567@s.whatsapp.net"), number);
        assert_eq!(user("491701234567:12@s.whatsapp.net"), number);
        assert_eq!(user("491701234567@12@s.whatsapp.net"), number);
        assert_eq!(
            user("491701234567@lid").as_deref(),
            Some("491701234567@lid")
        );
        for nobody in [
            "",
            "alice",
            "@lid",
            "491701234567",
            "491701234567@g.us",
            "a@lid",
            "1@evil@x",
        ] {
            assert_eq!(user(nobody), None, "{nobody:?}");
        }
        let listed = UserId::new("491701234567").unwrap();
        let chat = Jid::of(&listed).and_then(|jid| jid.chat());
        assert_eq!(chat.unwrap().as_str(), "491701234567@s.whatsapp.net");
    }
}
