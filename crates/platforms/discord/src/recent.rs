//! What happened lately, so far back as it is worth remembering.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    order: VecDeque<K>,
    known: HashMap<K, V>,
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    /// More than a resumed session hands over again.
    const KEPT: usize = 1000;

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.known.get_mut(key)
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.known.contains_key(key)
    }

    pub(crate) fn note(&mut self, key: K, value: V) {
        if self.known.insert(key.clone(), value).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > Self::KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self {
            order: VecDeque::new(),
            known: HashMap::new(),
        }
    }
}
