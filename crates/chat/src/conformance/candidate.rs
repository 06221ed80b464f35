//! An adapter to be examined, and the platform on its other side.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_types::{ChatPlace, IncomingMessage, MessageId, UserId};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Chat, ChatEvent, ChatReply, OutgoingText, ReceiveError, ReceivedEvent, SendError};

/// An adapter, and the stand-in that it is connected to.
#[derive(Debug)]
pub struct ChatCandidate {
    pub chat: Arc<dyn Chat>,
    pub stand_in: Box<dyn StandIn>,
}

/// The platform, as a test holds it: a server of our own with one person on it, who talks to the account
/// in private.
pub trait StandIn: Send + Sync + fmt::Debug {
    fn person(&self) -> UserId;

    /// The private chat with that person.
    fn place(&self) -> ChatPlace;

    /// The person writes. Where the platform repeats what was not taken, so does the stand-in.
    fn says(&self, text: &str);

    /// The person presses the button with this data under one of our messages.
    fn presses(&self, message: &MessageId, data: &str);

    /// The last thing said is handed over once more, although it was taken.
    fn repeats(&self);

    /// Hands over something that is no event at all.
    fn sends_garbage(&self);

    /// The person changes a message of theirs. Asked only where the platform tells of that.
    fn edits(&self, message: &MessageId, text: &str) {
        panic!("the platform tells that {message} reads {text:?} now, and its stand-in does not");
    }

    /// The person takes a message of theirs back. Asked only where the platform tells of that.
    fn deletes(&self, message: &MessageId) {
        panic!("the platform tells that {message} is gone, and its stand-in does not");
    }

    /// The connection over which events come breaks without a word. `false` where there is none: the platform
    /// calls us.
    fn cuts(&self) -> bool {
        false
    }

    /// What becomes of the next message that is sent.
    fn decide_next_send(&self, fate: SendFate);

    /// The texts that the person sees, each as it was changed last.
    fn shown(&self) -> Vec<String>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendFate {
    /// The platform does not take it, and trying again would end the same.
    Refused,
    /// It arrives, and the platform does not come to say so.
    ArrivesUnconfirmed,
}

pub(super) type ReceivedEvents<'a> = BoxStream<'a, Result<ReceivedEvent, ReceiveError>>;

/// Long enough for a loaded machine; nothing waits for it when all is well.
const CONFORMANCE_TIMEOUT: Duration = Duration::from_secs(30);

impl ChatCandidate {
    pub(super) fn listen(&self) -> ReceivedEvents<'_> {
        self.chat.receive(CancellationToken::new())
    }

    pub(super) async fn send(&self, text: &str) -> Vec<MessageId> {
        let sent = self.try_to_send(&ChatReply::text(outgoing(text))).await;
        sent.expect("a message can be sent")
    }

    /// To the person.
    pub(super) async fn try_to_send(&self, reply: &ChatReply) -> Result<Vec<MessageId>, SendError> {
        self.chat.send(&self.stand_in.place(), reply).await
    }
}

pub(super) fn outgoing(text: &str) -> OutgoingText {
    Redactor::new([], RedactorSettings::default())
        .redact(text)
        .into()
}

pub(super) async fn next(inbox: &mut ReceivedEvents<'_>) -> ReceivedEvent {
    timeout(CONFORMANCE_TIMEOUT, inbox.next())
        .await
        .expect("an event comes in time")
        .expect("the stream goes on")
        .expect("the platform knows us")
}

/// The next message, stored.
pub(super) async fn next_message(inbox: &mut ReceivedEvents<'_>) -> IncomingMessage {
    let received = next(inbox).await;
    received.receipt.stored();
    message(received.event)
}

pub(super) fn message(event: ChatEvent) -> IncomingMessage {
    match event {
        ChatEvent::Message(message) => message,
        other => panic!("expected a message, got {other:?}"),
    }
}

/// What happens within the patience of a test.
pub(super) async fn in_time<T>(what: &str, happens: impl Future<Output = T>) -> T {
    let happened = timeout(CONFORMANCE_TIMEOUT, happens).await;
    happened.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}
