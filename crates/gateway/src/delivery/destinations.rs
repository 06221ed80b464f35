//! Replies to one place leave in the order they were written.
//!
//! A reply that has to wait holds up those behind it in its own line, and no other line. A late file has a
//! line to itself.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermetic_store::DeliveryRow;
use hermetic_types::{AccountId, ChatPlace, ConversationKey};
use tokio::time::Instant;

use super::attempt::Delivery;

/// An address whose deliveries leave in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Destination {
    pub(super) account: AccountId,
    pub(super) place: ChatPlace,
    /// The line of this file alone.
    pub(super) late_file: Option<DeliveryRow>,
}

#[derive(Debug, Default)]
pub(super) struct DestinationQueues(Mutex<HashMap<Destination, DestinationQueue>>);

/// It exists while a delivery is in it.
#[derive(Debug, Default)]
struct DestinationQueue {
    deliveries: VecDeque<Delivery>,
    /// Somebody sends the delivery that was first.
    at_work: bool,
    not_before: Option<Instant>,
    /// Of a late file's line: whose file it is, and its path.
    late: Option<(ConversationKey, String)>,
    /// What is being sent is not to be tried again.
    given_up: bool,
}

impl DestinationQueues {
    pub(super) fn push(&self, delivery: Delivery) {
        let mut lines = self.lock();
        let line = lines.entry(delivery.destination()).or_default();
        line.late = delivery.late_file();
        line.deliveries.push_back(delivery);
    }

    /// The delivery to send next, unless somebody is at it or it is too early. Whoever takes it
    /// returns with [`done`](Self::done) or [`wait`](Self::wait).
    pub(super) fn take(&self, destination: &Destination, now: Instant) -> Option<Delivery> {
        let mut lines = self.lock();
        let line = lines.get_mut(destination)?;
        if line.at_work || line.not_before.is_some_and(|until| until > now) {
            return None;
        }
        let delivery = line.deliveries.pop_front()?;
        line.at_work = true;
        Some(delivery)
    }

    pub(super) fn done(&self, destination: &Destination) {
        let mut lines = self.lock();
        if let Some(line) = lines.get_mut(destination) {
            line.at_work = false;
            line.not_before = None;
            if line.deliveries.is_empty() {
                lines.remove(destination);
            }
        }
    }

    /// The delivery stays first, and nothing leaves here before `until`. `false` if it was given up
    /// meanwhile.
    pub(super) fn wait(&self, delivery: Delivery, until: Instant) -> bool {
        let mut lines = self.lock();
        let destination = delivery.destination();
        let line = lines.entry(destination.clone()).or_default();
        if line.given_up {
            lines.remove(&destination);
            return false;
        }
        line.late = delivery.late_file();
        line.at_work = false;
        line.not_before = Some(until);
        line.deliveries.push_front(delivery);
        true
    }

    /// Takes a conversation's late files out: those that wait, and the paths of all of them. One that is
    /// being sent at this moment is not tried again.
    pub(super) fn give_up_late_files(
        &self,
        conversation: &ConversationKey,
    ) -> (Vec<Delivery>, Vec<String>) {
        let mut lines = self.lock();
        let (mut deliveries, mut paths) = (Vec::new(), Vec::new());
        lines.retain(|_, line| {
            let Some((_, path)) = line
                .late
                .as_ref()
                .filter(|(whose, _)| whose == conversation)
            else {
                return true;
            };
            paths.push(path.clone());
            deliveries.extend(line.deliveries.drain(..));
            // What is being sent cannot be taken back, so the line stays until whoever sends it
            // returns, and tells them not to try again.
            line.given_up = line.at_work;
            line.at_work
        });
        (deliveries, paths)
    }

    /// Whether something waits here or is being sent.
    pub(super) fn is_busy(&self, destination: &Destination) -> bool {
        self.lock().contains_key(destination)
    }

    /// Destinations whose time has come.
    pub(super) fn ripe(&self, now: Instant) -> Vec<Destination> {
        let lines = self.lock();
        let ripe = lines
            .iter()
            .filter(|(_, line)| !line.at_work && line.not_before.is_none_or(|until| until <= now));
        ripe.map(|(destination, _)| destination.clone()).collect()
    }

    /// When the next line's time comes.
    pub(super) fn next(&self) -> Option<Instant> {
        let lines = self.lock();
        let waiting = lines.values().filter(|line| !line.at_work);
        waiting.filter_map(|line| line.not_before).min()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Destination, DestinationQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn one_that_waits_is_not_overtaken_in_its_own_line() {
        let lines = DestinationQueues::default();
        let now = Instant::now();
        let [alice, bob] = [7, 8].map(Delivery::to_nobody);
        let (destination, other) = (alice.destination(), bob.destination());
        lines.push(alice.clone());
        let first = lines.take(&destination, now).unwrap();
        lines.push(alice);
        lines.push(bob);
        assert!(lines.take(&destination, now).is_none(), "two at once");
        assert!(lines.wait(first, now + MINUTE));
        assert!(lines.take(&destination, now).is_none(), "overtaken");
        assert!(lines.take(&other, now).is_some(), "held up by another");
        lines.done(&other);
        assert_eq!(lines.next(), Some(now + MINUTE));
        assert_eq!(lines.ripe(now + MINUTE), std::slice::from_ref(&destination));
        for _ in 0..2 {
            assert!(lines.take(&destination, now + MINUTE).is_some());
            lines.done(&destination);
        }
        assert!(!lines.is_busy(&destination) && !lines.is_busy(&other));
    }
}
