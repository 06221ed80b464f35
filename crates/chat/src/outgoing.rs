//! What leaves for a chat.

use bytes::Bytes;
use hermetic_redact::Redacted;
use hermetic_types::MessageId;
use thiserror::Error;

use crate::TextLimit;

/// Text that may leave: secrets have been taken out of it, so it is made of a [`Redacted`] only.
///
/// A type of its own, because a long text leaves in pieces and a piece of it may leave as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingText(String);

/// One answer. Text longer than the platform's limit becomes several messages.
#[derive(Clone, Debug)]
pub struct ChatReply {
    /// In common Markdown; each platform makes its own format of it.
    pub text: OutgoingText,
    pub reply_to: Option<MessageId>,
    /// Rows of buttons under the last message.
    pub buttons: Vec<Vec<ReplyButton>>,
    pub key: Option<SendKey>,
}

/// What tells a platform that two sends are one, where `Capabilities::send_keys` say that it listens: the
/// second makes no second message. It names one message of one delivery, also after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SendKey(String);

/// A button whose press comes back with `data`.
///
/// The data travels through the platform and back, so it is an opaque id and never the decision
/// itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyButton {
    label: String,
    data: String,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum InvalidButton {
    #[error("a button needs a label")]
    NoLabel,
    #[error(
        "button data of {bytes} bytes: expected 1 to {}",
        ReplyButton::DATA_BYTES
    )]
    Data { bytes: usize },
}

/// A file whose bytes somebody read out of a workspace. A chat never opens a path.
#[derive(Clone, Debug)]
pub struct OutgoingFile {
    pub name: String,
    pub bytes: Bytes,
    pub caption: Option<OutgoingText>,
}

impl OutgoingText {
    /// A text of our own, known at compile time and therefore free of secrets.
    pub fn constant(text: &'static str) -> Self {
        Redacted::constant(text).into()
    }

    /// The messages that this text becomes, each within `limit`.
    ///
    /// A piece of a text that went through redaction may leave as well. Nobody outside of this crate
    /// can make one of any other text.
    pub fn split(&self, limit: TextLimit) -> Vec<Self> {
        limit.split(&self.0).into_iter().map(Self).collect()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Redacted<String>> for OutgoingText {
    fn from(text: Redacted<String>) -> Self {
        Self(text.into_inner())
    }
}

impl ChatReply {
    pub fn text(text: OutgoingText) -> Self {
        Self {
            text,
            reply_to: None,
            buttons: Vec::new(),
            key: None,
        }
    }
}

impl SendKey {
    /// `part` of the delivery with this number, within 25 characters, which is what Discord takes.
    pub fn new(delivery: i64, part: usize) -> Self {
        Self(format!("{delivery:x}-{part:x}"))
    }

    /// A key as a platform gave it back, if it can be one of ours.
    pub fn read(text: &str) -> Option<Self> {
        let key = Self(text.to_owned());
        key.delivery().map(|_| key)
    }

    /// The number of the delivery that it names a part of.
    pub fn delivery(&self) -> Option<i64> {
        let (delivery, part) = self.0.split_once('-')?;
        // The part has to be there, too: a platform may hand back keys of other programs, with a
        // dash in them.
        usize::from_str_radix(part, 16).ok()?;
        i64::from_str_radix(delivery, 16).ok()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ReplyButton {
    /// Telegram's bound, the narrowest there is.
    pub const DATA_BYTES: usize = 64;

    pub fn new(label: impl Into<String>, data: impl Into<String>) -> Result<Self, InvalidButton> {
        let (label, data) = (label.into(), data.into());
        if label.trim().is_empty() {
            return Err(InvalidButton::NoLabel);
        }
        if !(1..=Self::DATA_BYTES).contains(&data.len()) {
            return Err(InvalidButton::Data { bytes: data.len() });
        }
        Ok(Self { label, data })
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    pub fn data(&self) -> &str {
        &self.data
    }
}
