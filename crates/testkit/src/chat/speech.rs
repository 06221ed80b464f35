//! What somebody says or presses.

use bytes::Bytes;
use hermetic_types::{
    AccountId, Attachment, AttachmentId, AttachmentKind, ButtonPress, ChatId, ChatKind, ChatPlace,
    IncomingMessage, MessageId, QuotedMessage, Sender, ThreadId, Timestamp, UpdateId, UserId,
};

use super::UpdateNumber;

/// One message of a person. In private, unless it says otherwise.
#[derive(Clone, Debug)]
pub struct Speech {
    user: UserId,
    text: String,
    place: ChatPlace,
    mentions_us: bool,
    quoted: Option<QuotedMessage>,
    /// As the platform numbers it; otherwise the next number.
    message: Option<MessageId>,
    pub(super) files: Vec<Upload>,
}

/// A file that comes along.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    name: String,
    kind: AttachmentKind,
    claimed: u64,
    pub(super) bytes: Bytes,
}

impl Speech {
    pub fn by(user: impl Into<UserId>, text: &str) -> Self {
        let user = user.into();
        Self {
            place: private_place(&user),
            user,
            text: text.to_owned(),
            mentions_us: true,
            quoted: None,
            message: None,
            files: Vec::new(),
        }
    }

    #[must_use]
    pub fn in_group(mut self, chat: impl Into<ChatId>) -> Self {
        self.place.chat = chat.into();
        self.place.kind = ChatKind::Group;
        self
    }

    /// In a topic of the chat it is said in.
    #[must_use]
    pub fn in_thread(mut self, thread: impl Into<ThreadId>) -> Self {
        self.place.thread = Some(thread.into());
        self
    }

    #[must_use]
    pub fn in_reply_to(mut self, quoted: QuotedMessage) -> Self {
        self.quoted = Some(quoted);
        self
    }

    /// With a number of its own, as of a message that was written earlier than it is heard.
    #[must_use]
    pub fn numbered(mut self, message: impl Into<MessageId>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Claims of itself to have as many bytes as it has.
    #[must_use]
    pub fn with_file(self, name: &str, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let claimed = bytes.len() as u64;
        self.with_file_claiming(name, bytes, claimed)
    }

    /// A recording of what somebody says.
    #[must_use]
    pub fn with_voice(mut self, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        self.files.push(Upload {
            name: "voice.ogg".to_owned(),
            kind: AttachmentKind::Voice,
            claimed: bytes.len() as u64,
            bytes,
        });
        self
    }

    #[must_use]
    pub fn with_file_claiming(mut self, name: &str, bytes: impl Into<Bytes>, claimed: u64) -> Self {
        self.files.push(Upload {
            name: name.to_owned(),
            kind: AttachmentKind::Document,
            claimed,
            bytes: bytes.into(),
        });
        self
    }

    pub(super) fn incoming(
        self,
        account: AccountId,
        update: UpdateNumber,
        next: MessageId,
        now: Timestamp,
    ) -> IncomingMessage {
        IncomingMessage {
            account,
            update: UpdateId::from(update.0),
            message: self.message.unwrap_or(next),
            place: self.place,
            sender: sender(self.user),
            text: self.text,
            reply_to: self.quoted,
            mentions_us: self.mentions_us,
            attachments: attachments(update, self.files),
            received_at: now,
        }
    }
}

pub(super) fn press(
    account: AccountId,
    update: UpdateNumber,
    (user, place): (UserId, ChatPlace),
    (message, data): (&MessageId, &str),
    now: Timestamp,
) -> ButtonPress {
    ButtonPress {
        account,
        update: UpdateId::from(update.0),
        query: update.0.to_string(),
        place,
        message: message.clone(),
        sender: sender(user),
        data: data.to_owned(),
        received_at: now,
    }
}

/// The name under which the platform keeps a file.
pub(super) fn upload_id(update: UpdateNumber, index: usize) -> AttachmentId {
    let text = format!("{}-{index}", update.0);
    // Two numbers and a dash are a name.
    AttachmentId::new(text).unwrap_or_else(|_| AttachmentId::from(update.0))
}

fn attachments(update: UpdateNumber, files: Vec<Upload>) -> Vec<Attachment> {
    let files = files.into_iter().enumerate();
    files
        .map(|(index, file)| Attachment {
            id: upload_id(update, index),
            kind: file.kind,
            name: Some(file.name),
            mime: Some("text/plain".to_owned()),
            bytes: Some(file.claimed),
        })
        .collect()
}

fn sender(id: UserId) -> Sender {
    Sender {
        display: format!("person {id}"),
        id,
        is_bot: false,
        roles: Vec::new(),
    }
}

/// A private chat is named after the person in it.
pub(super) fn private_place(user: &UserId) -> ChatPlace {
    ChatPlace {
        chat: ChatId::new(user.as_str()).unwrap_or_else(|_| ChatId::from(0)),
        kind: ChatKind::Dm,
        thread: None,
    }
}
