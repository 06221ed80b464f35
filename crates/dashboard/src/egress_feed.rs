//! Connections as they are decided: the last of them, kept in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_egress::{EgressEntry, EgressJournal, EgressRecorder, JournalEntry};
use hermetic_types::{ConversationKey, SharedClock};
use tokio::sync::watch;

/// The last connections. Clones share them.
#[derive(Clone, Debug)]
pub struct EgressFeed(Arc<FeedState>);

#[derive(Debug)]
struct FeedState {
    entries: Mutex<VecDeque<JournalEntry>>,
    changes: watch::Sender<u64>,
    clock: SharedClock,
}

/// A connection is about two hundred bytes.
const MOST_ENTRIES: usize = 2000;

/// How much of an earlier run's journal is read.
const MOST_PAST_BYTES: u64 = 512 << 10;

impl EgressFeed {
    /// What an earlier run wrote down last comes first.
    pub fn after(journal: &EgressJournal, clock: SharedClock) -> Self {
        let past = journal.recent(MOST_PAST_BYTES).unwrap_or_else(|error| {
            tracing::warn!(%error, "earlier connections cannot be shown");
            Vec::new()
        });
        let skip = past.len().saturating_sub(MOST_ENTRIES);
        Self(Arc::new(FeedState {
            entries: Mutex::new(past.into_iter().skip(skip).collect()),
            changes: watch::Sender::new(0),
            clock,
        }))
    }

    /// The latest first: those of one conversation, or all.
    pub(crate) fn latest(
        &self,
        conversation: Option<&ConversationKey>,
        most: usize,
    ) -> Vec<JournalEntry> {
        let entries = self.entries();
        let wanted = entries.iter().rev().filter(|one| {
            conversation.is_none_or(|conversation| one.entry.conversation == *conversation)
        });
        wanted.take(most).cloned().collect()
    }

    /// Looks at each of them, the earliest first, without a copy of any.
    pub(crate) fn each(&self, mut look: impl FnMut(&JournalEntry)) {
        self.entries().iter().for_each(&mut look);
    }

    /// Counts up with every connection.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<JournalEntry>> {
        self.0
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl EgressRecorder for EgressFeed {
    fn write(&self, entry: &EgressEntry) {
        let noted = JournalEntry {
            at: self.0.clock.now(),
            entry: entry.clone(),
        };
        let mut entries = self.entries();
        if entries.len() >= MOST_ENTRIES {
            entries.pop_front();
        }
        entries.push_back(noted);
        // Let go before anybody is told, as whoever is told takes it at once.
        drop(entries);
        self.0.changes.send_modify(|count| *count += 1);
    }
}
