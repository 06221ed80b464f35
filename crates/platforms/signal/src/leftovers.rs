//! Events that had been received, and were not stored when listening ended.
//!
//! The daemon has forgotten them by then, so they are kept here until the next start has stored them.

use std::sync::Arc;

use hermetic_chat::{AdapterState, AdapterStateError, ChatEvent, SaveDurability};
use hermetic_types::{ButtonPress, IncomingMessage, UpdateId};
use serde::{Deserialize, Serialize};
use tracing::{error, warn};

/// What the keys of kept events begin with.
const PREFIX: &str = "left:";

#[derive(Debug)]
pub(crate) struct UnstoredEvents {
    state: Arc<dyn AdapterState>,
}

#[derive(Serialize, Deserialize)]
enum UnstoredEvent {
    Message(IncomingMessage),
    Edited(IncomingMessage),
    Press(ButtonPress),
}

impl UnstoredEvents {
    pub(crate) fn new(state: Arc<dyn AdapterState>) -> Self {
        Self { state }
    }

    pub(crate) async fn keep(&self, event: ChatEvent) {
        let Some(update) = update(&event).cloned() else {
            return;
        };
        let leftover = match event {
            ChatEvent::Message(message) => UnstoredEvent::Message(message),
            ChatEvent::Press(press) => UnstoredEvent::Press(press),
            ChatEvent::Edited(edited) => UnstoredEvent::Edited(edited),
            ChatEvent::Deleted(_) | ChatEvent::Undelivered(_) => return,
        };
        let value = serde_json::to_string(&leftover).unwrap_or_default();
        let kept = self
            .state
            .save(&key(&update), &value, SaveDurability::OnDisk)
            .await;
        if let Err(error) = kept {
            error!(%error, %update, "a message that came while we stopped is lost");
        }
    }

    /// What an earlier process left, in the order of its names.
    pub(crate) async fn load(&self) -> Result<Vec<ChatEvent>, AdapterStateError> {
        let mut events = Vec::new();
        for (key, value) in self.state.load_all(PREFIX).await? {
            match serde_json::from_str(&value) {
                Ok(UnstoredEvent::Message(message)) => events.push(ChatEvent::Message(message)),
                Ok(UnstoredEvent::Edited(edited)) => events.push(ChatEvent::Edited(edited)),
                Ok(UnstoredEvent::Press(press)) => events.push(ChatEvent::Press(press)),
                Err(error) => {
                    warn!(%error, key, "a message that an earlier process left cannot be read");
                    // Removed, or every start would stumble over it again.
                    self.state.remove(&key).await?;
                }
            }
        }
        Ok(events)
    }

    pub(crate) async fn forget(&self, event: &ChatEvent) {
        let Some(update) = update(event) else {
            return;
        };
        if let Err(error) = self.state.remove(&key(update)).await {
            // It is handed out once more, and the ledger knows it.
            warn!(%error, %update, "a message that was left and is stored now could not be forgotten");
        }
    }
}

/// The name of an event; a deletion has none, and is worth nothing late.
pub(crate) fn update(event: &ChatEvent) -> Option<&UpdateId> {
    match event {
        ChatEvent::Message(message) | ChatEvent::Edited(message) => Some(&message.update),
        ChatEvent::Press(press) => Some(&press.update),
        ChatEvent::Deleted(_) | ChatEvent::Undelivered(_) => None,
    }
}

fn key(update: &UpdateId) -> String {
    format!("{PREFIX}{update}")
}
