//! What a backend may still be making for a process that died.
//!
//! A request that was sent goes on without its sender. The next start looks for the sandbox, finds
//! none and forgets its row; a moment later there is one.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hermetic_types::{BackendKind, SandboxId};
use tokio::time::Instant;

use crate::Sandboxes;

/// By then a backend has made what it was asked for, or will not.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct OrphanedCreates(Mutex<Vec<(SandboxId, BackendKind, Instant)>>);

impl Sandboxes {
    pub(crate) fn note_late(&self, id: &SandboxId, backend: BackendKind) {
        let mut late = self.late.0.lock().unwrap_or_else(PoisonError::into_inner);
        late.push((id.clone(), backend, Instant::now() + ORPHAN_TIMEOUT));
    }

    /// Sees out what came after all; when to look again.
    pub(crate) async fn see_out_late(&self) -> Option<Instant> {
        let due: Vec<_> = {
            let mut late = self.late.0.lock().unwrap_or_else(PoisonError::into_inner);
            late.extract_if(.., |(_, _, due)| *due <= Instant::now())
                .collect()
        };
        for (id, kind, _) in due {
            let Some(backend) = self.backends.get(&kind) else {
                continue;
            };
            if let Err(error) = backend.destroy(&id).await {
                tracing::warn!(sandbox = %id, %error, "what may have come late is looked for again");
                // For another minute: while the backend does not answer, it cannot be said that
                // nothing came.
                self.note_late(&id, kind);
            }
        }
        let late = self.late.0.lock().unwrap_or_else(PoisonError::into_inner);
        late.iter().map(|(_, _, due)| *due).min()
    }
}
