//! How the platform fails, as the test orders it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_chat::SendFailure;
use tokio::sync::{Notify, watch};

/// What a gateway asks of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Send,
    Edit,
    SendFile,
    Typing,
    AnswerPress,
    Download,
}

/// How one of them goes wrong.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This one goes well: the next fault is for the one after.
    None,
    /// It certainly did not arrive.
    NotSent,
    /// It may have arrived, and did not.
    UncertainAndLost,
    /// It may have arrived, and did.
    UncertainAndArrived,
    Throttled(Duration),
    Refused(&'static str),
    /// It arrives after so long.
    Slow(Duration),
    /// Nothing happens until [`FakeChat::release`](super::FakeChat::release).
    Hang,
}

/// What is left of a fault when its waiting is over.
pub(super) enum Left {
    Nothing,
    Before(SendFailure),
    After(SendFailure),
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    ordered: Mutex<HashMap<Operation, VecDeque<Fault>>>,
    tries: watch::Sender<HashMap<Operation, usize>>,
    released: Notify,
}

impl Faults {
    pub(super) fn add(&self, operation: Operation, fault: Fault) {
        self.lock().entry(operation).or_default().push_back(fault);
    }

    pub(super) fn release(&self) {
        self.released.notify_waiters();
    }

    pub(super) async fn tried(&self, operation: Operation, times: usize) {
        let mut tries = self.tries.subscribe();
        let enough = |tries: &HashMap<_, usize>| tries.get(&operation) >= Some(&times);
        // The sender is ours, so it cannot be gone.
        let _ = tries.wait_for(enough).await;
    }

    /// Counts a try and waits as ordered.
    pub(super) async fn meet(&self, operation: Operation) -> Left {
        let fault = self
            .lock()
            .get_mut(&operation)
            .and_then(VecDeque::pop_front);
        // Told before it is counted as tried: who waits for the try may release it at once.
        let released = self.released.notified();
        let mut released = std::pin::pin!(released);
        released.as_mut().enable();
        self.tries
            .send_modify(|tries| *tries.entry(operation).or_default() += 1);
        match fault {
            None | Some(Fault::None) => Left::Nothing,
            Some(Fault::NotSent) => Left::Before(SendFailure::NotSent(broken())),
            Some(Fault::UncertainAndLost) => Left::Before(SendFailure::Uncertain(broken())),
            Some(Fault::UncertainAndArrived) => Left::After(SendFailure::Uncertain(broken())),
            Some(Fault::Throttled(retry_after)) => {
                Left::Before(SendFailure::Throttled { retry_after })
            }
            Some(Fault::Refused(why)) => Left::Before(SendFailure::Refused {
                description: why.to_owned(),
            }),
            Some(Fault::Slow(time)) => {
                tokio::time::sleep(time).await;
                Left::Nothing
            }
            Some(Fault::Hang) => {
                released.await;
                Left::Nothing
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Operation, VecDeque<Fault>>> {
        self.ordered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn broken() -> Box<dyn std::error::Error + Send + Sync> {
    Box::new(io::Error::from(io::ErrorKind::ConnectionReset))
}
