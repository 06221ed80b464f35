//! What an event says, as far as we listen.

use hermetic_types::{Attachment, AttachmentId, AttachmentKind};
use serde_json::{Map, Value};

use crate::MatrixHearing;
use crate::names::{is_event, localpart};
use crate::sealed_file::SealedFile;
use crate::sync::RoomEvent;

#[derive(Debug, PartialEq)]
pub(crate) enum HeardMatrixEvent {
    Words(Box<MatrixWords>),
    /// To a message.
    Reaction {
        emoji: String,
        target: String,
    },
    Deletion {
        target: String,
    },
    /// Other words for a message.
    Edit {
        target: String,
    },
    /// Something that only those who hold its key can read.
    Encrypted,
    /// Not for us, with the reason.
    Nothing(&'static str),
}

/// Something somebody wrote. Whether it is for us is not decided yet: that takes a look at what it replies
/// to.
#[derive(Debug, PartialEq)]
pub(crate) struct MatrixWords {
    pub(crate) text: String,
    pub(crate) names_us: bool,
    /// The message that the thread it stands in begins with.
    pub(crate) thread: Option<String>,
    pub(crate) reply_to: Option<String>,
    pub(crate) is_notice: bool,
    pub(crate) attachments: Vec<Attachment>,
}

/// Whom an event is read for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatrixListener<'a> {
    pub(crate) us: &'a str,
    /// What we are called in that room.
    pub(crate) display: Option<&'a str>,
    pub(crate) hearing: &'a MatrixHearing,
}

pub(crate) fn hear(event: &RoomEvent, listener: MatrixListener<'_>) -> HeardMatrixEvent {
    if event.sender == listener.us {
        return HeardMatrixEvent::Nothing("it is our own");
    }
    if event.state_key.is_some() {
        return HeardMatrixEvent::Nothing("it says what the room is like");
    }
    if listener.hearing.ignores(&event.sender) {
        return HeardMatrixEvent::Nothing("its sender is not listened to");
    }
    match event.kind.as_str() {
        "m.room.message" | "m.sticker" => hear_words(event, listener),
        "m.reaction" => hear_reaction(event),
        "m.room.redaction" => hear_deletion(event),
        "m.room.encrypted" => HeardMatrixEvent::Encrypted,
        _ => HeardMatrixEvent::Nothing("nobody wrote it"),
    }
}

fn hear_words(event: &RoomEvent, listener: MatrixListener<'_>) -> HeardMatrixEvent {
    let relation = EventRelation::of(&event.content);
    if relation.is_edit {
        return match relation.edits.filter(|_| event.new_content().is_some()) {
            Some(target) => HeardMatrixEvent::Edit { target },
            None => HeardMatrixEvent::Nothing("an edit of nothing"),
        };
    }
    let is_notice = event.text("msgtype") == Some("m.notice");
    if is_notice && !listener.hearing.notices {
        return HeardMatrixEvent::Nothing("a program says it");
    }
    let attachments: Vec<_> = attachment(event).into_iter().collect();
    let body = body(event, &relation, !attachments.is_empty());
    let names_us = mentions(&event.content, &body, listener);
    let text = without_our_name(&body, listener).to_owned();
    if text.trim().is_empty() && attachments.is_empty() {
        return HeardMatrixEvent::Nothing("it says nothing");
    }
    HeardMatrixEvent::Words(Box::new(MatrixWords {
        text,
        names_us,
        thread: relation.thread,
        reply_to: relation.reply_to,
        is_notice,
        attachments,
    }))
}

fn hear_reaction(event: &RoomEvent) -> HeardMatrixEvent {
    let relation = event.content.get("m.relates_to");
    let relation = |name: &str| relation?.get(name)?.as_str();
    let (target, emoji) = (relation("event_id"), relation("key"));
    match (relation("rel_type"), target, emoji) {
        (Some("m.annotation"), Some(target), Some(emoji)) if is_event(target) => {
            HeardMatrixEvent::Reaction {
                emoji: emoji.to_owned(),
                target: target.to_owned(),
            }
        }
        _ => HeardMatrixEvent::Nothing("a reaction to nothing"),
    }
}

/// Older rooms name the deleted message beside the content, newer ones within.
fn hear_deletion(event: &RoomEvent) -> HeardMatrixEvent {
    let (within, beside) = (event.text("redacts"), event.redacts.as_deref());
    // Which of two counts depends on the room's version, so two that differ name nothing.
    let target = within
        .or(beside)
        .filter(|target| beside.is_none_or(|beside| beside == *target));
    match target.filter(|target| is_event(target)) {
        Some(target) => HeardMatrixEvent::Deletion {
            target: target.to_owned(),
        },
        None => HeardMatrixEvent::Nothing("a deletion of nothing"),
    }
}

/// A message as it reads after an edit: the new words, where the old ones were said. `None` if the edit is
/// somebody else's, or of something that has no words to change.
pub(crate) fn edited(original: &RoomEvent, edit: &RoomEvent) -> Option<RoomEvent> {
    let is_theirs = original.sender == edit.sender && original.state_key.is_none();
    let is_message = original.kind == "m.room.message" && edit.kind == "m.room.message";
    // An edit of an edit means nothing to anybody.
    let is_first = !EventRelation::of(&original.content).is_edit;
    if !(is_theirs && is_message && is_first) {
        return None;
    }
    let mut content = edit.new_content()?.clone();
    // Where a message stands is said by the message, and an edit cannot move it.
    content.remove("m.relates_to");
    let relation = original.content.get("m.relates_to").cloned();
    content.extend(relation.map(|relation| ("m.relates_to".to_owned(), relation)));
    Some(RoomEvent {
        content,
        ..original.clone()
    })
}

/// What a message has to do with earlier ones.
#[derive(Debug, Default)]
struct EventRelation {
    is_edit: bool,
    edits: Option<String>,
    thread: Option<String>,
    reply_to: Option<String>,
}

impl EventRelation {
    fn of(content: &Map<String, Value>) -> Self {
        let Some(relation) = content.get("m.relates_to") else {
            return Self::default();
        };
        let kind = relation.get("rel_type").and_then(Value::as_str);
        let event = |value: Option<&Value>| {
            let name = value.and_then(Value::as_str).filter(|id| is_event(id));
            name.map(str::to_owned)
        };
        let reply = relation.get("m.in_reply_to");
        // Apps without threads are shown a reply to the thread's last message.
        let falls_back = relation.get("is_falling_back").and_then(Value::as_bool) == Some(true);
        let reply = reply.filter(|_| !(kind == Some("m.thread") && falls_back));
        Self {
            is_edit: kind == Some("m.replace"),
            edits: event(relation.get("event_id")).filter(|_| kind == Some("m.replace")),
            thread: event(relation.get("event_id")).filter(|_| kind == Some("m.thread")),
            reply_to: event(reply.and_then(|reply| reply.get("event_id"))),
        }
    }
}

impl MatrixHearing {
    fn ignores(&self, sender: &str) -> bool {
        // What a bridge speaks for, by the convention of bridges.
        localpart(sender).starts_with('_')
            || self
                .ignored_users
                .iter()
                .any(|pattern| pattern.is_match(sender))
    }
}

/// The words, without the quotation that older apps put before a reply: it is nobody's order.
fn body(event: &RoomEvent, relation: &EventRelation, has_file: bool) -> String {
    let body = event.text("body").unwrap_or_default();
    if has_file {
        // A file's own name is no caption.
        let name = event.text("filename");
        return match name {
            Some(name) if name != body => body.to_owned(),
            _ => String::new(),
        };
    }
    let body = match relation.reply_to {
        Some(_) => without_quotation(body),
        None => body,
    };
    match event.text("msgtype") {
        Some("m.emote") => format!("* {body}"),
        Some("m.text" | "m.notice") | None => body.to_owned(),
        Some(_) => String::new(),
    }
}

fn without_quotation(body: &str) -> &str {
    let is_quoted = |line: &str| line.starts_with("> ") || line.trim_end() == ">";
    if !body.starts_with("> <") && !body.starts_with("> * <") {
        return body;
    }
    let mut rest = body;
    while let Some((_, after)) = rest.split_once('\n').filter(|(line, _)| is_quoted(line)) {
        rest = after;
    }
    if is_quoted(rest) {
        ""
    } else {
        rest.trim_start_matches('\n')
    }
}

fn attachment(event: &RoomEvent) -> Option<Attachment> {
    let info = |name: &str| event.content.get("info").and_then(|info| info.get(name));
    let is_voice = event.content.contains_key("org.matrix.msc3245.voice");
    let kind = match (event.kind.as_str(), event.text("msgtype")) {
        ("m.sticker", _) => AttachmentKind::Sticker,
        (_, Some("m.image")) => AttachmentKind::Photo,
        (_, Some("m.video")) => AttachmentKind::Video,
        (_, Some("m.audio")) if is_voice => AttachmentKind::Voice,
        (_, Some("m.audio")) => AttachmentKind::Audio,
        (_, Some("m.file")) => AttachmentKind::Document,
        _ => return None,
    };
    let id = match event.content.get("file") {
        Some(sealed) => SealedFile::read(sealed)?.name(),
        None => event
            .text("url")
            .filter(|url| url.starts_with("mxc://"))?
            .to_owned(),
    };
    let name = event.text("filename").or(event.text("body"));
    let mime = info("mimetype").and_then(Value::as_str);
    Some(Attachment {
        id: AttachmentId::new(id).ok()?,
        kind,
        name: name.map(|name| name.chars().take(256).collect()),
        mime: mime.map(|mime| mime.chars().take(128).collect()),
        bytes: info("size").and_then(Value::as_u64),
    })
}

/// Apps say whom they mean. Where one does not, our name in the text does; our whole id always does,
/// because somebody typed it.
fn mentions(content: &Map<String, Value>, body: &str, listener: MatrixListener<'_>) -> bool {
    if body.contains(listener.us) {
        return true;
    }
    if let Some(meant) = content.get("m.mentions") {
        let users = meant.get("user_ids").and_then(Value::as_array);
        return users
            .into_iter()
            .flatten()
            .any(|user| user.as_str() == Some(listener.us));
    }
    let formatted = content.get("formatted_body").and_then(Value::as_str);
    let is_linked = formatted.is_some_and(|formatted| {
        let escaped = listener.us.replace('@', "%40").replace(':', "%3A");
        formatted.contains(&format!("matrix.to/#/{}", listener.us))
            || formatted.contains(&format!("matrix.to/#/{escaped}"))
    });
    let names = [Some(localpart(listener.us)), listener.display];
    is_linked || names.into_iter().flatten().any(|name| has_word(body, name))
}

fn has_word(text: &str, word: &str) -> bool {
    let (text, word) = (text.to_lowercase(), word.trim().to_lowercase());
    if word.is_empty() {
        return false;
    }
    let is_bound = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(&word).any(|(at, found)| {
        is_bound(text[..at].chars().next_back())
            && is_bound(text[at + found.len()..].chars().next())
    })
}

/// The text after our name, if it begins with it. Somebody who says nothing else wants something all the
/// same.
fn without_our_name<'a>(body: &'a str, listener: MatrixListener<'_>) -> &'a str {
    let local = localpart(listener.us);
    let at = format!("@{local}");
    let names = [Some(listener.us), listener.display, Some(&*at), Some(local)];
    let body = body.trim();
    let names = names.into_iter().flatten().filter(|name| !name.is_empty());
    for name in names {
        let (Some(start), Some(rest)) = (body.get(..name.len()), body.get(name.len()..)) else {
            continue;
        };
        let ends = rest.starts_with([':', ',']) || rest.starts_with(char::is_whitespace);
        if start.eq_ignore_ascii_case(name) && ends {
            let rest = rest.trim_start_matches([':', ',']).trim_start();
            return if rest.is_empty() { body } else { rest };
        }
    }
    body
}

#[cfg(test)]
#[path = "hearing_tests.rs"]
mod tests;
