//! The seam: what a chat platform promises.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{self, BoxFuture, FutureExt};
use futures::stream::BoxStream;
use hermetic_types::{
    AccountId, Attachment, ButtonPress, ChatPlace, DeletedMessage, IncomingMessage, MessageId,
    UserId,
};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    AccountCheck, Capabilities, ChatReply, CheckError, HttpIntake, OutgoingFile, OutgoingText,
    ReplyButton, SendKey,
};

/// One account on a chat platform.
///
/// What an implementer promises:
/// - an event counts as taken over only when its [`Receipt`] is signed. Until then it is handed over
///   again, if need be after a restart: by the platform itself, or by a sweep of its history where
///   `capabilities` say that the platform does not. The same event may come twice, always with the same
///   update id, whichever way it came;
/// - trouble that may pass (network, throttling, a rival poller) is ridden out inside `receive`
///   and shown by `state`; an `Err` from the stream is final;
/// - what a sender wrote can neither panic nor stall it, and one malformed event does not hold up
///   the next;
/// - a failed send says whether the message may have arrived all the same;
/// - text leaves only as [`OutgoingText`], files only as bytes the caller read;
/// - what `capabilities` deny is refused, which is what the methods here do by themselves.
pub trait Chat: Send + Sync + fmt::Debug {
    fn account(&self) -> &AccountId;

    fn capabilities(&self) -> &Capabilities;

    fn state(&self) -> ChatState;

    /// Whether the platform is the gateway itself. It is there for as long as the gateway is, so it is no
    /// reason to go on when every other one is lost.
    fn is_own(&self) -> bool {
        false
    }

    /// Whether any process with the same configuration can answer here, whichever of them listens: nothing that an
    /// answer needs is only where the message was heard.
    fn is_portable(&self) -> bool {
        false
    }

    /// Asks the platform who this account is and what it may not do, without receiving anything. For
    /// `doctor` and for whoever sets an account up.
    fn check(&self) -> BoxFuture<'_, Result<AccountCheck, CheckError>> {
        future::ready(Ok(AccountCheck::default())).boxed()
    }

    /// Everything that happens, until `stop`. One stream at a time.
    ///
    /// After `stop` it is polled to its end, for some seconds at most: what an adapter holds that is nowhere else is
    /// handed out or put away until then.
    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>>;

    /// What is to be served over HTTP for this account, if the platform calls us.
    fn intake(self: Arc<Self>) -> Option<HttpIntake> {
        None
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>>;

    /// Replaces the text and buttons of one of our messages. An edit that changes nothing is fine.
    fn edit<'a>(
        &'a self,
        _place: &'a ChatPlace,
        _message: &'a MessageId,
        _text: &'a OutgoingText,
        _buttons: &'a [Vec<ReplyButton>],
    ) -> BoxFuture<'a, Result<(), SendError>> {
        refused("a message cannot be changed here")
    }

    /// An edit that is worth nothing late, as of an answer that still grows: it waits for nothing and
    /// is tried once.
    fn refresh<'a>(
        &'a self,
        place: &'a ChatPlace,
        message: &'a MessageId,
        text: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.edit(place, message, text, &[])
    }

    /// Shows that an answer is being written, for as long as `capabilities` say.
    fn typing<'a>(&'a self, _place: &'a ChatPlace) -> BoxFuture<'a, Result<(), SendError>> {
        refused("typing cannot be shown here")
    }

    /// Tells the platform that a press has reached us, before it is known what comes of it. It waits for
    /// nothing and is tried once: platforms allow three seconds.
    fn acknowledge_press<'a>(
        &'a self,
        _press: &'a ButtonPress,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        future::ready(Ok(())).boxed()
    }

    /// Says what came of a press to who pressed, and acknowledges it unless that was done.
    fn answer_press<'a>(
        &'a self,
        _press: &'a ButtonPress,
        _notice: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        future::ready(Ok(())).boxed()
    }

    fn send_file<'a>(
        &'a self,
        _place: &'a ChatPlace,
        _file: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        refused("files cannot be sent here")
    }

    /// The bytes of an attachment. More than `limit` of them is an error, whatever was claimed.
    fn download<'a>(
        &'a self,
        _attachment: &'a Attachment,
        _limit: u64,
    ) -> BoxFuture<'a, Result<AttachmentStream, DownloadError>> {
        let description = "files do not come from here".to_owned();
        future::ready(Err(DownloadError::Refused { description })).boxed()
    }

    /// The place where a person is alone with this account; opened first, if need be.
    fn private_place<'a>(
        &'a self,
        _user: &'a UserId,
    ) -> BoxFuture<'a, Result<ChatPlace, SendError>> {
        refused("nobody can be addressed privately here")
    }
}

fn refused<'a, T: Send + 'a>(description: &str) -> BoxFuture<'a, Result<T, SendError>> {
    let description = description.to_owned();
    future::ready(Err(SendFailure::Refused { description }.into())).boxed()
}

pub type AttachmentStream = BoxStream<'static, Result<Bytes, DownloadError>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatState {
    Starting,
    Connected,
    /// Not now, but we keep trying.
    Retrying {
        why: String,
    },
    Stopped {
        why: String,
    },
}

/// One event, and the receipt for it.
#[derive(Debug)]
pub struct ReceivedEvent {
    pub event: ChatEvent,
    pub receipt: Receipt,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatEvent {
    Message(IncomingMessage),
    Press(ButtonPress),
    /// Whatever that message asked for is not wanted any more. What deletions a platform tells at all
    /// differs; one that is missed costs an answer nobody reads.
    Deleted(DeletedMessage),
    /// A message as whoever wrote it changed it: its own id, and an update id that no other change of it
    /// has. Whether that comes in time is the gateway's business.
    Edited(IncomingMessage),
    /// A message of ours that the platform had taken did not arrive after all.
    Undelivered(UndeliveredReply),
}

/// A reply that was sent, as far as we knew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndeliveredReply {
    pub account: AccountId,
    pub key: SendKey,
    pub why: String,
}

/// Signed by [`Receipt::stored`] when the event is safe, or by [`Receipt::turned_away`] when nobody wants
/// it. Dropped unsigned, the event comes again.
#[derive(Debug)]
#[must_use = "an event whose receipt is dropped comes again"]
pub struct Receipt(oneshot::Sender<Signature>);

/// The platform's half of a [`Receipt`].
#[derive(Debug)]
pub struct ReceiptWaiter(oneshot::Receiver<Signature>);

/// What a receipt was signed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    Stored,
    /// Somebody who may not speak. What a platform remembers for their sake they could fill a disk with.
    TurnedAway,
}

#[derive(Debug, Error)]
pub enum ReceiveError {
    /// Whatever it is, another try would end the same: a token that is not valid, a permission that is
    /// missing.
    #[error("{account} is not listened to any more: {description}")]
    Ended {
        account: AccountId,
        description: String,
    },
}

#[derive(Debug, Error)]
#[error("{failure}")]
pub struct SendError {
    /// Parts that did arrive before.
    pub sent: Vec<MessageId>,
    #[source]
    pub failure: SendFailure,
}

#[derive(Debug, Error)]
pub enum SendFailure {
    #[error("there is nothing to send")]
    Empty,
    #[error("too long: at most {limit} {unit}")]
    TooLong { limit: usize, unit: &'static str },
    /// Sending it again would end the same.
    #[error("the platform refused: {description}")]
    Refused { description: String },
    #[error("the platform wants us to wait {}s", retry_after.as_secs())]
    Throttled { retry_after: Duration },
    /// It certainly did not arrive.
    #[error("it could not be sent")]
    NotSent(#[source] Box<dyn Error + Send + Sync>),
    /// It may have arrived: sending it again may show it twice.
    #[error("it may not have arrived")]
    Uncertain(#[source] Box<dyn Error + Send + Sync>),
}

#[derive(Debug, Error)]
pub enum DownloadError {
    #[error("the file is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("the platform refused: {description}")]
    Refused { description: String },
    #[error("the file could not be fetched")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

impl Receipt {
    /// A receipt for the gateway, and the half by which the platform learns what became of it.
    pub fn pair() -> (Self, ReceiptWaiter) {
        let (sign, signed) = oneshot::channel();
        (Self(sign), ReceiptWaiter(signed))
    }

    /// The event is where a crash cannot lose it.
    pub fn stored(self) {
        self.sign(Signature::Stored);
    }

    /// The event is of somebody who may not speak: it is over, and nothing of it is kept.
    pub fn turned_away(self) {
        self.sign(Signature::TurnedAway);
    }

    fn sign(self, signature: Signature) {
        // Nobody listens any more when the platform was stopped meanwhile: the event will come
        // again, and its update id tells.
        let _ = self.0.send(signature);
    }
}

impl ReceiptWaiter {
    /// Whether the receipt was signed, once that is decided.
    pub async fn signed(self) -> bool {
        self.signature().await.is_some()
    }

    /// What it was signed with, once that is decided; nothing if it never will be.
    pub async fn signature(self) -> Option<Signature> {
        self.0.await.ok()
    }
}

impl From<SendFailure> for SendError {
    fn from(failure: SendFailure) -> Self {
        Self {
            sent: Vec::new(),
            failure,
        }
    }
}

impl SendFailure {
    /// Whether sending it again cannot show it twice.
    pub fn is_safe_to_repeat(&self) -> bool {
        matches!(self, Self::Throttled { .. } | Self::NotSent(_))
    }
}
