//! Sandboxes whose end was asked for and not seen.
//!
//! The ledger says so as well, unless it could not be written: on a full disk a row goes on saying that its
//! sandbox runs. So the wish is kept here until the sandbox is gone, and nobody is given it meanwhile. The
//! next start goes by the ledger alone.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
