//! What a message says, as far as we listen.
//!
//! Only the fields used are read, each by itself: one of another shape than expected costs that field and
//! not the message. A message reads the same whether it came live or was found in a history.

use hermetic_types::{
    AccountId, Attachment, AttachmentId, AttachmentKind, ChatId, ChatKind, ChatPlace,
    IncomingMessage, Sender, Timestamp, UpdateId,
};
use serde_json::Value;

use crate::config::{HeardBots, SlackHearing};
use crate::identity::BotIdentity;
use crate::incoming_text::{mentions, own_words, passed_on};
use crate::threads::JoinedThreads;
use crate::ts::SlackTimestamp;

/// More files than this do not hang on one message.
const MOST_FILES: usize = 32;

/// What a message turned out to be for this account.
#[derive(Debug)]
pub(crate) enum ReadMessage {
    Message(Box<HeardMessage>),
    /// A message was deleted.
    Deleted(SlackTimestamp),
    /// A message as it reads now.
    Edited(Box<IncomingMessage>),
    /// Not for us, with the reason.
    Nothing(&'static str),
    Malformed(&'static str),
}

#[derive(Debug)]
pub(crate) struct HeardMessage {
    pub(crate) incoming: IncomingMessage,
    pub(crate) ts: SlackTimestamp,
    /// The thread in a channel in which we were named.
    pub(crate) joins: Option<SlackTimestamp>,
}

/// Reads Slack's messages for one account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageReader<'a> {
    pub(crate) account: &'a AccountId,
    pub(crate) identity: &'a BotIdentity,
    pub(crate) hearing: &'a SlackHearing,
    pub(crate) threads: &'a JoinedThreads,
    pub(crate) now: Timestamp,
}

impl MessageReader<'_> {
    pub(crate) fn read(&self, message: &Value, channel: &ChatId) -> ReadMessage {
        match message["subtype"].as_str() {
            None | Some("file_share" | "thread_broadcast" | "me_message" | "bot_message") => {}
            Some("message_deleted") => return deleted(&message["deleted_ts"]),
            // What is left of a deleted message that had replies.
            Some("message_changed") if message["message"]["subtype"] == "tombstone" => {
                return deleted(&message["message"]["ts"]);
            }
            // Slack tells the same way that a link got its preview, and that we changed our own words.
            Some("message_changed") if message["message"]["edited"].is_object() => {
                return self.read_edit(&message["message"], channel);
            }
            Some(_) => return ReadMessage::Nothing("neither a new message nor a change of one"),
        }
        let Some(ts) = message["ts"].as_str().and_then(SlackTimestamp::parse) else {
            return ReadMessage::Malformed("a message without a time");
        };
        let (user, bot) = (message["user"].as_str(), message["bot_id"].as_str());
        if self.identity.wrote(user, bot) {
            return ReadMessage::Nothing("we wrote it ourselves");
        }
        let Some(sender) = self.sender(message) else {
            return ReadMessage::Nothing("nobody sent it");
        };
        let thread = message["thread_ts"]
            .as_str()
            .and_then(SlackTimestamp::parse);
        let place = place(channel, ts, thread);
        let named = self.names_us(message);
        let mentions_us = place.kind == ChatKind::Dm || named || self.answers_us(message);
        if let Some(why) = self.ignores(&place, &sender, named, mentions_us, thread) {
            return ReadMessage::Nothing(why);
        }
        let attachments = attachments(&message["files"]);
        let text = self.words(message);
        if text.is_empty() && attachments.is_empty() {
            return ReadMessage::Nothing("it says nothing");
        }
        let Some(update) = self.update_id(channel, ts) else {
            return ReadMessage::Malformed("a channel without a name");
        };
        let joins = (place.kind != ChatKind::Dm && named).then_some(thread.unwrap_or(ts));
        let incoming = IncomingMessage {
            account: self.account.clone(),
            update,
            message: ts.message_id(),
            place,
            sender,
            text,
            reply_to: None,
            mentions_us,
            attachments,
            received_at: self.now,
        };
        ReadMessage::Message(Box::new(HeardMessage {
            incoming,
            ts,
            joins,
        }))
    }

    fn read_edit(&self, changed: &Value, channel: &ChatId) -> ReadMessage {
        if changed["edited"]["user"] != changed["user"] {
            return ReadMessage::Nothing("somebody else changed it");
        }
        let Some(at) = changed["edited"]["ts"]
            .as_str()
            .and_then(SlackTimestamp::parse)
        else {
            return ReadMessage::Malformed("a change without a time");
        };
        let ReadMessage::Message(heard) = self.read(changed, channel) else {
            return ReadMessage::Nothing("a change of something that is not for us");
        };
        let update = UpdateId::new(format!("{}:edited:{at}", heard.incoming.update));
        match update {
            Ok(update) => ReadMessage::Edited(Box::new(IncomingMessage {
                update,
                ..heard.incoming
            })),
            Err(_) => ReadMessage::Malformed("a channel without a name"),
        }
    }

    /// The one key of a message: a mention comes both as `message` and as `app_mention`, and a sweep
    /// finds it a third time.
    pub(crate) fn update_id(&self, channel: &ChatId, ts: SlackTimestamp) -> Option<UpdateId> {
        UpdateId::new(format!("{}:{channel}:{ts}", self.identity.home.id())).ok()
    }

    fn sender(&self, message: &Value) -> Option<Sender> {
        let bot = message["bot_id"].as_str();
        let id = message["user"].as_str().or(bot)?;
        let teams = ["user_team", "source_team", "team"];
        let team = teams.iter().find_map(|name| message[*name].as_str());
        let profile = &message["user_profile"];
        let names = [
            &profile["display_name"],
            &profile["real_name"],
            &message["username"],
        ];
        let display = names
            .iter()
            .find_map(|name| name.as_str().filter(|name| !name.is_empty()));
        Some(Sender {
            id: self.identity.home.person(id, team)?,
            display: display.unwrap_or(id).to_owned(),
            is_bot: bot.is_some(),
            roles: Vec::new(),
        })
    }

    fn names_us(&self, message: &Value) -> bool {
        let text = message["text"].as_str().unwrap_or_default();
        message["type"] == "app_mention" || mentions(text, &self.identity.user)
    }

    /// Whether the thread was begun by a message of ours.
    fn answers_us(&self, message: &Value) -> bool {
        message["parent_user_id"].as_str() == Some(self.identity.user.as_str())
    }

    fn words(&self, message: &Value) -> String {
        let us = &self.identity.user;
        let own = own_words(message["text"].as_str().unwrap_or_default(), us);
        match passed_on(&message["attachments"], us) {
            Some(quoted) if own.is_empty() => quoted,
            Some(quoted) => format!("{own}\n\n{quoted}"),
            None => own,
        }
    }

    fn ignores(
        &self,
        place: &ChatPlace,
        sender: &Sender,
        named: bool,
        mentions_us: bool,
        thread: Option<SlackTimestamp>,
    ) -> Option<&'static str> {
        let SlackHearing {
            require_mention,
            strict_mention,
            free_response_channels,
            allowed_channels,
            bots,
        } = self.hearing;
        // Before private chats are let through: two bots that answer each other there would never
        // end.
        match bots {
            HeardBots::Ignore if sender.is_bot => return Some("a bot sent it"),
            HeardBots::HearMentions if sender.is_bot && !named => {
                return Some("a bot that does not mention us sent it");
            }
            _ => {}
        }
        if place.kind == ChatKind::Dm {
            return None;
        }
        if !allowed_channels.is_empty() && !allowed_channels.contains(&place.chat) {
            return Some("a channel we do not listen to");
        }
        let joined = || thread.is_some_and(|thread| self.threads.contains(&place.chat, thread));
        let meant = named || !strict_mention && (mentions_us || joined());
        if *require_mention && !meant && !free_response_channels.contains(&place.chat) {
            return Some("it does not mention us");
        }
        None
    }
}

/// In a channel every thread is a conversation, and a message outside of one begins one: an answer to it
/// stands below it. In private the chat itself is one, too.
pub(crate) fn place(
    channel: &ChatId,
    ts: SlackTimestamp,
    thread: Option<SlackTimestamp>,
) -> ChatPlace {
    let kind = kind(channel);
    let thread = match kind {
        ChatKind::Dm => thread.filter(|thread| *thread != ts),
        _ => Some(thread.unwrap_or(ts)),
    };
    ChatPlace {
        chat: channel.clone(),
        kind,
        thread: thread.and_then(SlackTimestamp::thread_id),
    }
}

/// By the letter that Slack gives it: a history does not name the kind.
pub(crate) fn kind(channel: &ChatId) -> ChatKind {
    if channel.as_str().starts_with('D') {
        ChatKind::Dm
    } else {
        ChatKind::Group
    }
}

fn deleted(ts: &Value) -> ReadMessage {
    match ts.as_str().and_then(SlackTimestamp::parse) {
        Some(ts) => ReadMessage::Deleted(ts),
        None => ReadMessage::Malformed("a deletion of nothing"),
    }
}

fn attachments(files: &Value) -> Vec<Attachment> {
    let files = files.as_array().into_iter().flatten().take(MOST_FILES);
    files
        .filter_map(|file| {
            let mime = file["mimetype"].as_str();
            Some(Attachment {
                id: AttachmentId::new(file["id"].as_str()?).ok()?,
                kind: attachment_kind(mime.unwrap_or_default(), &file["subtype"]),
                name: file["name"].as_str().map(str::to_owned),
                mime: mime.map(str::to_owned),
                bytes: file["size"].as_u64(),
            })
        })
        .collect()
}

fn attachment_kind(mime: &str, subtype: &Value) -> AttachmentKind {
    match mime.split('/').next() {
        _ if subtype == "slack_audio" => AttachmentKind::Voice,
        Some("image") => AttachmentKind::Photo,
        Some("audio") => AttachmentKind::Audio,
        Some("video") => AttachmentKind::Video,
        _ => AttachmentKind::Document,
    }
}
