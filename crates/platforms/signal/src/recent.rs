//! What happened lately, so far back as it is worth remembering.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The last [`RecentValues::KEPT`] keys and what is known of each.
#[derive(Debug)]
pub(crate) struct RecentValues<K, V = ()> {
    kept: Mutex<RecentEntries<K, V>>,
}

#[derive(Debug)]
struct RecentEntries<K, V> {
    order: VecDeque<K>,
    known: HashMap<K, V>,
}

impl<K: Clone + Eq + Hash, V: Clone> RecentValues<K, V> {
    /// A busy minute of a busy group.
    const KEPT: usize = 1000;

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.lock().known.contains_key(key)
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.lock().known.get(key).cloned()
    }

    pub(crate) fn note(&self, key: K, value: V) {
        let mut kept = self.lock();
        if kept.known.insert(key.clone(), value).is_some() {
            return;
        }
        kept.order.push_back(key);
        if kept.order.len() > Self::KEPT
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.known.remove(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, RecentEntries<K, V>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for RecentValues<K, V> {
    fn default() -> Self {
        Self {
            kept: Mutex::new(RecentEntries {
                order: VecDeque::new(),
                known: HashMap::new(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let recent = RecentValues::default();
        for number in 0..=1000 {
            recent.note(number, ());
            recent.note(number, ());
        }
        assert!(!recent.contains(&0) && recent.contains(&1) && recent.contains(&1000));
    }
}
