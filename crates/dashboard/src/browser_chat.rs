//! The seam to the chat in the browser.

use std::fmt;

use futures::future::BoxFuture;
use hermetic_store::NewBrowserFile;
use hermetic_types::{ConversationKey, UserId};
use thiserror::Error;
use tokio::sync::watch;

/// Takes what people say on the page for chatting. What they are shown there is read from the store.
///
/// What an implementer promises: the person is whoever signed in, and only operators are handed over; when
/// `say` ends well what was said survives a power cut; nothing happened where an error is given back, but for a
/// press of which the error says that it may have been taken.
pub trait BrowserChat: Send + Sync + fmt::Debug {
    /// A new conversation of this person's.
    fn open<'a>(&'a self, person: &'a UserId) -> BoxFuture<'a, Result<i64, ChatRefused>>;

    fn say(&self, words: ChatWords) -> BoxFuture<'_, Result<(), ChatRefused>>;

    fn press(&self, press: ChatPress) -> BoxFuture<'_, Result<(), ChatRefused>>;

    /// Whether an answer is being written.
    fn is_writing(&self, conversation: i64) -> bool;

    /// Counts up whenever a conversation looks different.
    fn changes(&self) -> watch::Receiver<u64>;

    /// The name under which the rest of the gateway knows a conversation.
    fn key(&self, person: &UserId, conversation: i64) -> Option<ConversationKey>;

    fn bounds(&self) -> ChatBounds;
}

/// Something that a person says.
#[derive(Clone, Debug)]
pub struct ChatWords {
    pub person: UserId,
    pub conversation: i64,
    pub text: String,
    /// The same one twice is one message.
    pub once: String,
    pub files: Vec<NewBrowserFile>,
}

/// A button that a person presses.
#[derive(Clone, Debug)]
pub struct ChatPress {
    pub person: UserId,
    pub conversation: i64,
    pub message: i64,
    pub data: String,
}

/// How much one message may hold.
#[derive(Clone, Copy, Debug)]
pub struct ChatBounds {
    pub text_bytes: usize,
    pub files: usize,
    pub file_bytes: u64,
}

/// What was not taken, and why, for whoever said it.
#[derive(Clone, Debug, Error)]
#[error("{why}")]
pub struct ChatRefused {
    pub why: String,
    /// It may go better later.
    pub is_passing: bool,
    /// The token of the form stands for something else that was said.
    pub is_other: bool,
}
