//! A start on a full disk: what cannot be done for lack of room is done when room returns.

use std::error::Error;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::sleep;

use crate::Gateway;
use crate::life::in_full;

/// Longer than the disk guard takes between two looks and than the store takes between two tries.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_millis(600);

/// Names the part that has no room left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingRoom {
    /// Nothing can be written down, so nothing can be taken over.
    Store,
    /// The store has its reserve, and new sandboxes are not made.
    Sandboxes,
}

impl Gateway {
    /// Tries again for as long as it fails because the store has no room. Where only sandboxes have none,
    /// the failure has another reason.
    pub(crate) async fn once_there_is_room<'a, T, E: Error>(
        &self,
        what: &'static str,
        attempt: impl Fn() -> BoxFuture<'a, Result<T, E>>,
    ) -> Result<T, E> {
        loop {
            let error = match attempt().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            if self.lack_of_room().await != Some(MissingRoom::Store) {
                return Err(error);
            }
            tracing::debug!(what, "failed for lack of room");
            self.wait_for(MissingRoom::Store, &error).await;
        }
    }

    /// Who has no room, if that is why something just failed. The guard of the disk may not have looked
    /// since it filled, so it is given the time.
    pub(super) async fn lack_of_room(&self) -> Option<MissingRoom> {
        let lack = self.lack();
        if lack.is_some() {
            return lack;
        }
        sleep(ROOM_CHECK_INTERVAL).await;
        self.lack()
    }

    pub(super) async fn wait_for(&self, lack: MissingRoom, error: &impl Error) {
        tracing::warn!(error = in_full(error), "waits until the disk has room");
        while self.lack() == Some(lack) {
            sleep(ROOM_CHECK_INTERVAL).await;
        }
    }

    fn lack(&self) -> Option<MissingRoom> {
        // The store first: where it has no room, nothing helps that is done about sandboxes.
        if !self.store.health().health().is_ok() {
            Some(MissingRoom::Store)
        } else if self.sandboxes.is_disk_low() {
            Some(MissingRoom::Sandboxes)
        } else {
            None
        }
    }
}
