//! What others see of us besides words: that we write, and that we have read.
//!
//! Both are shown only where an answer is on its way. A stranger whom nobody answers learns neither.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join;
use hermetic_chat::{SendError, SendFailure};
use hermetic_types::{ChatId, ChatKind, ChatPlace, MessageId};
use serde_json::json;
use tokio::time::Instant;
use tracing::debug;

use crate::SignalAdapter;
use crate::names::MessageName;

/// How long Signal's apps show it after one call.
pub(crate) const TYPING: Duration = Duration::from_secs(15);
/// Private chats whose messages were not answered yet.
const MOST_CHATS: usize = 1000;
/// Messages of one of them.
const MOST_MESSAGES: usize = 50;

#[derive(Debug, Default)]
pub(crate) struct PresenceSignals {
    shown: Mutex<ShownPresence>,
}

#[derive(Debug, Default)]
struct ShownPresence {
    /// Where we are seen writing, and since when.
    typing: HashMap<ChatId, Instant>,
    /// Messages of private chats that nobody was told to be read.
    unread: HashMap<ChatId, Vec<u64>>,
}

impl PresenceSignals {
    pub(crate) fn note_unread(&self, chat: &ChatId, timestamp: u64) {
        let mut shown = self.lock();
        if shown.unread.len() >= MOST_CHATS && !shown.unread.contains_key(chat) {
            return;
        }
        let unread = shown.unread.entry(chat.clone()).or_default();
        if unread.len() < MOST_MESSAGES {
            unread.push(timestamp);
        }
    }

    fn take_unread(&self, chat: &ChatId) -> Vec<u64> {
        self.lock().unread.remove(chat).unwrap_or_default()
    }

    fn note_typing(&self, chat: &ChatId) {
        let mut shown = self.lock();
        shown.typing.retain(|_, since| since.elapsed() < TYPING);
        shown.typing.insert(chat.clone(), Instant::now());
    }

    /// Whether we are seen writing there; from now on we are not.
    fn end_typing(&self, chat: &ChatId) -> bool {
        let ended = self.lock().typing.remove(chat);
        ended.is_some_and(|since| since.elapsed() < TYPING)
    }

    fn lock(&self) -> MutexGuard<'_, ShownPresence> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SignalAdapter {
    pub(crate) async fn show_typing(&self, place: &ChatPlace) -> Result<(), SendError> {
        let target = self.target(place)?;
        // Nobody watches us write into their own notes, and late it is worth nothing.
        if target.get("noteToSelf").is_some() || !self.pace.wait(&place.chat).is_zero() {
            return Ok(());
        }
        let typing = async {
            let shown = self.daemon.call("sendTyping", target).await;
            if let Some(wait) = shown.as_ref().err().and_then(|error| error.retry_after()) {
                self.pace.hold(&place.chat, wait);
            }
            shown
        };
        let (_, shown) = join(self.tell_read(place, None), typing).await;
        shown.map_err(SendFailure::from)?;
        self.presence.note_typing(&place.chat);
        Ok(())
    }

    /// Says that what is answered now was read, and that we write no longer: the answer comes.
    pub(crate) async fn show_reading(&self, place: &ChatPlace, answered: Option<&MessageId>) {
        join(self.tell_read(place, answered), self.stop_typing(place)).await;
    }

    async fn stop_typing(&self, place: &ChatPlace) {
        if !self.presence.end_typing(&place.chat) {
            return;
        }
        let Ok(mut target) = self.target(place) else {
            return;
        };
        target["stop"] = json!(true);
        if let Err(error) = self.daemon.call("sendTyping", target).await {
            debug!(%error, "that we write no longer could not be shown");
        }
    }

    /// In private all that is unread; in a group the one message that is answered, because the others may
    /// be a stranger's.
    async fn tell_read(&self, place: &ChatPlace, answered: Option<&MessageId>) {
        let (reader, read) = match place.kind {
            ChatKind::Dm => (
                place.chat.as_str().to_owned(),
                self.presence.take_unread(&place.chat),
            ),
            _ => match answered.and_then(MessageName::read) {
                Some(MessageName {
                    timestamp,
                    author: Some(author),
                }) => (author, vec![timestamp]),
                _ => return,
            },
        };
        if read.is_empty() || self.people.is_us(&reader) {
            return;
        }
        let receipt = json!({ "recipient": reader, "targetTimestamp": read, "type": "read" });
        if let Err(error) = self.daemon.call("sendReceipt", receipt).await {
            debug!(%error, "it could not be told that something was read");
        }
    }
}
