//! Read receipts and "is typing".
//!
//! Both name the message that they are about, so the last one of each chat is remembered. A message is
//! marked as read when we turn to it and not when it arrives: a stranger learns nothing.

use std::sync::PoisonError;

use hermetic_chat::{SendError, SendFailure};
use hermetic_types::{ChatId, ChatPlace, MessageId};
use serde_json::Value;
use tracing::debug;

use super::graph::GraphCallError;
use super::{WhatsAppCloud, requests};

/// The last message of somebody.
#[derive(Clone, Debug)]
pub(super) struct LastMessage {
    id: MessageId,
    is_read: bool,
}

impl WhatsAppCloud {
    pub(super) fn note_last(&self, chat: &ChatId, id: &MessageId) {
        let last = LastMessage {
            id: id.clone(),
            is_read: false,
        };
        let mut all = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        all.note(chat.clone(), last);
    }

    /// Neither waits nor tries again. Where nobody wrote since we started there is nothing to show it
    /// under.
    pub(super) async fn show_typing(&self, place: &ChatPlace) -> Result<(), SendError> {
        let Some(last) = self.last(&place.chat) else {
            return Ok(());
        };
        if !self.pace.wait(&place.chat).is_zero() {
            return Ok(());
        }
        self.note_read(&place.chat);
        let shown = self.ask(&requests::typing(&last.id)).await;
        shown.map_err(|error| SendFailure::from(error).into())
    }

    /// The two blue ticks; nobody waits for them.
    pub(super) async fn mark_read(&self, place: &ChatPlace) {
        let last = self.last(&place.chat).filter(|last| !last.is_read);
        let Some(last) = last.filter(|_| self.pace.wait(&place.chat).is_zero()) else {
            return;
        };
        self.note_read(&place.chat);
        if let Err(error) = self.ask(&requests::read(&last.id)).await {
            debug!(%error, "a message could not be marked as read");
        }
    }

    async fn ask(&self, body: &Value) -> Result<(), GraphCallError> {
        let _: Value = self.graph.post(&self.messages, body).await?;
        Ok(())
    }

    fn last(&self, chat: &ChatId) -> Option<LastMessage> {
        let all = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(chat).cloned()
    }

    fn note_read(&self, chat: &ChatId) {
        let mut all = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = all.get_mut(chat) {
            last.is_read = true;
        }
    }
}
