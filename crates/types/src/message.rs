//! What somebody said in a chat, as every platform is heard by us.
//!
//! All of it comes from outside: nothing here is trusted until `hermetic-access` made an
//! `Admitted` of it.

use serde::{Deserialize, Serialize};

use crate::{
    AccountId, AttachmentId, ChatId, MessageId, Platform, RoleId, ThreadId, Timestamp, UpdateId,
    UserId, rfc3339,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncomingMessage {
    /// The bot it was said to.
    #[serde(alias = "platform")]
    pub account: AccountId,
    /// Storing the same one twice must not answer twice.
    pub update: UpdateId,
    pub message: MessageId,
    pub place: ChatPlace,
    pub sender: Sender,
    pub text: String,
    pub reply_to: Option<QuotedMessage>,
    /// By name, by a reply to us, or by a command meant for us.
    pub mentions_us: bool,
    pub attachments: Vec<Attachment>,
    #[serde(with = "rfc3339")]
    pub received_at: Timestamp,
}

/// A button under one of our messages was pressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ButtonPress {
    pub account: AccountId,
    pub update: UpdateId,
    /// What the platform wants back with the answer.
    pub query: String,
    pub place: ChatPlace,
    /// The message the button hangs under.
    pub message: MessageId,
    pub sender: Sender,
    /// As it came back: whoever acts on it looks it up and checks that it is still open.
    pub data: String,
    #[serde(with = "rfc3339")]
    pub received_at: Timestamp,
}

/// A message was deleted by whoever wrote it, or by whoever may delete it there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedMessage {
    pub account: AccountId,
    pub chat: ChatId,
    pub message: MessageId,
}

/// Where something was said, and where an answer goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChatPlace {
    pub chat: ChatId,
    pub kind: ChatKind,
    pub thread: Option<ThreadId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatKind {
    /// One person and us.
    Dm,
    Group,
    Channel,
    Thread,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    pub id: UserId,
    /// What they call themselves. Never compared with anything.
    pub display: String,
    pub is_bot: bool,
    /// What they were made in the place they speak in, where the platform has such a thing and says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleId>,
}

/// The message that was replied to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotedMessage {
    pub message: MessageId,
    pub from_us: bool,
    pub text: String,
}

/// A file that came along; its bytes stay with the platform until somebody asks for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub id: AttachmentId,
    pub kind: AttachmentKind,
    /// As the sender spelled it: not a path, and not to be used as one.
    pub name: Option<String>,
    pub mime: Option<String>,
    /// As claimed; a download is bounded by what really comes.
    pub bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentKind {
    Document,
    Photo,
    Audio,
    Voice,
    Video,
    Sticker,
}

impl IncomingMessage {
    pub fn platform(&self) -> Platform {
        self.account.platform()
    }
}

impl ButtonPress {
    pub fn platform(&self) -> Platform {
        self.account.platform()
    }
}

impl ChatKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Dm => "dm",
            Self::Group => "group",
            Self::Channel => "channel",
            Self::Thread => "thread",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_was_written_before_there_were_accounts_is_read() {
        let written = r#"{
            "platform": "telegram", "update": "1", "message": "2", "text": "hello",
            "place": { "chat": "7", "kind": "dm", "thread": null },
            "sender": { "id": "7", "display": "", "is_bot": false },
            "reply_to": null, "mentions_us": true, "attachments": [],
            "received_at": "2026-11-17T12:00:00Z"
        }"#;
        let read: IncomingMessage = serde_json::from_str(written).unwrap();
        assert_eq!(read.account, AccountId::from(Platform::Telegram));
        let again = serde_json::to_string(&read).unwrap();
        assert_eq!(
            serde_json::from_str::<IncomingMessage>(&again).unwrap(),
            read
        );
    }
}
