//! How many connections there may be at once, all conversations together.
//!
//! Each is one or two file descriptors of this process, which needs others for everything else it does. A
//! conversation may hold a quarter of what is left and no more: however many crowd in, the next one finds
//! room.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::account::{ConnectionSlot, TrafficAccount};

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
}

impl ConnectionLimit {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            inside: AtomicUsize::new(0),
        })
    }

    /// Returns `None` if this conversation holds its share already.
    ///
    /// The conversation's own slot is taken first, so that its count includes the connection asked for.
    pub(crate) fn enter(
        self: &Arc<Self>,
        account: &Arc<TrafficAccount>,
    ) -> Option<ConnectionPermit> {
        let slot = account.open()?;
        let own = account.connections();
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

    fn fill(limit: &Arc<ConnectionLimit>, account: &Arc<TrafficAccount>) -> Vec<ConnectionPermit> {
        std::iter::from_fn(|| limit.enter(account)).collect()
    }

    #[test]
    fn whoever_comes_next_finds_room() {
        let limit = ConnectionLimit::new(100);
        let accounts: Vec<_> = (0..12).map(|_| TrafficAccount::new(256, None)).collect();
        let held: Vec<_> = accounts.iter().map(|one| fill(&limit, one)).collect();
        let sizes: Vec<_> = held.iter().map(Vec::len).collect();
        assert_eq!(sizes[0], 20, "a quarter of what it leaves");
        assert!(sizes.iter().all(|&size| size > 0), "{sizes:?}");
        assert!(sizes.iter().sum::<usize>() <= 100);
        drop(held);
        assert_eq!(fill(&limit, &accounts[11]).len(), 20, "all came back");
    }

    #[test]
    fn there_is_an_end_to_it() {
        let limit = ConnectionLimit::new(8);
        let accounts: Vec<_> = (0..20).map(|_| TrafficAccount::new(256, None)).collect();
        let held: Vec<_> = accounts.iter().flat_map(|one| fill(&limit, one)).collect();
        assert_eq!(held.len(), 8);
    }

    #[test]
    fn a_conversations_own_bound_counts_too() {
        let limit = ConnectionLimit::new(usize::MAX);
        let account = TrafficAccount::new(3, None);
        assert_eq!(fill(&limit, &account).len(), 3);
    }
}
