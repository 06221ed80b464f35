//! Sandboxes whose end was asked for and not seen.
//!
//! The ledger says so as well, unless it could not be written: on a full disk a row goes on saying that its
//! sandbox runs. So the wish is kept here until the sandbox is gone, and nobody is given it meanwhile. The
//! next start goes by the ledger alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_types::{BackendKind, SandboxId};

#[derive(Debug, Default)]
pub(crate) struct UnfinishedEnds(Mutex<HashMap<SandboxId, BackendKind>>);

impl UnfinishedEnds {
    pub(crate) fn note(&self, id: &SandboxId, backend: BackendKind) {
        self.ids().insert(id.clone(), backend);
    }

    pub(crate) fn seen(&self, id: &SandboxId) {
        self.ids().remove(id);
    }

    pub(crate) fn contains(&self, id: &SandboxId) -> bool {
        self.ids().contains_key(id)
    }

    pub(crate) fn all(&self) -> Vec<(SandboxId, BackendKind)> {
        let ids = self.ids();
        ids.iter()
            .map(|(id, backend)| (id.clone(), *backend))
            .collect()
    }

    fn ids(&self) -> MutexGuard<'_, HashMap<SandboxId, BackendKind>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sandboxes that somebody is stopping or destroying at this moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndsAtWork(Arc<Mutex<HashMap<SandboxId, usize>>>);

/// One end that is under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct EndAtWork {
    ends: EndsAtWork,
    id: SandboxId,
}

impl EndsAtWork {
    pub(crate) fn begin(&self, id: &SandboxId) -> EndAtWork {
        // Counted: the reaper and a person may end the same one.
        *self.counts().entry(id.clone()).or_default() += 1;
        EndAtWork {
            ends: self.clone(),
            id: id.clone(),
        }
    }

    pub(crate) fn contains(&self, id: &SandboxId) -> bool {
        self.counts().contains_key(id)
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<SandboxId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EndAtWork {
    fn drop(&mut self) {
        let mut counts = self.ends.counts();
        if let Some(count) = counts.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.id);
            }
        }
    }
}
