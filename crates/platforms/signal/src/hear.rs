//! What an event says, as far as we listen.

use hermetic_types::{Attachment, ChatId, ChatKind, ChatPlace};
use serde::Deserialize;
use serde_json::Value;

use crate::SignalHearing;
use crate::envelope::{
    RawDataMessage, RawDestination, RawEdit, RawEnvelope, RawEvent, RawQuote, SignalAddress,
};
use crate::mentions;

#[derive(Debug)]
pub(crate) enum HeardEnvelope {
    Said(Box<SignalUtterance>),
    /// Not for us, with the reason.
    Nothing(&'static str),
    /// A message that the daemon could not read.
    Unreadable {
        from: Option<SignalAddress>,
        why: String,
    },
    Malformed(String),
}

/// Something somebody did. Who they are to us is not decided yet.
#[derive(Debug)]
pub(crate) struct SignalUtterance {
    pub(crate) sender: SignalAddress,
    /// What they call themselves.
    pub(crate) display: String,
    pub(crate) place: ChatPlace,
    /// By the sender's clock: with the sender it names the message.
    pub(crate) timestamp: u64,
    /// The message that these are other words for.
    pub(crate) edits: Option<u64>,
    pub(crate) act: SignalAct,
}

#[derive(Debug)]
pub(crate) enum SignalAct {
    Words {
        text: String,
        quote: Option<SignalQuote>,
        mentions_us: bool,
        attachments: Vec<Attachment>,
    },
    /// To a message of ours.
    Reaction { emoji: String, target: u64 },
    /// Of a message of their own.
    Deletion { target: u64 },
}

#[derive(Debug)]
pub(crate) struct SignalQuote {
    pub(crate) author: SignalAddress,
    pub(crate) timestamp: u64,
    pub(crate) from_us: bool,
    pub(crate) text: String,
}

/// The account for which an event is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignalListener<'a> {
    pub(crate) us: &'a SignalAddress,
    pub(crate) hearing: &'a SignalHearing,
}

pub(crate) fn hear(event: &Value, listener: SignalListener<'_>) -> HeardEnvelope {
    let event = match RawEvent::deserialize(event) {
        Ok(event) => event,
        Err(error) => return HeardEnvelope::Malformed(error.to_string()),
    };
    // A socket hands over what came to any account of the daemon.
    if event.account.is_some() && event.account != listener.us.number {
        return HeardEnvelope::Nothing("it came to another account");
    }
    let Some(mut envelope) = event.envelope else {
        return HeardEnvelope::Nothing("nobody sent it");
    };
    let source = envelope.source();
    if let (Some(exception), None) = (event.exception, &envelope.data_message) {
        return HeardEnvelope::Unreadable {
            from: source.map(|(address, _)| address),
            why: exception.kind,
        };
    }
    let Some((sender, display)) = source else {
        return HeardEnvelope::Nothing("whoever sent it is not shown");
    };
    if let Some(edit) = envelope.edit_message.take() {
        return hear_data(&edit.data_message, sender, display, listener)
            .into_edit_of(edit.target_sent_timestamp);
    }
    match (envelope.data_message.take(), own_words(&mut envelope)) {
        (Some(data), _) => hear_data(&data, sender, display, listener),
        (None, Some(sent)) => hear_own(&sent, sender, display, listener),
        (None, None) => HeardEnvelope::Nothing("it says nothing"),
    }
}

fn own_words(envelope: &mut RawEnvelope) -> Option<Value> {
    envelope.sync_message.take()?.sent_message
}

/// What the owner of the account wrote on another device: meant for us where they write to themselves,
/// and in groups.
fn hear_own(
    sent: &Value,
    sender: SignalAddress,
    display: String,
    listener: SignalListener<'_>,
) -> HeardEnvelope {
    if !sender.is(listener.us) {
        return HeardEnvelope::Nothing("somebody else's device");
    }
    let destination = RawDestination::deserialize(sent).ok();
    let destination = destination.and_then(RawDestination::address);
    let to_group = sent.get("groupInfo").is_some_and(|group| !group.is_null());
    let to_self = destination.is_some_and(|to| to.is(listener.us));
    if !to_group && !to_self {
        return HeardEnvelope::Nothing("the owner wrote to somebody else");
    }
    match sent.get("editMessage").map(RawEdit::deserialize) {
        Some(Ok(edit)) => hear_data(&edit.data_message, sender, display, listener)
            .into_edit_of(edit.target_sent_timestamp),
        _ => hear_data(sent, sender, display, listener),
    }
}

impl HeardEnvelope {
    /// Only words can be changed.
    fn into_edit_of(self, target: u64) -> Self {
        match self {
            Self::Said(said) if matches!(said.act, SignalAct::Words { .. }) => {
                let edits = Some(target);
                Self::Said(Box::new(SignalUtterance { edits, ..*said }))
            }
            Self::Said(_) => Self::Nothing("a change of something else than words"),
            other => other,
        }
    }
}

fn hear_data(
    data: &Value,
    sender: SignalAddress,
    display: String,
    listener: SignalListener<'_>,
) -> HeardEnvelope {
    let data = match RawDataMessage::deserialize(data) {
        Ok(data) => data,
        Err(error) => return HeardEnvelope::Malformed(error.to_string()),
    };
    let Some(place) = place(&data, &sender) else {
        return HeardEnvelope::Malformed("its place has no name".to_owned());
    };
    if data.story_context.is_some() {
        return HeardEnvelope::Nothing("a reply to a story");
    }
    match act(&data, &place, listener) {
        Ok(act) => HeardEnvelope::Said(Box::new(SignalUtterance {
            sender,
            display,
            place,
            timestamp: data.timestamp,
            edits: None,
            act,
        })),
        Err(why) => HeardEnvelope::Nothing(why),
    }
}

fn act(
    data: &RawDataMessage,
    place: &ChatPlace,
    listener: SignalListener<'_>,
) -> Result<SignalAct, &'static str> {
    let SignalListener { us, hearing } = listener;
    if place.kind == ChatKind::Group && !hearing.groups.hold(&place.chat) {
        return Err("a group we do not listen to");
    }
    if let Some(reaction) = &data.reaction {
        let ours = reaction.target().is_some_and(|target| target.is(us));
        return match ours && !reaction.is_remove {
            true => Ok(SignalAct::Reaction {
                emoji: reaction.emoji.clone(),
                target: reaction.target_sent_timestamp,
            }),
            false => Err("a reaction to somebody else, or one taken back"),
        };
    }
    if let Some(delete) = &data.remote_delete {
        return Ok(SignalAct::Deletion {
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
    Ok(SignalAct::Words {
        text,
        quote,
        mentions_us,
        attachments,
    })
}

fn place(data: &RawDataMessage, sender: &SignalAddress) -> Option<ChatPlace> {
    let (chat, kind) = match &data.group_info {
        Some(group) => (group.group_id.as_str(), ChatKind::Group),
        None => (sender.name(), ChatKind::Dm),
    };
    Some(ChatPlace {
        chat: ChatId::new(chat).ok()?,
        kind,
        thread: None,
    })
}

fn read_quote(quote: &Value, us: &SignalAddress) -> Option<SignalQuote> {
    let quote = RawQuote::deserialize(quote).ok()?;
    let author = quote.author()?;
    let text = quote.text.as_deref().unwrap_or_default();
    let mentions = quote.mentions.as_deref().unwrap_or_default();
    Some(SignalQuote {
        from_us: author.is(us),
        timestamp: quote.id,
        text: mentions::in_words(text, mentions, us),
        author,
    })
}
