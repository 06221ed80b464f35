//! What happened lately, so far back as it is worth remembering.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Values by key; the key that was first noted goes first when there are too many.
#[derive(Debug)]
pub struct RecentKeys<K, V = ()> {
    order: VecDeque<K>,
    values: HashMap<K, V>,
    most: usize,
}

impl<K: Clone + Eq + Hash, V> RecentKeys<K, V> {
    pub fn new(most: usize) -> Self {
        Self {
            order: VecDeque::new(),
            values: HashMap::new(),
            most,
        }
    }

    pub fn contains(&self, key: &K) -> bool {
        self.values.contains_key(key)
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.values.get_mut(key)
    }

    pub fn note(&mut self, key: K, value: V) {
        if self.values.insert(key.clone(), value).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
    }
}
