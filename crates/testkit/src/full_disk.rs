//! A place for an adapter's state on a disk that can be full.

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_chat::{AdapterState, AdapterStateError, InMemoryState, SaveDurability, StateChange};
use tokio::sync::watch;

/// Keeps what it has while it is full, and takes nothing more.
#[derive(Debug, Default)]
pub struct FullDisk {
    kept: InMemoryState,
    fill: watch::Sender<Fill>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Fill {
    is_full: bool,
    /// Writes that found no room.
    refused: usize,
}

impl FullDisk {
    /// There is no room from now on.
    pub fn fill(&self) {
        self.fill.send_modify(|fill| fill.is_full = true);
    }

    pub fn make_room(&self) {
        self.fill.send_modify(|fill| fill.is_full = false);
    }

    /// Until so many writes found no room.
    pub async fn wait_for_refusals(&self, count: usize) {
        let mut fill = self.fill.subscribe();
        // The sender lives as long as this.
        let _ = fill.wait_for(|fill| fill.refused >= count).await;
    }

    fn refuses(&self) -> bool {
        let mut refuses = false;
        self.fill.send_modify(|fill| {
            refuses = fill.is_full;
            fill.refused += usize::from(refuses);
        });
        refuses
    }
}

fn no_room<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, AdapterStateError>> {
    let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
    future::ready(Err(AdapterStateError::Store(Box::new(error)))).boxed()
}

impl AdapterState for FullDisk {
    fn load<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, AdapterStateError>> {
        self.kept.load(key)
    }

    fn load_all<'a>(
        &'a self,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, AdapterStateError>> {
        self.kept.load_all(prefix)
    }

    fn save<'a>(
        &'a self,
        key: &'a str,
        value: &'a str,
        saving: SaveDurability,
    ) -> BoxFuture<'a, Result<(), AdapterStateError>> {
        match self.refuses() {
            true => no_room(),
            false => self.kept.save(key, value, saving),
        }
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), AdapterStateError>> {
        match self.refuses() {
            true => no_room(),
            false => self.kept.remove(key),
        }
    }

    fn save_together<'a>(
        &'a self,
        changes: &'a [StateChange],
    ) -> BoxFuture<'a, Result<(), AdapterStateError>> {
        match self.refuses() {
            true => no_room(),
            false => self.kept.save_together(changes),
        }
    }
}
