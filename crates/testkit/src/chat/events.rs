//! What happened on the platform, kept until its receipt is signed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_chat::{ChatEvent, Receipt, ReceiptWaiter, ReceivedEvent};
use hermetic_types::MessageId;
use tokio::sync::Notify;

/// A platform does not hand the same thing over twice in a row at full speed.
const BEFORE_AGAIN: Duration = Duration::from_millis(20);

/// The name of one event: the same number twice is the same event twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UpdateNumber(pub(super) i64);

#[derive(Debug, Default)]
pub(super) struct Events {
    kept: Mutex<Kept>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    last: i64,
    events: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    number: UpdateNumber,
    event: ChatEvent,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Somebody is to stop listening first.
    AtStop,
    Waiting,
    HandedOver,
    Signed,
}

impl Events {
    pub(super) fn next_number(&self) -> UpdateNumber {
        let mut kept = self.lock();
        kept.last += 1;
        UpdateNumber(kept.last)
    }

    pub(super) fn push(&self, number: UpdateNumber, event: ChatEvent) {
        self.lock().events.push(Entry {
            number,
            event,
            state: State::Waiting,
        });
        self.changed.notify_waiters();
    }

    /// Happens only when a listener is told to stop.
    pub(super) fn push_at_stop(&self, number: UpdateNumber, event: ChatEvent) {
        self.lock().events.push(Entry {
            number,
            event,
            state: State::AtStop,
        });
    }

    /// The next event that comes while a listener leaves, a moment after it was told to.
    pub(super) async fn next_at_stop(
        &self,
    ) -> Option<(ReceivedEvent, UpdateNumber, ReceiptWaiter)> {
        let (number, event) = self.lock().take(State::AtStop)?;
        tokio::time::sleep(BEFORE_AGAIN).await;
        let (receipt, counterfoil) = Receipt::pair();
        Some((ReceivedEvent { event, receipt }, number, counterfoil))
    }

    pub(super) fn hand_over_again(&self, number: UpdateNumber) {
        self.set(number, State::Waiting);
    }

    pub(super) fn is_signed(&self, number: UpdateNumber) -> bool {
        let kept = self.lock();
        let of = |entry: &&Entry| entry.number == number;
        kept.events
            .iter()
            .find(of)
            .is_some_and(|entry| entry.state == State::Signed)
    }

    pub(super) fn message_of(&self, number: UpdateNumber) -> Option<MessageId> {
        let kept = self.lock();
        let entry = kept.events.iter().find(|entry| entry.number == number)?;
        match &entry.event {
            ChatEvent::Message(said) => Some(said.message.clone()),
            _ => None,
        }
    }

    pub(super) async fn all_signed(&self) {
        self.until(|kept| {
            let signed = |entry: &Entry| entry.state == State::Signed;
            kept.events.iter().all(signed).then_some(())
        })
        .await;
    }

    /// Somebody begins to listen: what an earlier listener did not sign for comes again.
    pub(super) fn begin(&self) {
        for entry in &mut self.lock().events {
            if entry.state == State::HandedOver {
                entry.state = State::Waiting;
            }
        }
    }

    /// The next event in the order they happened, and the half of its receipt to wait for.
    pub(super) async fn next(&self) -> (ReceivedEvent, UpdateNumber, ReceiptWaiter) {
        let (number, event) = self.until(|kept| kept.take(State::Waiting)).await;
        let (receipt, counterfoil) = Receipt::pair();
        (ReceivedEvent { event, receipt }, number, counterfoil)
    }

    /// Forgets an event that was signed for. One that was not comes again.
    pub(super) async fn settle(&self, number: UpdateNumber, counterfoil: ReceiptWaiter) {
        if counterfoil.signed().await {
            self.set(number, State::Signed);
        } else {
            tokio::time::sleep(BEFORE_AGAIN).await;
            self.set(number, State::Waiting);
        }
    }

    async fn until<T>(&self, mut so: impl FnMut(&mut Kept) -> Option<T>) -> T {
        loop {
            // Before the look: a change in between wakes it.
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            let found = so(&mut self.lock());
            if let Some(found) = found {
                return found;
            }
            changed.await;
        }
    }

    fn set(&self, number: UpdateNumber, state: State) {
        let mut kept = self.lock();
        let entry = kept.events.iter_mut().find(|entry| entry.number == number);
        if let Some(entry) = entry {
            entry.state = state;
        }
        drop(kept);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn take(&mut self, state: State) -> Option<(UpdateNumber, ChatEvent)> {
        let waits = |entry: &&mut Entry| entry.state == state;
        let entry = self.events.iter_mut().find(waits)?;
        entry.state = State::HandedOver;
        Some((entry.number, entry.event.clone()))
    }
}
