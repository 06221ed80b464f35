//! What an adapter remembers across a restart: resume tokens, sync positions, keys.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::{self, BoxFuture, FutureExt};
use thiserror::Error;

/// A small durable place for one account's adapter, which gets it when it is built. No other account
/// sees what is kept here.
///
/// An implementer promises that what was saved [`SaveDurability::OnDisk`] survives a power cut once the call
/// returns, and that a later save is never undone by an earlier one.
pub trait AdapterState: Send + Sync + fmt::Debug {
    fn load<'a>(&'a self, key: &'a str)
    -> BoxFuture<'a, Result<Option<String>, AdapterStateError>>;

    /// Every key that begins so, with its value, in the order of the keys.
    fn load_all<'a>(
        &'a self,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, AdapterStateError>>;

    fn save<'a>(
        &'a self,
        key: &'a str,
        value: &'a str,
        saving: SaveDurability,
    ) -> BoxFuture<'a, Result<(), AdapterStateError>>;

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), AdapterStateError>>;

    /// Saves and removes all of these or none, on the disk. A key without a value is removed.
    fn save_together<'a>(
        &'a self,
        changes: &'a [StateChange],
    ) -> BoxFuture<'a, Result<(), AdapterStateError>>;
}

/// A key, and the value that it has from now on.
pub type StateChange = (String, Option<String>);

/// Whether a save waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveDurability {
    /// It does: a platform is told something next that it does not tell twice.
    OnDisk,
    /// Its last moments may be lost in a power cut: a sweep that begins too early finds what it knows.
    Soon,
}

#[derive(Debug, Error)]
pub enum AdapterStateError {
    #[error("{bytes} bytes are too much to keep for an adapter: at most {most}")]
    TooLarge { bytes: usize, most: usize },
    #[error("the state of an adapter could not be read or written")]
    Store(#[source] Box<dyn Error + Send + Sync>),
}

/// How large one value may be, with its key.
pub const ADAPTER_VALUE_BYTES: usize = 64 << 10;

/// Lives as long as the process: for tests, and for adapters that have nothing to remember.
#[derive(Debug, Default)]
pub struct InMemoryState(Mutex<BTreeMap<String, String>>);

impl InMemoryState {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdapterState for InMemoryState {
    fn load<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, AdapterStateError>> {
        future::ready(Ok(self.lock().get(key).cloned())).boxed()
    }

    fn load_all<'a>(
        &'a self,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, AdapterStateError>> {
        let all = self.lock();
        let found = all.iter().filter(|(key, _)| key.starts_with(prefix));
        let found = found.map(|(key, value)| (key.clone(), value.clone()));
        future::ready(Ok(found.collect())).boxed()
    }

    fn save<'a>(
        &'a self,
        key: &'a str,
        value: &'a str,
        _: SaveDurability,
    ) -> BoxFuture<'a, Result<(), AdapterStateError>> {
        self.lock().insert(key.to_owned(), value.to_owned());
        future::ready(Ok(())).boxed()
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), AdapterStateError>> {
        self.lock().remove(key);
        future::ready(Ok(())).boxed()
    }

    fn save_together<'a>(
        &'a self,
        changes: &'a [StateChange],
    ) -> BoxFuture<'a, Result<(), AdapterStateError>> {
        let mut kept = self.lock();
        for (key, value) in changes {
            match value {
                Some(value) => kept.insert(key.clone(), value.clone()),
                None => kept.remove(key),
            };
        }
        future::ready(Ok(())).boxed()
    }
}
