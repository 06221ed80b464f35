//! What the daemon hands over, field by field as it names them.
//!
//! Only the fields used are read, and unknown ones are no error. Parts that could be malformed by
//! themselves are read apart, so that they do not cost the rest.

use hermetic_types::{Attachment, AttachmentId, AttachmentKind};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

#[derive(Deserialize)]
pub(crate) struct RawEvent {
    /// The number of ours that it came to.
    pub(crate) account: Option<String>,
    pub(crate) envelope: Option<RawEnvelope>,
    pub(crate) exception: Option<RawException>,
}

#[derive(Deserialize)]
pub(crate) struct RawException {
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawEnvelope {
    source_number: Option<String>,
    source_uuid: Option<String>,
    source_name: Option<String>,
    pub(crate) data_message: Option<Value>,
    pub(crate) edit_message: Option<RawEdit>,
    pub(crate) sync_message: Option<RawSync>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawSync {
    /// What the owner of the account wrote on another device.
    pub(crate) sent_message: Option<Value>,
}

/// A message as it reads now.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawEdit {
    /// The message that it takes the place of, or the last change of it.
    pub(crate) target_sent_timestamp: u64,
    pub(crate) data_message: Value,
}

/// To whom the owner wrote; nobody where it went to a group.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawDestination {
    destination_number: Option<String>,
    destination_uuid: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawDataMessage {
    pub(crate) timestamp: u64,
    pub(crate) message: Option<String>,
    pub(crate) group_info: Option<RawGroup>,
    pub(crate) mentions: Option<Vec<SignalMention>>,
    attachments: Option<Vec<Value>>,
    pub(crate) quote: Option<Value>,
    pub(crate) reaction: Option<RawReaction>,
    pub(crate) remote_delete: Option<RawDelete>,
    /// A reply to a story.
    pub(crate) story_context: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawGroup {
    pub(crate) group_id: String,
}

#[derive(Deserialize)]
pub(crate) struct SignalMention {
    number: Option<String>,
    uuid: Option<String>,
    pub(crate) start: usize,
    pub(crate) length: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawQuote {
    pub(crate) id: u64,
    author_number: Option<String>,
    author_uuid: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) mentions: Option<Vec<SignalMention>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawReaction {
    pub(crate) emoji: String,
    target_author_number: Option<String>,
    target_author_uuid: Option<String>,
    pub(crate) target_sent_timestamp: u64,
    #[serde(default)]
    pub(crate) is_remove: bool,
}

#[derive(Deserialize)]
pub(crate) struct RawDelete {
    pub(crate) timestamp: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignalAttachment {
    id: AttachmentId,
    content_type: Option<String>,
    filename: Option<String>,
    size: Option<u64>,
    /// Told since the summer of 2026.
    #[serde(alias = "voiceNote")]
    is_voice_note: Option<bool>,
}

/// Somebody, as Signal names them: by an id that stays, and by a number that may be hidden or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignalAddress {
    pub(crate) uuid: Option<String>,
    pub(crate) number: Option<String>,
}

impl SignalAddress {
    /// Nobody, if neither name is one.
    pub(crate) fn new(uuid: Option<String>, number: Option<String>) -> Option<Self> {
        let uuid = uuid.map(|uuid| uuid.to_ascii_lowercase());
        let address = Self {
            uuid: uuid.filter(|uuid| is_uuid(uuid)),
            number: number.filter(|number| is_number(number)),
        };
        (address.uuid.is_some() || address.number.is_some()).then_some(address)
    }

    /// The name that stays, if there is one.
    pub(crate) fn name(&self) -> &str {
        let name = self.uuid.as_deref().or(self.number.as_deref());
        name.unwrap_or_default()
    }

    /// Whether both are the same person, as far as it can be seen.
    pub(crate) fn is(&self, other: &Self) -> bool {
        // A number can go over to somebody else and an id cannot: where both have one, only the ids
        // count.
        match (&self.uuid, &other.uuid) {
            (Some(one), Some(two)) => one == two,
            _ => self.number.is_some() && self.number == other.number,
        }
    }
}

/// 8-4-4-4-12 hexadecimal digits.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A number with its country, as in `+4915112345678`.
pub(crate) fn is_number(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| {
        (5..=15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

impl RawEnvelope {
    pub(crate) fn source(&mut self) -> Option<(SignalAddress, String)> {
        let address = SignalAddress::new(self.source_uuid.take(), self.source_number.take())?;
        Some((address, self.source_name.take().unwrap_or_default()))
    }
}

impl RawDestination {
    pub(crate) fn address(self) -> Option<SignalAddress> {
        SignalAddress::new(self.destination_uuid, self.destination_number)
    }
}

impl SignalMention {
    pub(crate) fn address(&self) -> Option<SignalAddress> {
        SignalAddress::new(self.uuid.clone(), self.number.clone())
    }
}

impl RawQuote {
    pub(crate) fn author(&self) -> Option<SignalAddress> {
        SignalAddress::new(self.author_uuid.clone(), self.author_number.clone())
    }
}

impl RawReaction {
    pub(crate) fn target(&self) -> Option<SignalAddress> {
        SignalAddress::new(
            self.target_author_uuid.clone(),
            self.target_author_number.clone(),
        )
    }
}

impl RawDataMessage {
    /// Those that can be read; one without an id was not fetched by the daemon.
    pub(crate) fn attachments(&self) -> Vec<Attachment> {
        let raw = self.attachments.iter().flatten();
        raw.filter_map(|raw| SignalAttachment::deserialize(raw).ok())
            .map(SignalAttachment::attachment)
            .collect()
    }
}

impl SignalAttachment {
    fn attachment(self) -> Attachment {
        let mime = self.content_type.as_deref().unwrap_or_default();
        let kind = match mime.split('/').next() {
            Some("image") => AttachmentKind::Photo,
            // A recording has no name, and what is attached as a file has one.
            Some("audio") if self.is_voice_note.unwrap_or(self.filename.is_none()) => {
                AttachmentKind::Voice
            }
            Some("audio") => AttachmentKind::Audio,
            Some("video") => AttachmentKind::Video,
            _ => AttachmentKind::Document,
        };
        Attachment {
            id: self.id,
            kind,
            name: self.filename,
            mime: self.content_type,
            bytes: self.size,
        }
    }
}
