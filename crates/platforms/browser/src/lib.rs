//! The chat in the browser: a platform that is ourselves.
//!
//! People write on a page of the dashboard, which hands it to [`BrowserAdapter::say`]; what they see there is
//! what the store keeps. Who they are is who signed in to the dashboard: nobody else gets as far as here. A
//! message is on the disk before anybody is told that we have it, and is handed to the gateway until it has
//! signed for it, also after a restart ([`handover`]).
//!
//! A person's conversations are the threads of one private chat whose id is the person's, so that no
//! conversation can be anybody else's.

#![forbid(unsafe_code)]

mod handover;
mod replies;
mod saying;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use hermetic_chat::{
    AttachmentStream, ButtonLimits, Capabilities, Chat, ChatReply, ChatState, ChoiceShape,
    DownloadError, MissedMessages, OutgoingFile, OutgoingText, ReceiveError, ReceivedEvent,
    Redelivery, ReplyButton, ReplyRule, ReportedChanges, SendError, SendFailure, TextLimit,
    UnaskedMessages,
};
use hermetic_store::BrowserChatRows;
use hermetic_types::{
    AccountId, Attachment, ButtonPress, ChatId, ChatKind, ChatPlace, InvalidName, MessageId,
    Platform, SharedClock, ThreadId, UserId,
};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use handover::HandoverQueue;

pub use replies::{ReplyKeeper, StoredButton};
pub use saying::{
    BrowserPress, BrowserWords, MOST_CONVERSATIONS, PressRefused, SayRefused, operator_role,
};

/// The largest file, either way. It is kept as one value of the store.
pub const MOST_FILE_BYTES: u64 = 8 << 20;

/// Files that come with one message.
pub const MOST_FILES: usize = 4;

/// Of one message of a person's.
pub const MOST_TEXT_BYTES: usize = 32 << 10;

const TYPING: Duration = Duration::from_secs(6);

/// A key is kept with its message, so it counts for as long as that.
const KEYS_ARE_KNOWN: Duration = Duration::from_secs(3650 * 24 * 3600);

const CAPABILITIES: Capabilities = Capabilities {
    text: TextLimit::bytes(64 << 10),
    edits: true,
    reports_changes: ReportedChanges::NONE,
    buttons: Some(ButtonLimits {
        most: 100,
        data_bytes: ReplyButton::DATA_BYTES,
        shown: ChoiceShape::Buttons,
    }),
    files_in: Some(MOST_FILE_BYTES),
    files_out: Some(MOST_FILE_BYTES),
    threads: true,
    typing: Some(TYPING),
    redelivery: Redelivery::Always,
    missed: MissedMessages::Repeated,
    send_keys: Some(KEYS_ARE_KNOWN),
    ordered_messages: true,
    replies: ReplyRule::Free,
    unasked: UnaskedMessages::AnyTime,
};

/// The one account of this platform, as the gateway and the pages hold it.
#[derive(Debug)]
pub struct BrowserAdapter {
    account: AccountId,
    rows: BrowserChatRows,
    replies: Arc<dyn ReplyKeeper>,
    clock: SharedClock,
    state: Mutex<ChatState>,
    handover: HandoverQueue,
    /// Until when an answer is being written, by conversation.
    writing: Mutex<HashMap<i64, Instant>>,
    changes: watch::Sender<u64>,
}

impl BrowserAdapter {
    pub fn new(rows: BrowserChatRows, clock: SharedClock) -> Self {
        let replies = Arc::new(rows.clone());
        Self::keeping_replies_in(replies, rows, clock)
    }

    /// One whose replies go through somebody else's hands, such as a test's.
    pub fn keeping_replies_in(
        replies: Arc<dyn ReplyKeeper>,
        rows: BrowserChatRows,
        clock: SharedClock,
    ) -> Self {
        Self {
            account: Platform::Browser.into(),
            rows,
            replies,
            clock,
            state: Mutex::new(ChatState::Starting),
            handover: HandoverQueue::default(),
            writing: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// The same under another name.
    pub fn named(mut self, account: AccountId) -> Self {
        self.account = account;
        self
    }

    /// Counts up whenever a conversation looks different.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Whether an answer is being written in this conversation.
    pub fn is_writing(&self, conversation: i64) -> bool {
        let until = self.writing().get(&conversation).copied();
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Where a conversation of a person's is.
    pub fn place(person: &UserId, conversation: i64) -> Result<ChatPlace, InvalidName> {
        Ok(ChatPlace {
            chat: ChatId::new(person.as_str())?,
            kind: ChatKind::Dm,
            thread: Some(ThreadId::from(conversation)),
        })
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn set_state(&self, state: ChatState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn writing(&self) -> MutexGuard<'_, HashMap<i64, Instant>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No longer, because something was said.
    fn wrote(&self, conversation: i64) {
        self.writing().remove(&conversation);
        self.changed();
    }
}

/// Whose place this is, and which of their conversations.
fn read_place(place: &ChatPlace) -> Result<(&str, i64), SendFailure> {
    let number = place.thread.as_ref();
    let number = number.and_then(|thread| thread.as_str().parse().ok());
    number
        .map(|number| (place.chat.as_str(), number))
        .ok_or_else(|| refused("there is no such conversation"))
}

fn refused(why: &str) -> SendFailure {
    SendFailure::Refused {
        description: why.to_owned(),
    }
}

impl Chat for BrowserAdapter {
    fn account(&self) -> &AccountId {
        &self.account
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn state(&self) -> ChatState {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn is_own(&self) -> bool {
        true
    }

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        self.hand_over(stop).boxed()
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        self.show(place, reply).boxed()
    }

    fn edit<'a>(
        &'a self,
        place: &'a ChatPlace,
        message: &'a MessageId,
        text: &'a OutgoingText,
        buttons: &'a [Vec<ReplyButton>],
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.change(place, message, text, buttons).boxed()
    }

    fn typing<'a>(&'a self, place: &'a ChatPlace) -> BoxFuture<'a, Result<(), SendError>> {
        async move {
            let (_, conversation) = read_place(place)?;
            let now = Instant::now();
            let mut writing = self.writing();
            // Kept no longer than they mean something, so that it stays small.
            writing.retain(|_, until| *until > now);
            let is_news = writing.insert(conversation, now + TYPING).is_none();
            // The lock is let go first: whoever is told looks at once whether somebody writes.
            drop(writing);
            if is_news {
                self.changed();
            }
            Ok(())
        }
        .boxed()
    }

    fn answer_press<'a>(
        &'a self,
        press: &'a ButtonPress,
        notice: &'a OutgoingText,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        self.note_press(press, notice).boxed()
    }

    fn send_file<'a>(
        &'a self,
        place: &'a ChatPlace,
        file: &'a OutgoingFile,
    ) -> BoxFuture<'a, Result<MessageId, SendError>> {
        self.show_file(place, file).boxed()
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        limit: u64,
    ) -> BoxFuture<'a, Result<AttachmentStream, DownloadError>> {
        async move {
            let gone = || DownloadError::Refused {
                description: "it is not kept any more".to_owned(),
            };
            let (id, person) = attachment.id.as_str().split_once(':').ok_or_else(gone)?;
            let id = id.parse().map_err(|_| gone())?;
            // By the person as well, who is part of the attachment's name: a number alone would
            // reach other people's files.
            let found = self.rows.file(person, id).await;
            let found = found.map_err(|error| DownloadError::Failed(error.into()))?;
            let (file, bytes) = found.ok_or_else(gone)?;
            if file.size > limit {
                return Err(DownloadError::TooLarge { limit });
            }
            Ok(stream::once(async { Ok(Bytes::from(bytes)) }).boxed())
        }
        .boxed()
    }

    fn private_place<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<ChatPlace, SendError>> {
        async move {
            let latest = self.rows.conversations(user.as_str(), 1).await;
            let latest = latest.map_err(|error| SendFailure::NotSent(error.into()))?;
            // Whoever never wrote here does not look here either.
            let latest = latest
                .first()
                .ok_or_else(|| refused("they have not opened a conversation in the browser"))?;
            let place = Self::place(user, latest.id);
            Ok(place.map_err(|_| refused("this person has no place here"))?)
        }
        .boxed()
    }
}
