//! The runs that are known: those that go on, and the latest that ended.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use hermetic_types::RunId;

use super::known_run::KnownRun;
use crate::protocol::{FailureKind, RunSummary, WardenFailure};

/// How many ended runs are remembered, output included where it was kept.
const REMEMBERED: usize = 32;

/// How many a listing names, the latest first.
const LISTED: usize = 512;

/// Oldest first.
#[derive(Debug, Default)]
pub(crate) struct RunTable(RefCell<VecDeque<Rc<KnownRun>>>);

impl RunTable {
    pub(crate) fn find(&self, id: &RunId) -> Option<Rc<KnownRun>> {
        self.0.borrow().iter().find(|run| run.id == *id).cloned()
    }

    pub(crate) fn refuse_known(&self, id: &RunId) -> Result<(), WardenFailure> {
        match self.find(id) {
            None => Ok(()),
            Some(_) => Err(WardenFailure {
                kind: FailureKind::RunExists,
                errno: None,
                text: format!("run {id} is known already"),
            }),
        }
    }

    pub(crate) fn add(&self, run: Rc<KnownRun>) {
        let mut runs = self.0.borrow_mut();
        runs.push_back(run);
        let mut ended = runs.iter().filter(|run| run.is_over()).count();
        runs.retain(|run| {
            let forget = ended > REMEMBERED && run.is_over();
            ended -= usize::from(forget);
            !forget
        });
    }

    pub(crate) fn list(&self) -> Vec<RunSummary> {
        let runs = self.0.borrow();
        let latest = runs.iter().rev().take(LISTED);
        latest.map(|run| run.summary()).collect()
    }

    pub(crate) fn count_running(&self) -> u32 {
        let runs = self.0.borrow();
        let running = runs.iter().filter(|run| !run.is_over()).count();
        u32::try_from(running).unwrap_or(u32::MAX)
    }
}
