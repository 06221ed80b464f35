//! What an event says, as far as we listen.

use hermetic_types::{Attachment, ChatId, ChatKind, Place};
use serde::Deserialize;
use serde_json::Value;

use crate::Hearing;
use crate::envelope::{Address, RawData, RawDestination, RawEnvelope, RawEvent, RawQuote};
use crate::mentions;

#[derive(Debug)]
pub(crate) enum Heard {
    Said(Box<Said>),
    /// Not for us, with the reason.
    Nothing(&'static str),
    /// A message that the daemon could not read.
    Unreadable {
        from: Option<Address>,
        why: String,
    },
    Malformed(String),
}

/// Something somebody did. Who they are to us is not decided yet.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) sender: Address,
    /// What they call themselves.
    pub(crate) display: String,
    pub(crate) place: Place,
    /// By the sender's clock: with the sender it names the message.
    pub(crate) timestamp: u64,
    pub(crate) act: Act,
}

#[derive(Debug)]
pub(crate) enum Act {
    Words {
        text: String,
        quote: Option<Quote>,
        mentions_us: bool,
        attachments: Vec<Attachment>,
    },
    /// To a message of ours.
    Reaction { emoji: String, target: u64 },
    /// Of a message of their own.
    Deletion { target: u64 },
}

#[derive(Debug)]
pub(crate) struct Quote {
    pub(crate) author: Address,
    pub(crate) timestamp: u64,
    pub(crate) from_us: bool,
    pub(crate) text: String,
}

/// Whom an event is read for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listener<'a> {
    pub(crate) us: &'a Address,
    pub(crate) hearing: &'a Hearing,
}

pub(crate) fn hear(event: &Value, listener: Listener<'_>) -> Heard {
    let event = match RawEvent::deserialize(event) {
        Ok(event) => event,
        Err(error) => return Heard::Malformed(error.to_string()),
    };
    // A socket hands over what came to any account of the daemon.
    if event.account.is_some() && event.account != listener.us.number {
        return Heard::Nothing("it came to another account");
    }
    let Some(mut envelope) = event.envelope else {
        return Heard::Nothing("nobody sent it");
    };
    let source = envelope.source();
    if let (Some(exception), None) = (event.exception, &envelope.data_message) {
        return Heard::Unreadable {
            from: source.map(|(address, _)| address),
            why: exception.kind,
        };
    }
    let Some((sender, display)) = source else {
        return Heard::Nothing("whoever sent it is not shown");
    };
    match (envelope.data_message.take(), own_words(&mut envelope)) {
        (Some(data), _) => hear_data(&data, sender, display, listener),
        (None, Some(sent)) => hear_own(&sent, sender, display, listener),
        (None, None) => Heard::Nothing("it says nothing"),
    }
}

fn own_words(envelope: &mut RawEnvelope) -> Option<Value> {
    envelope.sync_message.take()?.sent_message
}

/// What the owner of the account wrote on another device: meant for us where they write to themselves,
/// and in groups.
fn hear_own(sent: &Value, sender: Address, display: String, listener: Listener<'_>) -> Heard {
    if !sender.is(listener.us) {
        return Heard::Nothing("somebody else's device");
    }
    let destination = RawDestination::deserialize(sent).ok();
    let destination = destination.and_then(RawDestination::address);
    let to_group = sent.get("groupInfo").is_some_and(|group| !group.is_null());
    let to_self = destination.is_some_and(|to| to.is(listener.us));
    if !to_group && !to_self {
        return Heard::Nothing("the owner wrote to somebody else");
    }
    hear_data(sent, sender, display, listener)
}

fn hear_data(data: &Value, sender: Address, display: String, listener: Listener<'_>) -> Heard {
    let data = match RawData::deserialize(data) {
        Ok(data) => data,
        Err(error) => return Heard::Malformed(error.to_string()),
    };
    let Some(place) = place(&data, &sender) else {
        return Heard::Malformed("its place has no name".to_owned());
    };
    if data.story_context.is_some() {
        return Heard::Nothing("a reply to a story");
    }
    match act(&data, &place, listener) {
        Ok(act) => Heard::Said(Box::new(Said {
            sender,
            display,
            place,
            timestamp: data.timestamp,
            act,
        })),
        Err(why) => Heard::Nothing(why),
    }
}

fn act(data: &RawData, place: &Place, listener: Listener<'_>) -> Result<Act, &'static str> {
    let Listener { us, hearing } = listener;
    if place.kind == ChatKind::Group && !hearing.groups.hold(&place.chat) {
        return Err("a group we do not listen to");
    }
    if let Some(reaction) = &data.reaction {
        let ours = reaction.target().is_some_and(|target| target.is(us));
        return match ours && !reaction.is_remove {
            true => Ok(Act::Reaction {
                emoji: reaction.emoji.clone(),
                target: reaction.target_sent_timestamp,
            }),
            false => Err("a reaction to somebody else, or one taken back"),
        };
    }
    if let Some(delete) = &data.remote_delete {
        return Ok(Act::Deletion {
            target: delete.timestamp,
        });
    }
    let (text, mentions) = (data.message.as_deref(), data.mentions.as_deref());
    let (text, mentions) = (text.unwrap_or_default(), mentions.unwrap_or_default());
    let quote = data.quote.as_ref().and_then(|quote| read_quote(quote, us));
    let mentions_us = place.kind == ChatKind::Dm
        || mentions::name_us(mentions, us)
        || quote.as_ref().is_some_and(|quote| quote.from_us);
    let words = mentions::in_words(text, mentions, us);
    let attachments = data.attachments();
    if words.trim().is_empty() && attachments.is_empty() {
        return Err("it says nothing");
    }
    if hearing.require_mention && !mentions_us {
        return Err("it does not mention us");
    }
    // The space after a mention that fell away.
    let text = match words.starts_with(char::is_whitespace) && mentions_us {
        true => words.trim_start().to_owned(),
        false => words,
    };
    Ok(Act::Words {
        text,
        quote,
        mentions_us,
        attachments,
    })
}

fn place(data: &RawData, sender: &Address) -> Option<Place> {
    let (chat, kind) = match &data.group_info {
        Some(group) => (group.group_id.as_str(), ChatKind::Group),
        None => (sender.name(), ChatKind::Dm),
    };
    Some(Place {
        chat: ChatId::new(chat).ok()?,
        kind,
        thread: None,
    })
}

fn read_quote(quote: &Value, us: &Address) -> Option<Quote> {
    let quote = RawQuote::deserialize(quote).ok()?;
    let author = quote.author()?;
    let text = quote.text.as_deref().unwrap_or_default();
    let mentions = quote.mentions.as_deref().unwrap_or_default();
    Some(Quote {
        from_us: author.is(us),
        timestamp: quote.id,
        text: mentions::in_words(text, mentions, us),
        author,
    })
}
