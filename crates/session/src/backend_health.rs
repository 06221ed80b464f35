//! How the backends are, as the last who wanted a sandbox of them saw it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hermetic_sandbox::SealLayer;
use hermetic_types::{BackendKind, PartHealth};

use crate::{LeaseError, Sandboxes};

#[derive(Clone, Debug, Default)]
pub(crate) struct BackendHealth(Arc<Mutex<BTreeMap<&'static str, PartHealth>>>);

impl Sandboxes {
    /// Those that conversations use, by their names.
    pub fn backends_health(&self) -> Vec<(BackendKind, PartHealth)> {
        let seen = self.backend_health.0.lock();
        let seen = seen.unwrap_or_else(PoisonError::into_inner);
        let used = BackendKind::ALL.into_iter().filter(|kind| self.uses(*kind));
        used.map(|kind| (kind, seen.get(kind.name()).cloned().unwrap_or_default()))
            .collect()
    }

    /// What bounds memory and disk of the sandboxes of those that conversations use, by their names.
    pub async fn memory_and_disk(&self) -> Vec<(BackendKind, Vec<SealLayer>)> {
        let mut bounds = Vec::new();
        for kind in BackendKind::ALL.into_iter().filter(|kind| self.uses(*kind)) {
            if let Ok(backend) = self.backend(kind) {
                bounds.push((kind, backend.memory_and_disk().await));
            }
        }
        bounds
    }

    pub(crate) fn note_backend(&self, kind: BackendKind, failed: Option<&LeaseError>) {
        let health = match failed {
            None => PartHealth::Ok,
            Some(error @ (LeaseError::Start(_) | LeaseError::Greet(_))) => PartHealth::Degraded {
                why: error.to_string(),
                since: self.now(),
            },
            // It was not asked.
            Some(_) => return,
        };
        let seen = self.backend_health.0.lock();
        let mut seen = seen.unwrap_or_else(PoisonError::into_inner);
        let before = seen.insert(kind.name(), health);
        if let (
            Some(PartHealth::Degraded { since: first, .. }),
            Some(PartHealth::Degraded { since, .. }),
        ) = (before, seen.get_mut(kind.name()))
        {
            // Since the first failure in a row, or each new one would make the trouble look as if
            // it had just begun.
            *since = first;
        }
    }
}
