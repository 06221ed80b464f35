//! What goes wrong, and where.

use std::collections::VecDeque;
use std::sync::Mutex;

use tonic::Status;

#[derive(Default)]
pub(crate) struct Faults(Mutex<VecDeque<(&'static str, Fault)>>);

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
        self.0.lock().unwrap().push_back((method, fault));
    }

    pub(crate) fn next(&self, path: &str) -> Option<Fault> {
        let mut planned = self.0.lock().unwrap();
        let at = planned
            .iter()
            .position(|(method, _)| path.ends_with(&format!("/{method}")))?;
        planned.remove(at).map(|(_, fault)| fault)
    }

    /// Whether everything planned has happened.
    pub(crate) fn are_over(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
}
