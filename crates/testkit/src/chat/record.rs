//! What people were sent.

use std::collections::HashMap;

use bytes::Bytes;
use hermetic_chat::ReplyButton;
use hermetic_types::{AttachmentId, ChatId, ChatKind, ChatPlace, MessageId};

use super::visible::visible_markdown;

/// Everything that left for the platform, in order.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub messages: Vec<SentMessage>,
    pub edits: Vec<Edit>,
    pub files: Vec<SentFile>,
    /// Where it was shown that an answer is being written, each time.
    pub typing: Vec<ChatPlace>,
    /// What people were told who pressed a button.
    pub notices: Vec<Notice>,
    pub(super) uploads: HashMap<AttachmentId, Bytes>,
    pub(super) last_message: i64,
}

#[derive(Clone, Debug)]
pub struct SentMessage {
    pub id: MessageId,
    pub place: ChatPlace,
    /// In common Markdown, as the gateway wrote it.
    pub markdown: String,
    pub reply_to: Option<MessageId>,
    pub buttons: Vec<Vec<ReplyButton>>,
}

#[derive(Clone, Debug)]
pub struct Edit {
    pub message: MessageId,
    pub place: ChatPlace,
    pub markdown: String,
    pub buttons: Vec<Vec<ReplyButton>>,
}

#[derive(Clone, Debug)]
pub struct SentFile {
    pub id: MessageId,
    pub place: ChatPlace,
    pub name: String,
    pub bytes: Bytes,
    pub caption: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Notice {
    /// What the platform wanted back.
    pub query: String,
    /// `None`: it was only acknowledged.
    pub text: Option<String>,
}

impl Record {
    pub fn messages_in(&self, chat: &ChatId) -> Vec<SentMessage> {
        let all = self.messages.iter();
        all.filter(|message| message.place.chat == *chat)
            .cloned()
            .collect()
    }

    /// The last message of a chat that has buttons, with the label and the data of each.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn buttons(&self, chat: &ChatId) -> (MessageId, Vec<(String, String)>) {
        let asks =
            |message: &&SentMessage| message.place.chat == *chat && !message.buttons.is_empty();
        #[expect(clippy::expect_used, reason = "a test that presses nothing has failed")]
        let message = self
            .messages
            .iter()
            .rfind(asks)
            .expect("a message with buttons");
        let buttons = message.buttons.iter().flatten();
        let told = buttons.map(|button| (button.label().to_owned(), button.data().to_owned()));
        (message.id.clone(), told.collect())
    }

    pub(super) fn place_of(&self, message: &MessageId) -> ChatPlace {
        let found = self.messages.iter().find(|sent| sent.id == *message);
        let nowhere = || ChatPlace {
            chat: ChatId::from(0),
            kind: ChatKind::Dm,
            thread: None,
        };
        found.map_or_else(nowhere, |sent| sent.place.clone())
    }
}

impl SentMessage {
    /// As a person reads it.
    pub fn text(&self) -> String {
        visible_markdown(&self.markdown)
    }
}

impl Edit {
    /// As a person reads it.
    pub fn text(&self) -> String {
        visible_markdown(&self.markdown)
    }
}
