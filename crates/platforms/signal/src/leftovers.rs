//! Events that had been received, and were not stored when listening ended.
//!
//! The daemon has forgotten them by then, so they are kept here until the next start has stored them.

use std::sync::Arc;

use hermetic_chat::{AdapterState, AdapterStateError, Event, Saving};
use hermetic_types::{Incoming, Press, UpdateId};
use serde::{Deserialize, Serialize};
use tracing::{error, warn};

/// What the keys of kept events begin with.
const PREFIX: &str = "left:";

#[derive(Debug)]
pub(crate) struct Leftovers {
    state: Arc<dyn AdapterState>,
}

#[derive(Serialize, Deserialize)]
enum Leftover {
    Message(Incoming),
    Press(Press),
}

impl Leftovers {
    pub(crate) fn new(state: Arc<dyn AdapterState>) -> Self {
        Self { state }
    }

    pub(crate) async fn keep(&self, event: Event) {
        let Some(update) = update(&event).cloned() else {
            return;
        };
        let leftover = match event {
            Event::Message(message) => Leftover::Message(message),
            Event::Press(press) => Leftover::Press(press),
            Event::Deleted(_) => return,
        };
        let value = serde_json::to_string(&leftover).unwrap_or_default();
        let kept = self.state.save(&key(&update), &value, Saving::OnDisk).await;
        if let Err(error) = kept {
            error!(%error, %update, "a message that came while we stopped is lost");
        }
    }

    /// What an earlier process left, in the order of its names.
    pub(crate) async fn load(&self) -> Result<Vec<Event>, AdapterStateError> {
        let mut events = Vec::new();
        for (key, value) in self.state.load_all(PREFIX).await? {
            match serde_json::from_str(&value) {
                Ok(Leftover::Message(message)) => events.push(Event::Message(message)),
                Ok(Leftover::Press(press)) => events.push(Event::Press(press)),
                Err(error) => {
                    warn!(%error, key, "a message that an earlier process left cannot be read");
                    self.state.remove(&key).await?;
                }
            }
        }
        Ok(events)
    }

    pub(crate) async fn forget(&self, event: &Event) {
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
pub(crate) fn update(event: &Event) -> Option<&UpdateId> {
    match event {
        Event::Message(message) => Some(&message.update),
        Event::Press(press) => Some(&press.update),
        Event::Deleted(_) => None,
    }
}

fn key(update: &UpdateId) -> String {
    format!("{PREFIX}{update}")
}
