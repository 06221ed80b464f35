//! A session of the gateway: what it takes to go on where a connection ended.
//!
//! Discord hands over again what came after the number that we resume from. So that number is the last
//! one before which everything is stored, not the last one that was seen.

use std::collections::BTreeSet;

use hermetic_chat::{AdapterState, AdapterStateError, SaveDurability};
use serde::{Deserialize, Serialize};

/// Where it is kept, so that a restart goes on with it too.
const KEY: &str = "session";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GatewaySession {
    pub(crate) id: String,
    /// Where it is resumed, which is not where it began.
    pub(crate) url: String,
    /// Everything up to here is stored.
    pub(crate) sequence: u64,
    /// What was said before it began has been looked for in the histories.
    #[serde(default)]
    pub(crate) swept: bool,
}

/// The numbers of a session's events, and which of them are not stored yet.
#[derive(Debug, Default)]
pub(crate) struct EventSequence {
    seen: u64,
    open: BTreeSet<u64>,
}

impl GatewaySession {
    pub(crate) async fn load(state: &dyn AdapterState) -> Result<Option<Self>, AdapterStateError> {
        let kept = state.load(KEY).await?;
        // One that cannot be read is one that is over.
        Ok(kept.and_then(|kept| serde_json::from_str(&kept).ok()))
    }

    pub(crate) async fn save(
        &self,
        state: &dyn AdapterState,
        saving: SaveDurability,
    ) -> Result<(), AdapterStateError> {
        let text = serde_json::to_string(self).unwrap_or_default();
        state.save(KEY, &text, saving).await
    }

    pub(crate) async fn forget(state: &dyn AdapterState) -> Result<(), AdapterStateError> {
        state.remove(KEY).await
    }
}

impl EventSequence {
    /// A connection begins here; what was open before comes again.
    pub(crate) fn from(stored: u64) -> Self {
        Self {
            seen: stored,
            open: BTreeSet::new(),
        }
    }

    /// An event was looked at. One that is handed out stays open until it is stored.
    pub(crate) fn note(&mut self, number: u64, handed_out: bool) {
        self.seen = self.seen.max(number);
        if handed_out {
            self.open.insert(number);
        }
    }

    pub(crate) fn note_stored(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// The last number before which everything is stored.
    pub(crate) fn stored(&self) -> u64 {
        let first = self.open.first();
        first.map_or(self.seen, |first| first.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_stored_is_not_passed() {
        let mut sequence = EventSequence::from(4);
        assert_eq!(sequence.stored(), 4);
        sequence.note(5, false);
        sequence.note(6, true);
        sequence.note(7, true);
        sequence.note(8, false);
        assert_eq!(sequence.stored(), 5);
        sequence.note_stored(7);
        assert_eq!(sequence.stored(), 5, "6 is open");
        sequence.note_stored(6);
        assert_eq!(sequence.stored(), 8);
    }
}
