//! What a message or an interaction says to us, if anything.

use std::collections::BTreeSet;

use hermetic_chat::ChatEvent;
use hermetic_types::{
    AccountId, Attachment, AttachmentId, AttachmentKind, ButtonPress, ChatId, ChatPlace,
    IncomingMessage, QuotedMessage, Sender, Timestamp, UpdateId,
};
use serde::Deserialize;

use crate::DiscordHearing;
use crate::channels::{ChannelKind, DiscordChannel};
use crate::dispatch::{
    DiscordAttachment, DiscordMessage, DiscordUser, RawInteraction, RawRoles, RawSnapshot,
};
use crate::interactions::{COMMAND, PRESS};
use crate::snowflake::Snowflake;

/// Kinds of messages that a person wrote; the others are Discord's own.
const WRITTEN: u8 = 0;
const REPLY: u8 = 19;
/// The kind of a reference to what was passed on.
const FORWARD: u8 = 1;
/// A recording, made in the app.
const VOICE: u64 = 1 << 13;
/// How much of a name is kept.
const NAME_CHARACTERS: usize = 128;
/// As long as Discord writes a moment, and some more.
const STAMP_CHARACTERS: usize = 40;

#[derive(Debug)]
pub(crate) enum HeardEvent {
    Event(Box<ChatEvent>),
    /// Not for us, with the reason.
    Nothing(&'static str),
}

/// The bot for which an event is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiscordBot<'a> {
    pub(crate) account: &'a AccountId,
    pub(crate) id: Snowflake,
    pub(crate) hearing: &'a DiscordHearing,
}

pub(crate) fn hear_message(
    mut raw: DiscordMessage,
    channel: &DiscordChannel,
    bot: DiscordBot<'_>,
    now: Timestamp,
) -> HeardEvent {
    if !matches!(raw.kind, WRITTEN | REPLY) {
        return HeardEvent::Nothing("nobody wrote it");
    }
    let Some(author) = raw.author.take().filter(|_| raw.webhook_id.is_none()) else {
        return HeardEvent::Nothing("whoever sent it does not show who they are");
    };
    if author.id == bot.id || author.bot && !bot.hearing.bots {
        return HeardEvent::Nothing("a bot sent it");
    }
    let attachments = raw.take_attachments();
    let text = raw.words(bot.id);
    if text.trim().is_empty() && attachments.is_empty() {
        return HeardEvent::Nothing("it says nothing");
    }
    let reply_to = raw.quoted(bot.id);
    let replies_to_us = reply_to.as_ref().is_some_and(|quoted| quoted.from_us);
    let is_private = channel.kind == ChannelKind::Private;
    let mentions_us = is_private || replies_to_us || raw.mentions(bot.id);
    if let Some(why) = bot.hearing.ignores(channel, mentions_us) {
        return HeardEvent::Nothing(why);
    }
    let place = bot.hearing.place(channel, raw.id, replies_to_us);
    HeardEvent::Event(Box::new(ChatEvent::Message(IncomingMessage {
        account: bot.account.clone(),
        update: raw.id.into(),
        message: raw.id.into(),
        place,
        sender: author.sender(raw.member.as_ref()),
        text,
        reply_to,
        mentions_us,
        attachments,
        received_at: now,
    })))
}

/// The same for a message that was changed.
pub(crate) fn hear_edit(
    raw: DiscordMessage,
    channel: &DiscordChannel,
    bot: DiscordBot<'_>,
    now: Timestamp,
) -> HeardEvent {
    let changed = raw.edited_timestamp.as_deref().unwrap_or_default();
    let changed: String = changed.chars().take(STAMP_CHARACTERS).collect();
    let Ok(update) = UpdateId::new(format!("edited:{}:{changed}", raw.id)) else {
        return HeardEvent::Nothing("a change without a time");
    };
    let HeardEvent::Event(event) = hear_message(raw, channel, bot, now) else {
        return HeardEvent::Nothing("a change of something that is not for us");
    };
    match *event {
        ChatEvent::Message(message) => {
            HeardEvent::Event(Box::new(ChatEvent::Edited(IncomingMessage {
                update,
                ..message
            })))
        }
        _ => HeardEvent::Nothing("no message was changed"),
    }
}

/// A press, or a command as if it had been written.
pub(crate) fn hear_interaction(
    raw: RawInteraction,
    channel: &DiscordChannel,
    bot: DiscordBot<'_>,
    now: Timestamp,
) -> HeardEvent {
    let roles = raw.member.as_ref().map(|member| member.roles.clone());
    let user = raw.member.map(|member| member.user).or(raw.user);
    let (Some(user), Some(data)) = (user, raw.data) else {
        return HeardEvent::Nothing("nobody did it");
    };
    let place = channel.place();
    let (account, update, sender) = (
        bot.account.clone(),
        raw.id.into(),
        user.sender(roles.as_ref()),
    );
    match (raw.kind, data.custom_id, data.name, raw.message) {
        (PRESS, Some(data), _, Some(message)) => {
            HeardEvent::Event(Box::new(ChatEvent::Press(ButtonPress {
                account,
                update,
                query: raw.id.to_string(),
                place,
                message: message.id.into(),
                sender,
                data,
                received_at: now,
            })))
        }
        (COMMAND, _, Some(name), _) => {
            if let Some(why) = bot.hearing.ignores(channel, true) {
                return HeardEvent::Nothing(why);
            }
            let argument = data
                .options
                .first()
                .and_then(|option| option.value.as_str());
            let text = match argument {
                Some(argument) => format!("/{name} {argument}"),
                None => format!("/{name}"),
            };
            HeardEvent::Event(Box::new(ChatEvent::Message(IncomingMessage {
                account,
                update,
                message: raw.id.into(),
                place,
                sender,
                text,
                reply_to: None,
                mentions_us: true,
                attachments: Vec::new(),
                received_at: now,
            })))
        }
        _ => HeardEvent::Nothing("neither a press nor a command"),
    }
}

impl DiscordHearing {
    pub(crate) fn ignores(
        &self,
        channel: &DiscordChannel,
        mentions_us: bool,
    ) -> Option<&'static str> {
        let needs_mention = match channel.kind {
            ChannelKind::Private => return None,
            ChannelKind::Thread { .. } if channel.ours => self.thread_require_mention,
            _ => self.require_mention && !lists(&self.free_response_channels, channel),
        };
        let allowed = self.allowed_channels.is_empty() || lists(&self.allowed_channels, channel);
        if !allowed || lists(&self.ignored_channels, channel) {
            return Some("a channel we do not listen to");
        }
        (needs_mention && !mentions_us).then_some("it does not mention us")
    }

    /// Where a message is answered. Its thread may not exist yet: it is made when something is sent
    /// there, so that nobody who may not speak causes one.
    fn place(
        &self,
        channel: &DiscordChannel,
        message: Snowflake,
        replies_to_us: bool,
    ) -> ChatPlace {
        let makes_thread = self.auto_thread
            && channel.kind == (ChannelKind::Server { threads: true })
            && !channel.threadless
            // Where it is answered without a mention, people talk in the channel itself; and a reply to
            // us goes on with what is said there.
            && !replies_to_us
            && !lists(&self.free_response_channels, channel)
            && !lists(&self.no_thread_channels, channel);
        if makes_thread {
            channel.thread_of(message)
        } else {
            channel.place()
        }
    }
}

fn lists(list: &BTreeSet<ChatId>, channel: &DiscordChannel) -> bool {
    list.iter().any(|listed| listed.as_str() == "*")
        || channel.names().iter().any(|name| list.contains(name))
}

impl DiscordMessage {
    fn mentions(&self, us: Snowflake) -> bool {
        self.mentions.iter().any(|mention| mention.id == us)
            || names_of(us).iter().any(|name| self.content.contains(name))
    }

    /// Without our name around it. What the sender only passed on is quoted: it is nobody's command.
    fn words(&mut self, us: Snowflake) -> String {
        let forwards = self.message_reference.as_ref();
        if forwards.is_some_and(|reference| reference.kind == FORWARD) {
            let passed_on = self.snapshots().map(|snapshot| snapshot.message.content);
            let passed_on = passed_on.collect::<Vec<_>>().join("\n");
            return quote(&passed_on);
        }
        let content = std::mem::take(&mut self.content);
        let mut words = content.trim();
        for name in names_of(us) {
            words = words.strip_prefix(&name).unwrap_or(words).trim_start();
            words = words.strip_suffix(&name).unwrap_or(words).trim_end();
        }
        // Somebody who says nothing but our name wants something all the same.
        let kept = if words.is_empty() { &content } else { words };
        // It is looked for again where it stands inside.
        let kept = kept.to_owned();
        self.content = content;
        kept
    }

    fn quoted(&mut self, us: Snowflake) -> Option<QuotedMessage> {
        let quoted = self.referenced_message.take()?;
        let mut quoted = Self::deserialize(quoted).ok()?;
        Some(QuotedMessage {
            message: quoted.id.into(),
            from_us: quoted.author.as_ref().is_some_and(|author| author.id == us),
            text: quoted.words(us),
        })
    }

    fn snapshots(&self) -> impl Iterator<Item = RawSnapshot> {
        let snapshots = self.message_snapshots.iter();
        snapshots.filter_map(|snapshot| RawSnapshot::deserialize(snapshot).ok())
    }

    fn take_attachments(&mut self) -> Vec<Attachment> {
        let is_voice = self.flags & VOICE != 0;
        let (channel, message) = (self.channel_id, self.id);
        let own = std::mem::take(&mut self.attachments).into_iter();
        own.chain(
            self.snapshots()
                .flat_map(|snapshot| snapshot.message.attachments),
        )
        .filter_map(|raw| raw.attachment(channel, message, is_voice))
        .collect()
    }

    /// The file with this id, its own or one that was passed on.
    pub(crate) fn find_attachment(mut self, id: Snowflake) -> Option<DiscordAttachment> {
        let own = std::mem::take(&mut self.attachments).into_iter();
        let mut all = own.chain(
            self.snapshots()
                .flat_map(|snapshot| snapshot.message.attachments),
        );
        all.find(|attachment| attachment.id == id)
    }
}

impl DiscordAttachment {
    /// Known by where it hangs: the address that comes with it is good for a day only.
    fn attachment(
        self,
        channel: Snowflake,
        message: Snowflake,
        is_voice: bool,
    ) -> Option<Attachment> {
        let mime = self.content_type.as_deref().unwrap_or_default();
        let kind = match mime.split('/').next().unwrap_or_default() {
            "image" => AttachmentKind::Photo,
            "audio" if is_voice => AttachmentKind::Voice,
            "audio" => AttachmentKind::Audio,
            "video" => AttachmentKind::Video,
            _ => AttachmentKind::Document,
        };
        Some(Attachment {
            id: AttachmentId::new(format!("{channel}/{message}/{}", self.id)).ok()?,
            kind,
            name: self.filename,
            mime: self.content_type,
            bytes: self.size,
        })
    }
}

impl DiscordUser {
    fn sender(self, member: Option<&RawRoles>) -> Sender {
        let name = self.global_name.filter(|name| !name.trim().is_empty());
        let name = name.unwrap_or(self.username);
        Sender {
            id: self.id.into(),
            display: name.chars().take(NAME_CHARACTERS).collect(),
            is_bot: self.bot,
            roles: member.map(RawRoles::ids).unwrap_or_default(),
        }
    }
}

/// How our name is written in a text; the second way is that of old apps.
fn names_of(us: Snowflake) -> [String; 2] {
    [format!("<@{us}>"), format!("<@!{us}>")]
}

fn quote(text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let lines: Vec<_> = text.lines().map(|line| format!("> {line}")).collect();
    format!(
        "[passed on, not written by who sent it:]\n{}",
        lines.join("\n")
    )
}
