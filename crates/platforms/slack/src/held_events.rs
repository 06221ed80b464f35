//! Events of channels whose histories are still to be read: what was said before them goes first.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use hermetic_chat::{ChatEvent, Position};
use hermetic_types::ChatId;
use tokio::time::Instant;

use crate::acknowledgement::EventAcknowledgement;

/// How long somebody waits for the words of others, or their own, to be read from a history. A large
/// workspace takes minutes, and an answer in the wrong order is better than none.
pub(crate) const LONGEST_HOLD: Duration = Duration::from_secs(20);
/// Events that are held. Beyond that they go ahead.
const MOST_HELD: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct HeldEvents {
    /// A sweep is on its way.
    is_sweeping: bool,
    /// Channels that this sweep has read.
    read: HashSet<ChatId>,
    held: HashMap<ChatId, VecDeque<HeldEvent>>,
}

#[derive(Debug)]
pub(crate) struct HeldEvent {
    pub(crate) event: ChatEvent,
    pub(crate) at: (ChatId, Position),
    pub(crate) acknowledgement: EventAcknowledgement,
    since: Instant,
}

impl HeldEvents {
    pub(crate) fn begin_sweep(&mut self) {
        self.is_sweeping = true;
        self.read.clear();
    }

    /// Nothing is held any more.
    pub(crate) fn end_sweep(&mut self) -> Vec<HeldEvent> {
        self.is_sweeping = false;
        // Handed back, not handed out: that waits for room, and the lock on these must not be held
        // over it.
        let held = std::mem::take(&mut self.held);
        held.into_values().flatten().collect()
    }

    /// Keeps an event back if its channel is still to be read; gives it back if it may go.
    pub(crate) fn hold(
        &mut self,
        event: ChatEvent,
        at: (ChatId, Position),
        acknowledgement: EventAcknowledgement,
    ) -> Option<HeldEvent> {
        let event = HeldEvent {
            event,
            at,
            acknowledgement,
            since: Instant::now(),
        };
        let chat = &event.at.0;
        let count: usize = self.held.values().map(VecDeque::len).sum();
        if !self.is_sweeping || self.read.contains(chat) || count >= MOST_HELD {
            return Some(event);
        }
        self.held.entry(chat.clone()).or_default().push_back(event);
        None
    }

    /// The channel's history is read: what was held may go, and nothing more is held there.
    pub(crate) fn release(&mut self, chat: &ChatId) -> Vec<HeldEvent> {
        // Noted before what was held goes: an event that comes now is not held again behind it.
        self.read.insert(chat.clone());
        self.held.remove(chat).into_iter().flatten().collect()
    }

    /// What was held for too long.
    pub(crate) fn release_overdue(&mut self) -> Vec<HeldEvent> {
        let is_overdue = |event: &HeldEvent| event.since.elapsed() >= LONGEST_HOLD;
        let overdue = self
            .held
            .iter()
            .filter(|(_, held)| held.front().is_some_and(is_overdue));
        let overdue: Vec<_> = overdue.map(|(chat, _)| chat.clone()).collect();
        overdue.iter().flat_map(|chat| self.release(chat)).collect()
    }

    /// Whether somebody waits there.
    pub(crate) fn holds(&self, chat: &ChatId) -> bool {
        self.held.contains_key(chat)
    }
}
