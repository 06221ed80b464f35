//! Who may have a large picture in memory, and the thread that makes it smaller.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::PictureError;
use crate::shrink::shrink;

/// Large pictures that are read at the same time, 20 MiB each: eighty are what a machine with a gigabyte can
/// spare.
const MOST_READ_AT_ONCE: usize = 4;

/// Makes pictures smaller, one after the other. Clones share the places.
#[derive(Clone, Debug)]
pub struct PictureScaler {
    reading: Arc<Semaphore>,
    decoding: Arc<Semaphore>,
}

/// The right to have one large picture in memory, until it is dropped.
#[derive(Debug)]
pub struct ReadingSlot(
    #[expect(dead_code, reason = "held for what its drop gives back")] OwnedSemaphorePermit,
);

/// A picture that fits, always a JPEG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallPicture {
    pub bytes: Vec<u8>,
    /// What it had before.
    pub was: (u32, u32),
    pub is: (u32, u32),
}

impl Default for PictureScaler {
    fn default() -> Self {
        Self {
            reading: Arc::new(Semaphore::new(MOST_READ_AT_ONCE)),
            // A decoded picture is ten times and more as large as its bytes, and two processors are soon busy.
            decoding: Arc::new(Semaphore::new(1)),
        }
    }
}

impl PictureScaler {
    /// Waits until another large picture may be read. To be had before its bytes are, and kept until they are
    /// gone.
    pub async fn reading_slot(&self) -> ReadingSlot {
        let slot = Arc::clone(&self.reading).acquire_owned().await;
        ReadingSlot(slot.expect("the semaphore is never closed"))
    }

    /// The same picture in at most so many bytes. The slot is given back when the large one is gone, also if
    /// whoever asked no longer waits.
    pub async fn shrink(
        &self,
        bytes: Vec<u8>,
        most_bytes: usize,
        slot: ReadingSlot,
    ) -> Result<SmallPicture, PictureError> {
        let decoding = Arc::clone(&self.decoding).acquire_owned().await;
        let work = spawn_blocking(move || {
            let small = shrink(&bytes, most_bytes);
            // In this order: the place is free only when the memory is.
            drop(bytes);
            drop((decoding, slot));
            small
        });
        // A decoder that panics has met bytes that it does not understand.
        work.await.unwrap_or(Err(PictureError::Unreadable))
    }
}
