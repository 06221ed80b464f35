//! How many turns run at once: of one person, and of all. Where several gateways share the work, each has its part of
//! both.
//!
//! One person has a number of slots; a turn of theirs that finds none waits, in the order they came. Only
//! a turn that has such a slot waits for one of all slots, so that one person waits there as many times
//! as they have slots at most, whatever number of chats, groups and topics they write in.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use hermetic_types::{Platform, UserId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Notified;
use crate::message::AcceptedMessage;

/// Turns of one person that may wait for a slot.
const MOST_WAITING_TURNS: usize = 128;

#[derive(Debug)]
pub(crate) struct TurnLimits {
    max_concurrent_sessions: Arc<Semaphore>,
    /// Of all gateways together; none where nobody bounds them.
    configured_sessions: Option<usize>,
    configured_turns_per_user: usize,
    /// Of these places of ours some may be on their way out.
    sessions: Mutex<usize>,
    max_turns_per_user: AtomicUsize,
    people: Mutex<HashMap<PlatformUser, UserSlots>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PlatformUser {
    platform: Platform,
    user: UserId,
}

/// One person's slots. It exists while a turn of theirs runs or waits.
#[derive(Debug)]
struct UserSlots {
    slots: Arc<Semaphore>,
    most: usize,
    /// Turns that run and turns that wait.
    present: usize,
    told_full: bool,
}

/// A position in the queue.
pub(crate) struct QueuedTurn(PermitWait);

enum PermitWait {
    Over(TurnPermit),
    On(BoxFuture<'static, TurnPermit>),
}

/// Given back when dropped.
#[derive(Debug)]
pub(crate) struct TurnPermit {
    held: Vec<OwnedSemaphorePermit>,
    limits: Arc<TurnLimits>,
    person: PlatformUser,
}

/// What one person has going on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserLoad {
    pub(crate) at_work: usize,
    pub(crate) waiting: usize,
}

impl TurnLimits {
    pub(crate) fn new(
        max_concurrent_sessions: Option<usize>,
        max_turns_per_user: usize,
    ) -> Arc<Self> {
        let bounded = |count: usize| count.min(Semaphore::MAX_PERMITS);
        let sessions = bounded(max_concurrent_sessions.unwrap_or(usize::MAX));
        let per_user = bounded(max_turns_per_user);
        Arc::new(Self {
            max_concurrent_sessions: Arc::new(Semaphore::new(sessions)),
            configured_sessions: max_concurrent_sessions.map(bounded),
            configured_turns_per_user: per_user,
            sessions: Mutex::new(sessions),
            max_turns_per_user: AtomicUsize::new(per_user),
            people: Mutex::default(),
        })
    }

    /// From now on this gateway is one of so many that share both bounds. Turns that run go on; who has turns at
    /// work keeps the places that they had until they are over.
    pub(crate) fn divide(&self, among: usize) {
        let part = |whole: usize| (whole / among).max(1);
        let per_user = part(self.configured_turns_per_user);
        self.max_turns_per_user.store(per_user, Ordering::Relaxed);
        let Some(whole) = self.configured_sessions else {
            return;
        };
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = part(whole);
        if wanted > *sessions {
            self.max_concurrent_sessions.add_permits(wanted - *sessions);
            *sessions = wanted;
        } else {
            // Those that are at work go when they are free; the next look takes them.
            let gone = self
                .max_concurrent_sessions
                .forget_permits(*sessions - wanted);
            *sessions -= gone;
        }
    }

    /// Takes the next position of whoever said this; refused if too many of theirs wait.
    pub(crate) fn enqueue(
        self: &Arc<Self>,
        message: &AcceptedMessage,
    ) -> Result<QueuedTurn, Notified> {
        let said = message.said();
        self.enqueue_as(PlatformUser {
            platform: said.platform(),
            user: said.sender.id.clone(),
        })
    }

    fn enqueue_as(self: &Arc<Self>, person: PlatformUser) -> Result<QueuedTurn, Notified> {
        let slots = self.enter(&person)?;
        // Made before anything is acquired: dropped while it still waits, it leaves the count of
        // its person and gives back what it had by then.
        let mut permit = TurnPermit {
            held: Vec::with_capacity(2),
            limits: Arc::clone(self),
            person,
        };
        let all = Arc::clone(&self.max_concurrent_sessions);
        let mut taking = async move {
            // The person's own slot first. The other way round, one who writes in a hundred chats
            // would hold all slots while waiting for their own.
            for line in [slots, all] {
                // They are never closed.
                permit.held.extend(line.acquire_owned().await.ok());
            }
            permit
        }
        .boxed();
        // A place is taken by the first look, so that the order is that of the calls, not that in
        // which tasks happen to run.
        Ok(QueuedTurn(match (&mut taking).now_or_never() {
            Some(permit) => PermitWait::Over(permit),
            None => PermitWait::On(taking),
        }))
    }

    /// What whoever said this has going on, in all their conversations.
    pub(crate) fn load(&self, message: &AcceptedMessage) -> UserLoad {
        let said = message.said();
        let person = PlatformUser {
            platform: said.platform(),
            user: said.sender.id.clone(),
        };
        let people = self.lock();
        people.get(&person).map_or_else(UserLoad::default, |user| {
            let at_work = user.most - user.slots.available_permits();
            UserLoad {
                at_work,
                waiting: user.present.saturating_sub(at_work),
            }
        })
    }

    pub(crate) fn max_turns_per_user(&self) -> usize {
        self.max_turns_per_user.load(Ordering::Relaxed)
    }

    fn enter(&self, person: &PlatformUser) -> Result<Arc<Semaphore>, Notified> {
        let mut people = self.lock();
        let most = self.max_turns_per_user();
        let user = people.entry(person.clone()).or_insert_with(|| UserSlots {
            slots: Arc::new(Semaphore::new(most)),
            most,
            present: 0,
            told_full: false,
        });
        if user.present >= user.most.saturating_add(MOST_WAITING_TURNS) {
            return Err(match std::mem::replace(&mut user.told_full, true) {
                true => Notified::Already,
                false => Notified::Now,
            });
        }
        user.present += 1;
        Ok(Arc::clone(&user.slots))
    }

    fn leave(&self, person: &PlatformUser) {
        let mut people = self.lock();
        let Entry::Occupied(mut user) = people.entry(person.clone()) else {
            return;
        };
        user.get_mut().present -= 1;
        // There is room again, so the next flood is told of once more.
        user.get_mut().told_full = false;
        if user.get().present == 0 {
            user.remove();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PlatformUser, UserSlots>> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueuedTurn {
    pub(crate) async fn permit(self) -> TurnPermit {
        match self.0 {
            PermitWait::Over(permit) => permit,
            PermitWait::On(taking) => taking.await,
        }
    }
}

impl Drop for TurnPermit {
    fn drop(&mut self) {
        // Before the slots may go: who comes next would get new ones next to the old.
        self.held.clear();
        self.limits.leave(&self.person);
    }
}

impl fmt::Debug for QueuedTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuedTurn").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str) -> PlatformUser {
        PlatformUser {
            platform: Platform::Telegram,
            user: UserId::new(name).unwrap(),
        }
    }

    fn runs(ticket: &QueuedTurn) -> bool {
        matches!(ticket.0, PermitWait::Over(_))
    }

    fn enqueue(limits: &Arc<TurnLimits>, name: &str) -> QueuedTurn {
        limits.enqueue_as(person(name)).unwrap()
    }

    #[test]
    fn one_person_has_so_many_and_others_theirs() {
        let limits = TurnLimits::new(None, 2);
        let ann: Vec<_> = (0..200)
            .map_while(|_| limits.enqueue_as(person("ann")).ok())
            .collect();
        assert_eq!(ann.iter().filter(|ticket| runs(ticket)).count(), 2);
        assert_eq!(ann.len(), 2 + MOST_WAITING_TURNS);
        assert!(runs(&enqueue(&limits, "bob")));
    }

    #[tokio::test]
    async fn a_line_keeps_its_order_and_who_leaves_it_gives_way() {
        let limits = TurnLimits::new(None, 1);
        let first = enqueue(&limits, "ann");
        let (second, third) = (enqueue(&limits, "ann"), enqueue(&limits, "ann"));
        let last = enqueue(&limits, "ann");
        drop(third);
        drop(first);
        let second = second.permit().await;
        let mut last = Box::pin(last.permit());
        assert!((&mut last).now_or_never().is_none());
        drop(second);
        drop(last.await);
        assert_eq!(limits.lock().len(), 0, "nobody is kept in mind for ever");
    }

    #[tokio::test]
    async fn where_all_are_few_a_crowd_of_one_person_is_passed_by_the_next() {
        let limits = TurnLimits::new(Some(1), 2);
        let mut ann: Vec<_> = (0..50).map(|_| enqueue(&limits, "ann")).collect();
        let bob = enqueue(&limits, "bob");
        // One runs, one waits before Bob; the others do not wait there at all.
        drop(ann.remove(0));
        drop(ann.remove(0));
        assert!(bob.permit().now_or_never().is_some());
    }

    #[tokio::test]
    async fn several_gateways_share_the_places() {
        let limits = TurnLimits::new(Some(4), 2);
        limits.divide(2);
        let ann = (enqueue(&limits, "ann"), enqueue(&limits, "ann"));
        assert!(runs(&ann.0) && !runs(&ann.1), "one of two is hers here");
        let bob = enqueue(&limits, "bob");
        let carl = enqueue(&limits, "carl");
        assert!(runs(&bob) && !runs(&carl), "two of four are ours");
        // Alone again: more at once.
        limits.divide(1);
        let mut carl = Box::pin(carl.permit());
        assert!((&mut carl).now_or_never().is_some());
        // More join while some are at work: places go as they are given back.
        limits.divide(4);
        assert_eq!(*limits.sessions.lock().unwrap(), 2);
        drop(bob);
        limits.divide(4);
        assert_eq!(*limits.sessions.lock().unwrap(), 1);
    }

    #[test]
    fn whoever_sends_on_and_on_is_told_once() {
        let limits = TurnLimits::new(None, 1);
        let all: Vec<_> = (0..=MOST_WAITING_TURNS)
            .map(|_| enqueue(&limits, "ann"))
            .collect();
        let told: Vec<_> = (0..3)
            .map(|_| limits.enqueue_as(person("ann")).err())
            .collect();
        assert_eq!(
            told,
            [
                Some(Notified::Now),
                Some(Notified::Already),
                Some(Notified::Already)
            ]
        );
        drop(all);
        assert!(runs(&enqueue(&limits, "ann")));
    }
}
