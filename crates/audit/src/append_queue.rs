//! What threads of this process have to say at one moment, written together.
//!
//! Whoever comes while another thread writes would wait for it anyway. The one that is next writes what all
//! who wait have to say, with one lock, one write and one note, and each of them returns when its own line is
//! written, not before.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::AppendError;
use crate::line::{ChainHead, WrittenEvent};

/// Events that wait to be written, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct AppendQueue(Mutex<VecDeque<QueuedEvent>>);

/// One of them, and where its thread looks for what came of it.
#[derive(Debug)]
pub(crate) struct QueuedEvent {
    pub(crate) event: WrittenEvent,
    outcome: AppendOutcome,
}

/// What came of an event, once it is written or failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct AppendOutcome(Arc<Mutex<Option<Result<ChainHead, AppendError>>>>);

/// Events of one write. With the longest lines it is some megabytes; with ordinary ones it is small enough
/// that nobody waits long for the lock.
const MOST_AT_ONCE: usize = 64;

impl AppendQueue {
    pub(crate) fn join(&self, event: WrittenEvent) -> AppendOutcome {
        let outcome = AppendOutcome::default();
        // In the queue before its thread asks for the lock on the file: whoever holds that takes
        // this one along.
        self.lock().push_back(QueuedEvent {
            event,
            outcome: outcome.clone(),
        });
        outcome
    }

    /// Those that are next.
    pub(crate) fn take(&self) -> Vec<QueuedEvent> {
        let mut queue = self.lock();
        let many = queue.len().min(MOST_AT_ONCE);
        queue.drain(..many).collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<QueuedEvent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueuedEvent {
    /// One that nobody else can take.
    pub(crate) fn alone(event: WrittenEvent) -> (Self, AppendOutcome) {
        let outcome = AppendOutcome::default();
        let queued = Self {
            event,
            outcome: outcome.clone(),
        };
        (queued, outcome)
    }

    pub(crate) fn settle(&self, came_of_it: Result<ChainHead, AppendError>) {
        *self.outcome.lock() = Some(came_of_it);
    }
}

impl AppendOutcome {
    pub(crate) fn take(&self) -> Option<Result<ChainHead, AppendError>> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Result<ChainHead, AppendError>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For an event that a thread took and never settled: it died over it, so nobody knows.
pub(crate) fn abandoned(path: &Path) -> AppendError {
    AppendError::Io {
        path: path.to_owned(),
        source: io::Error::other("the thread that wrote it has ended"),
    }
}
