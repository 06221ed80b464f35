//! What happened lately, so far back as it is worth remembering.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct Recent<T> {
    order: VecDeque<T>,
    known: HashSet<T>,
}

impl<T: Clone + Eq + Hash> Recent<T> {
    /// Slack repeats an event for some six minutes; the ledger knows all the others.
    const KEPT: usize = 4000;

    pub(crate) fn contains(&self, one: &T) -> bool {
        self.known.contains(one)
    }

    pub(crate) fn note(&mut self, one: T) {
        if !self.known.insert(one.clone()) {
            return;
        }
        self.order.push_back(one);
        if self.order.len() > Self::KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self {
            order: VecDeque::new(),
            known: HashSet::new(),
        }
    }
}
