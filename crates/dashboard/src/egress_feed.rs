//! Connections as they are decided: the last of them, kept in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_egress::{EgressEntry, EgressJournal, EgressRecorder, JournalEntry, JournalTail};
use hermetic_types::{ConversationKey, SharedClock};
use serde::Serialize;
use tokio::sync::watch;

/// The last connections. Clones share them.
#[derive(Clone, Debug)]
pub struct EgressFeed(Arc<FeedState>);

/// One decision, told apart from those of the same moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NumberedEntry {
    /// In this process.
    pub(crate) number: u64,
    #[serde(flatten)]
    pub(crate) noted: JournalEntry,
}

#[derive(Debug)]
struct FeedState {
    entries: Mutex<KeptEntries>,
    /// Where another process writes; nothing where this one is told of each.
    tail: Option<Mutex<JournalTail>>,
    changes: watch::Sender<u64>,
    clock: SharedClock,
}

#[derive(Debug, Default)]
struct KeptEntries {
    last: VecDeque<NumberedEntry>,
    /// How many there ever were.
    count: u64,
}

/// A connection is about two hundred bytes.
const MOST_ENTRIES: usize = 2000;

/// How much of an earlier run's journal is read.
const MOST_PAST_BYTES: u64 = 512 << 10;

impl EgressFeed {
    /// What an earlier run wrote down last comes first.
    pub fn after(journal: &EgressJournal, clock: SharedClock) -> Self {
        Self::of(journal, None, clock)
    }

    /// What another process writes down, also while this one lives: it is read on with every look.
    pub fn following(journal: &EgressJournal, clock: SharedClock) -> Self {
        // From here on, before what is there is read: one that is written in between may be seen twice, and
        // none is missed.
        let tail = journal.tail().map(Mutex::new);
        let tail =
            tail.map_err(|error| tracing::warn!(%error, "later connections cannot be shown"));
        Self::of(journal, tail.ok(), clock)
    }

    fn of(journal: &EgressJournal, tail: Option<Mutex<JournalTail>>, clock: SharedClock) -> Self {
        let past = journal.recent(MOST_PAST_BYTES).unwrap_or_else(|error| {
            tracing::warn!(%error, "earlier connections cannot be shown");
            Vec::new()
        });
        let mut entries = KeptEntries::default();
        for noted in past {
            entries.push(noted);
        }
        Self(Arc::new(FeedState {
            entries: Mutex::new(entries),
            tail,
            changes: watch::Sender::new(0),
            clock,
        }))
    }

    /// The latest first: those of one conversation, or all.
    pub(crate) fn latest(
        &self,
        conversation: Option<&ConversationKey>,
        most: usize,
    ) -> Vec<NumberedEntry> {
        self.catch_up();
        let entries = self.entries();
        let wanted = entries.last.iter().rev().filter(|one| {
            let whose = &one.noted.entry.conversation;
            conversation.is_none_or(|conversation| whose == conversation)
        });
        wanted.take(most).cloned().collect()
    }

    /// Looks at each of them, the earliest first, without a copy of any.
    pub(crate) fn each(&self, mut look: impl FnMut(&JournalEntry)) {
        self.catch_up();
        let entries = self.entries();
        entries.last.iter().for_each(|one| look(&one.noted));
    }

    /// Reads on where another process writes.
    fn catch_up(&self) {
        let Some(tail) = &self.0.tail else {
            return;
        };
        // Held until its entries are among the others: two who look at once must not turn their order around.
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        match tail.more() {
            Ok(more) if more.is_empty() => {}
            Ok(more) => {
                let mut entries = self.entries();
                more.into_iter().for_each(|noted| entries.push(noted));
            }
            Err(error) => tracing::warn!(%error, "later connections cannot be shown"),
        }
    }

    /// Counts up with every connection.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    fn entries(&self) -> MutexGuard<'_, KeptEntries> {
        self.0
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptEntries {
    fn push(&mut self, noted: JournalEntry) {
        if self.last.len() >= MOST_ENTRIES {
            self.last.pop_front();
        }
        self.count += 1;
        let number = self.count;
        self.last.push_back(NumberedEntry { number, noted });
    }
}

impl NumberedEntry {
    /// Names its row on a page, also on one that outlives this process: numbers begin anew with each.
    pub(crate) fn row_key(&self) -> String {
        format!("{}-{}", self.noted.at.millis(), self.number)
    }
}

impl EgressRecorder for EgressFeed {
    fn write(&self, entry: &EgressEntry) {
        let noted = JournalEntry {
            at: self.0.clock.now(),
            entry: entry.clone(),
        };
        let mut entries = self.entries();
        entries.push(noted);
        // Let go before anybody is told, as whoever is told takes it at once.
        drop(entries);
        self.0.changes.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hermetic_egress::{EgressDecision, EgressMethod};
    use hermetic_types::SystemClock;

    use super::*;

    fn opened(host: &str) -> EgressEntry {
        EgressEntry {
            conversation: ConversationKey::new("a"),
            host: host.to_owned(),
            port: 443,
            address: None,
            how: EgressMethod::Connect,
            rule: String::new(),
            verdict: EgressDecision::Opened,
            bytes_up: 0,
            bytes_down: 0,
            duration: Duration::ZERO,
        }
    }

    #[test]
    fn what_another_process_writes_later_is_seen_and_each_has_its_own_number() {
        let folder = tempfile::tempdir().unwrap();
        let clock = SystemClock::shared();
        let journal = EgressJournal::at(folder.path().join("egress.jsonl"), Arc::clone(&clock));
        journal.write(&opened("before.example"));
        let feed = EgressFeed::following(&journal, Arc::clone(&clock));
        let still = EgressFeed::after(&journal, clock);
        for host in ["one.example", "one.example"] {
            journal.write(&opened(host));
        }
        let seen = feed.latest(None, 9);
        let hosts: Vec<_> = seen
            .iter()
            .map(|one| one.noted.entry.host.as_str())
            .collect();
        assert_eq!(hosts, ["one.example", "one.example", "before.example"]);
        assert_ne!(seen[0].row_key(), seen[1].row_key());
        let mut count = 0;
        feed.each(|_| count += 1);
        assert_eq!(count, 3, "and none of them twice");
        assert_eq!(
            still.latest(None, 9).len(),
            1,
            "who is told of each reads no file"
        );
    }
}
