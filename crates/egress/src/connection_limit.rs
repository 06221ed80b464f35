//! How many connections there may be at once, all conversations together.
//!
//! Each is one or two file descriptors of this process, which needs others for everything else it does. A
//! conversation may hold a quarter of what is left, and so may all conversations of one person together:
//! however many crowd in, the next one finds room, and nobody gets more of it by having more conversations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::account::{ConnectionSlot, TrafficAccount};
use crate::owner::{OwnerShare, OwnerSlot};

/// Bounds the connections of all conversations together.
#[derive(Debug)]
pub(crate) struct ConnectionLimit {
    most: usize,
    inside: AtomicUsize,
}

/// The right to hold one connection; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limit: Arc<ConnectionLimit>,
    _slot: ConnectionSlot,
    _owned: OwnerSlot,
}

impl ConnectionLimit {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            inside: AtomicUsize::new(0),
        })
    }

    /// Returns `None` if this conversation, or its owner's together, hold their share already.
    ///
    /// The slots of both are taken first, so that each count includes the connection asked for.
    pub(crate) fn enter(
        self: &Arc<Self>,
        account: &Arc<TrafficAccount>,
        owner: &Arc<OwnerShare>,
    ) -> Option<ConnectionPermit> {
        let (slot, owned) = (account.open()?, owner.open());
        // An owner has at least what one of their conversations has, also when the conversation was somebody
        // else's while its connections were opened.
        let own = account.connections().max(owner.connections());
        let one_more = |inside: usize| {
            let left = self.most.saturating_sub(inside);
            (own <= left.div_ceil(4)).then_some(inside + 1)
        };
        self.inside
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more)
            .ok()?;
        Some(ConnectionPermit {
            limit: Arc::clone(self),
            _slot: slot,
            _owned: owned,
        })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.limit.inside.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::EgressLimits;

    /// Somebody with so many conversations.
    struct Person {
        share: Arc<OwnerShare>,
        conversations: Vec<Arc<TrafficAccount>>,
    }

    impl Person {
        fn with(conversations: usize) -> Self {
            let accounts = (0..conversations).map(|_| TrafficAccount::new(256, None));
            Self {
                share: OwnerShare::new(&EgressLimits::default()),
                conversations: accounts.collect(),
            }
        }

        /// Opens in each of the conversations what can be opened.
        fn fill(&self, limit: &Arc<ConnectionLimit>) -> Vec<ConnectionPermit> {
            let own = self.conversations.iter();
            own.flat_map(|one| std::iter::from_fn(|| limit.enter(one, &self.share)))
                .collect()
        }
    }

    #[test]
    fn whoever_comes_next_finds_room() {
        let limit = ConnectionLimit::new(100);
        let people: Vec<_> = (0..12).map(|_| Person::with(1)).collect();
        let held: Vec<_> = people.iter().map(|one| one.fill(&limit)).collect();
        let sizes: Vec<_> = held.iter().map(Vec::len).collect();
        assert_eq!(sizes[0], 20, "a quarter of what it leaves");
        assert!(sizes.iter().all(|&size| size > 0), "{sizes:?}");
        assert!(sizes.iter().sum::<usize>() <= 100);
        drop(held);
        assert_eq!(people[11].fill(&limit).len(), 20, "all came back");
    }

    #[test]
    fn one_person_of_many_topics_is_one_person() {
        let limit = ConnectionLimit::new(100);
        let (greedy, second) = (Person::with(32), Person::with(1));
        let held = greedy.fill(&limit);
        assert_eq!(
            held.len(),
            20,
            "what one conversation may have, and no more"
        );
        assert_eq!(second.fill(&limit).len(), 16, "a quarter of what is left");
        drop(held);
        assert_eq!(greedy.share.connections(), 0);
        assert_eq!(greedy.fill(&limit).len(), 20, "all came back");
    }

    #[test]
    fn a_conversation_that_changes_hands_keeps_what_it_has() {
        let limit = ConnectionLimit::new(100);
        let (before, after) = (Person::with(1), Person::with(0));
        let _held = before.fill(&limit);
        let more = limit.enter(&before.conversations[0], &after.share);
        assert!(more.is_none(), "a new owner is no second share for it");
        assert_eq!(
            after.share.connections(),
            0,
            "and nothing of it stays counted"
        );
    }

    #[test]
    fn there_is_an_end_to_it() {
        let limit = ConnectionLimit::new(8);
        let people: Vec<_> = (0..20).map(|_| Person::with(1)).collect();
        let held: Vec<_> = people.iter().flat_map(|one| one.fill(&limit)).collect();
        assert_eq!(held.len(), 8);
    }

    #[test]
    fn a_conversations_own_bound_counts_too() {
        let limit = ConnectionLimit::new(usize::MAX);
        let mut person = Person::with(0);
        person.conversations.push(TrafficAccount::new(3, None));
        assert_eq!(person.fill(&limit).len(), 3);
    }
}
