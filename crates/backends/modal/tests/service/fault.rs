//! What goes wrong, and where.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;
use tonic::Status;

#[derive(Default)]
pub(crate) struct Faults {
    planned: Mutex<VecDeque<(&'static str, Fault)>>,
    away: watch::Sender<bool>,
    refused: AtomicUsize,
}

#[derive(Clone)]
pub(crate) enum Fault {
    /// The question is not heard.
    Before(Status),
    /// It is done, and the answer is lost.
    After(Status),
    /// A stream ends with this after so many pieces.
    Cut(usize, Status),
}

impl Faults {
    /// The next question of that name goes wrong so.
    pub(crate) fn plan(&self, method: &'static str, fault: Fault) {
        self.planned.lock().unwrap().push_back((method, fault));
    }

    pub(crate) fn next(&self, path: &str) -> Option<Fault> {
        let mut planned = self.planned.lock().unwrap();
        let at = planned
            .iter()
            .position(|(method, _)| path.ends_with(&format!("/{method}")))?;
        planned.remove(at).map(|(_, fault)| fault)
    }

    /// Whether everything planned has happened.
    pub(crate) fn are_over(&self) -> bool {
        self.planned.lock().unwrap().is_empty()
    }

    /// From now on nobody is answered, and streams that stand break off; or all is well again.
    pub(crate) fn be_away(&self, away: bool) {
        self.away.send_replace(away);
    }

    /// How often somebody found nobody there.
    pub(crate) fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Nothing where somebody is there.
    pub(crate) fn absence(&self) -> Option<Status> {
        self.away.borrow().then(|| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            absence()
        })
    }

    pub(crate) fn away(&self) -> watch::Receiver<bool> {
        self.away.subscribe()
    }
}

pub(crate) fn absence() -> Status {
    Status::unavailable("no healthy upstream")
}
