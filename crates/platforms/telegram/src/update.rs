//! What an update says, as far as we listen.
//!
//! Only the fields used are read, and unknown ones are no error: Telegram adds some every month.

use std::fmt;

use hermetic_chat::ChatEvent;
use hermetic_types::{
    AccountId, Attachment, AttachmentId, AttachmentKind, ButtonPress, ChatId, ChatKind, ChatPlace,
    IncomingMessage, MessageId, QuotedMessage, Sender, ThreadId, Timestamp, UpdateId, UserId,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{BotUser, TelegramHearing};

#[derive(Debug)]
pub(crate) enum HeardUpdate {
    Event(Box<ChatEvent>),
    /// Not for us, with the reason.
    Nothing(&'static str),
    Malformed(String),
}

/// Every update has an id, or there is no telling it from the next.
pub(crate) fn id(update: &Value) -> Option<i64> {
    update.get("update_id")?.as_i64()
}

/// The bot for which an update is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TelegramBot<'a> {
    pub(crate) account: &'a AccountId,
    pub(crate) me: &'a BotUser,
    pub(crate) hearing: &'a TelegramHearing,
}

pub(crate) fn hear(update: &Value, id: i64, bot: TelegramBot<'_>, now: Timestamp) -> HeardUpdate {
    let update_id = UpdateId::from(id);
    if let Some(message) = update.get("message") {
        return match TelegramMessage::deserialize(message) {
            Ok(message) => hear_message(message, update_id, bot, now),
            Err(error) => HeardUpdate::Malformed(error.to_string()),
        };
    }
    if let Some(message) = update.get("edited_message") {
        return match TelegramMessage::deserialize(message) {
            Ok(message) => hear_message(message, update_id, bot, now).into_edit(),
            Err(error) => HeardUpdate::Malformed(error.to_string()),
        };
    }
    if let Some(query) = update.get("callback_query") {
        return match RawQuery::deserialize(query) {
            Ok(query) => hear_press(query, update_id, bot.account, now),
            Err(error) => HeardUpdate::Malformed(error.to_string()),
        };
    }
    HeardUpdate::Nothing("neither a message nor a button")
}

fn hear_message(
    mut raw: TelegramMessage,
    update: UpdateId,
    bot: TelegramBot<'_>,
    now: Timestamp,
) -> HeardUpdate {
    let TelegramBot {
        account,
        me,
        hearing,
    } = bot;
    let Some(from) = raw.from.take() else {
        return HeardUpdate::Nothing("nobody sent it");
    };
    if from.is_bot && !hearing.bots || from.id == me.id {
        return HeardUpdate::Nothing("a bot sent it");
    }
    // An anonymous administrator, a channel: `from` is a name that many share, and so would be the
    // conversation.
    if raw.sender_chat.is_some() {
        return HeardUpdate::Nothing("whoever sent it does not show who they are");
    }
    let place = raw.place();
    let attachments = raw.attachments();
    let text = raw.words();
    if text.is_empty() && attachments.is_empty() {
        return HeardUpdate::Nothing("it says nothing");
    }
    if meant_for_another(&text, me) {
        return HeardUpdate::Nothing("a command for another bot");
    }
    let reply_to = raw
        .reply_to_message
        .take()
        .and_then(|quoted| TelegramMessage::deserialize(quoted).ok())
        .map(|quoted| quoted.quoted(me));
    let mentions_us = place.kind == ChatKind::Dm
        || reply_to.as_ref().is_some_and(|quoted| quoted.from_us)
        || mentions(&text, me);
    if let Some(why) = hearing.ignores(&place, mentions_us) {
        return HeardUpdate::Nothing(why);
    }
    HeardUpdate::Event(Box::new(ChatEvent::Message(IncomingMessage {
        account: account.clone(),
        update,
        message: MessageId::from(raw.message_id),
        place,
        sender: from.sender(),
        text: without_our_name(text),
        reply_to,
        mentions_us,
        attachments,
        received_at: now,
    })))
}

fn hear_press(raw: RawQuery, update: UpdateId, account: &AccountId, now: Timestamp) -> HeardUpdate {
    let (Some(message), Some(data)) = (raw.message, raw.data) else {
        return HeardUpdate::Nothing("a button without a message of ours");
    };
    HeardUpdate::Event(Box::new(ChatEvent::Press(ButtonPress {
        account: account.clone(),
        update,
        query: raw.id,
        place: message.place(),
        message: MessageId::from(message.message_id),
        sender: raw.from.sender(),
        data,
        received_at: now,
    })))
}

impl HeardUpdate {
    /// Of a message that was there before.
    fn into_edit(self) -> Self {
        match self {
            Self::Event(event) => match *event {
                ChatEvent::Message(message) => Self::Event(Box::new(ChatEvent::Edited(message))),
                other => Self::Event(Box::new(other)),
            },
            nothing => nothing,
        }
    }
}

impl TelegramHearing {
    fn ignores(&self, place: &ChatPlace, mentions_us: bool) -> Option<&'static str> {
        if place.kind == ChatKind::Dm {
            return None;
        }
        let topic = place.thread.as_ref();
        if !self.allowed_chats.is_empty() && !self.allowed_chats.contains(&place.chat) {
            return Some("a chat we do not listen to");
        }
        if topic.is_some_and(|topic| self.ignored_threads.contains(topic))
            || !self.allowed_topics.is_empty()
                && !topic.is_some_and(|topic| self.allowed_topics.contains(topic))
        {
            return Some("a topic we do not listen to");
        }
        if self.require_mention && !mentions_us && !self.free_response_chats.contains(&place.chat) {
            return Some("it does not mention us");
        }
        None
    }
}

/// Whether `@us` stands in the text as a word of its own.
fn mentions(text: &str, me: &BotUser) -> bool {
    if me.username.is_empty() {
        return false;
    }
    let text = text.to_lowercase();
    text.match_indices('@').any(|(at, _)| {
        text[at + 1..]
            .strip_prefix(me.username.as_str())
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// `/stop@us now` is `/stop now`; a command for another bot never gets here.
fn without_our_name(text: String) -> String {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    match text[..end].find('@') {
        Some(at) if text.starts_with('/') => format!("{}{}", &text[..at], &text[end..]),
        _ => text,
    }
}

/// `/stop@otherbot` is not for us.
fn meant_for_another(text: &str, me: &BotUser) -> bool {
    // A command is read without the white space around it, so it is looked for without it here.
    text.trim_start()
        .strip_prefix('/')
        .and_then(|command| command.split_whitespace().next())
        .and_then(|command| command.split_once('@'))
        .is_some_and(|(_, bot)| bot.to_lowercase() != me.username)
}

#[derive(Deserialize)]
struct TelegramMessage {
    message_id: i64,
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    from: Option<TelegramUser>,
    sender_chat: Option<IgnoredAny>,
    chat: RawChat,
    forward_origin: Option<IgnoredAny>,
    /// What servers older than `forward_origin` send.
    forward_date: Option<IgnoredAny>,
    via_bot: Option<IgnoredAny>,
    text: Option<String>,
    caption: Option<String>,
    /// Read apart: what was quoted must not cost us the message itself.
    reply_to_message: Option<Value>,
    document: Option<TelegramFile>,
    #[serde(default)]
    photo: Vec<TelegramFile>,
    audio: Option<TelegramFile>,
    voice: Option<TelegramFile>,
    video: Option<TelegramFile>,
    sticker: Option<TelegramFile>,
}

#[derive(Deserialize)]
struct TelegramUser {
    id: i64,
    #[serde(default)]
    is_bot: bool,
    #[serde(default)]
    first_name: String,
    last_name: Option<String>,
    username: Option<String>,
}

#[derive(Deserialize)]
struct RawChat {
    id: i64,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct TelegramFile {
    file_id: AttachmentId,
    file_name: Option<String>,
    mime_type: Option<String>,
    file_size: Option<u64>,
}

#[derive(Deserialize)]
struct RawQuery {
    id: String,
    from: TelegramUser,
    message: Option<TelegramMessage>,
    data: Option<String>,
}

impl TelegramMessage {
    fn place(&self) -> ChatPlace {
        let kind = match self.chat.kind.as_str() {
            "private" => ChatKind::Dm,
            "channel" => ChatKind::Channel,
            _ => ChatKind::Group,
        };
        ChatPlace {
            chat: ChatId::from(self.chat.id),
            kind,
            // Outside of forums a reply carries a thread id too, which is no topic.
            thread: self
                .message_thread_id
                .filter(|_| self.is_topic_message)
                .map(ThreadId::from),
        }
    }

    /// What the sender only passed on is quoted: it is nobody's command.
    fn words(&mut self) -> String {
        let text = self.text.take().or(self.caption.take()).unwrap_or_default();
        let passed_on =
            self.forward_origin.is_some() || self.forward_date.is_some() || self.via_bot.is_some();
        if text.is_empty() || !passed_on {
            return text;
        }
        let lines: Vec<_> = text.lines().map(|line| format!("> {line}")).collect();
        format!(
            "[passed on, not written by who sent it:]\n{}",
            lines.join("\n")
        )
    }

    fn attachments(&mut self) -> Vec<Attachment> {
        // Telegram sends each photo in several sizes, the largest last.
        let photo = self.photo.pop();
        [
            (self.document.take(), AttachmentKind::Document),
            (photo, AttachmentKind::Photo),
            (self.audio.take(), AttachmentKind::Audio),
            (self.voice.take(), AttachmentKind::Voice),
            (self.video.take(), AttachmentKind::Video),
            (self.sticker.take(), AttachmentKind::Sticker),
        ]
        .into_iter()
        .filter_map(|(file, kind)| file.map(|file| file.attachment(kind)))
        .collect()
    }

    fn quoted(mut self, me: &BotUser) -> QuotedMessage {
        QuotedMessage {
            message: MessageId::from(self.message_id),
            from_us: self.from.as_ref().is_some_and(|from| from.id == me.id),
            text: self.words(),
        }
    }
}

impl TelegramUser {
    fn sender(self) -> Sender {
        let name = match self.last_name {
            Some(last) => format!("{} {last}", self.first_name),
            None => self.first_name,
        };
        Sender {
            id: UserId::from(self.id),
            display: if name.is_empty() {
                self.username.unwrap_or_default()
            } else {
                name
            },
            is_bot: self.is_bot,
            roles: Vec::new(),
        }
    }
}

impl TelegramFile {
    fn attachment(self, kind: AttachmentKind) -> Attachment {
        Attachment {
            id: self.file_id,
            kind,
            name: self.file_name,
            mime: self.mime_type,
            bytes: self.file_size,
        }
    }
}

impl fmt::Display for HeardUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(_) => f.write_str("heard"),
            Self::Nothing(why) => f.write_str(why),
            Self::Malformed(why) => write!(f, "malformed: {why}"),
        }
    }
}
