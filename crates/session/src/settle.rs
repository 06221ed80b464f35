//! What a start finds, and what becomes of it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use futures::future::BoxFuture;
use hermetic_sandbox::{
    Backend, BackendError, FoundSandbox, FoundState, SandboxLifeline, SandboxSpec,
};
use hermetic_store::{LedgerEntry, LedgerState, RowOwner, StoreError};
use hermetic_types::{ConversationKey, SandboxId};
use serde::Serialize;
use thiserror::Error;

use crate::Sandboxes;
use crate::aside::keeps_files;
use crate::pool::is_nobodys;
use crate::slot::{SandboxSlot, SlotSandbox};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SettleReport {
    /// Alive and in the ledger: goes on where it was.
    pub adopted: usize,
    /// Files kept, no process: comes back with the next message.
    pub stopped: usize,
    /// Gone now.
    pub destroyed: usize,
    /// Could not be removed yet, and the reaper tries again; or holds files that nobody asked to be
    /// removed and that nothing uses.
    pub left: usize,
}

/// The conversation of a sandbox in which a start proves its backend, or the beginning of its name.
pub const PROOF_CONVERSATION: &str = "hermetic:proof";

/// Whether nobody goes on with it: it waited in the pool, or a start that was killed had it.
fn is_passing(conversation: &ConversationKey) -> bool {
    is_nobodys(conversation) || conversation.as_str().starts_with(PROOF_CONVERSATION)
}

#[derive(Debug, Error)]
pub enum SettleError {
    #[error("cannot read the ledger")]
    Ledger(#[from] StoreError),
    #[error("cannot list the sandboxes that exist")]
    List(#[from] BackendError),
}

impl Sandboxes {
    /// Brings ledger and world together after a start: adopts what lives, destroys what no
    /// conversation wants, and never touches another gateway's, whose rows say so, nor another
    /// installation's, which no backend lists.
    pub fn settle(&self) -> BoxFuture<'_, Result<SettleReport, SettleError>> {
        Box::pin(async move {
            let mut settled = SettleReport::default();
            let entries = self.ledger.entries(RowOwner::ThisGateway).await?;
            self.metrics.counted_anew(&entries);
            for backend in self.backends.values() {
                let rows = || {
                    let rows = entries.iter();
                    rows.filter(|entry| entry.backend == backend.kind())
                };
                let listed = match backend.list().await {
                    // None that new sandboxes come from: what it has is settled another time.
                    Err(error) if !self.uses(backend.kind()) => {
                        let left = rows().count();
                        if left > 0 {
                            tracing::warn!(backend = %backend.kind(), left, %error, "does not answer");
                        }
                        settled.left += left;
                        continue;
                    }
                    listed => listed?,
                };
                let mut found: HashMap<SandboxId, FoundSandbox> = listed
                    .into_iter()
                    .map(|found| (found.id.clone(), found))
                    .collect();
                for entry in rows() {
                    let state = found.remove(&entry.id).map(|found| found.state);
                    self.settle_entry(entry, state, &mut settled).await?;
                }
                // By all rows, not only by ours: what another gateway's row names is not a stray. Read after the
                // list: what it began to make meanwhile was named before.
                let known = self.ledger.entries(RowOwner::AnyGateway).await?;
                found.retain(|id, _| known.iter().all(|entry| entry.id != *id));
                for stray in found.into_values() {
                    settle_stray(backend, &stray, &mut settled).await;
                }
            }
            tracing::info!(
                adopted = settled.adopted,
                stopped = settled.stopped,
                destroyed = settled.destroyed,
                left = settled.left,
                "sandboxes settled"
            );
            Ok(settled)
        })
    }

    /// The same for these, which were another gateway's until now, and nothing else.
    pub fn settle_these<'a>(
        &'a self,
        entries: &'a [LedgerEntry],
    ) -> BoxFuture<'a, Result<SettleReport, SettleError>> {
        Box::pin(async move {
            let mut settled = SettleReport::default();
            for backend in self.backends.values() {
                let rows: Vec<_> = entries
                    .iter()
                    .filter(|entry| entry.backend == backend.kind())
                    .collect();
                if rows.is_empty() {
                    continue;
                }
                let listed = match backend.list().await {
                    // As at a start: nobody's conversation waits for one that new sandboxes do not come from.
                    Err(error) if !self.uses(backend.kind()) => {
                        tracing::warn!(backend = %backend.kind(), left = rows.len(), %error, "does not answer");
                        settled.left += rows.len();
                        continue;
                    }
                    listed => listed?,
                };
                let mut found: HashMap<SandboxId, FoundState> = listed
                    .into_iter()
                    .map(|found| (found.id, found.state))
                    .collect();
                for entry in rows {
                    let state = found.remove(&entry.id);
                    self.settle_entry(entry, state, &mut settled).await?;
                }
            }
            Ok(settled)
        })
    }

    async fn settle_entry(
        &self,
        entry: &LedgerEntry,
        found: Option<FoundState>,
        settled: &mut SettleReport,
    ) -> Result<(), StoreError> {
        let spec = serde_json::from_str::<SandboxSpec>(&entry.spec).ok();
        let kept = keeps_files(entry);
        if entry.state == LedgerState::Creating && found.is_none() {
            // Looked for once more in a minute: the request that an earlier process sent may still
            // be on its way.
            self.note_late(&entry.id, entry.backend);
        }
        match (entry.state, found, spec) {
            (LedgerState::Running, Some(FoundState::Running), Some(spec))
                if !is_passing(&entry.conversation) && entry.set_aside_at.is_none() =>
            {
                self.adopt(entry, spec);
                settled.adopted += 1;
            }
            (
                LedgerState::Running | LedgerState::Stopping | LedgerState::Stopped,
                Some(FoundState::Running | FoundState::Stopped),
                _,
            ) if kept && !is_passing(&entry.conversation) => {
                match self.stop(&entry.id, entry.backend).await {
                    Ok(()) => settled.stopped += 1,
                    Err(_) => settled.left += 1,
                }
            }
            // A command line is at it; it finishes what it began.
            (_, Some(FoundState::Busy), _) => settled.left += 1,
            // Not found here, or broken: its files may be there, or be where an earlier configuration
            // looked. Whoever asks for the sandbox next learns of it.
            (LedgerState::Running | LedgerState::Stopping | LedgerState::Stopped, _, _)
                if kept && !is_passing(&entry.conversation) =>
            {
                tracing::warn!(
                    sandbox = %entry.id,
                    conversation = %entry.conversation,
                    backend = %entry.backend,
                    "not found whole; kept in the ledger until `hermetic sandbox destroy` is told otherwise"
                );
                settled.left += 1;
            }
            _ => match self.destroy(&entry.id, entry.backend).await {
                Ok(()) => settled.destroyed += 1,
                Err(_) => settled.left += 1,
            },
        }
        Ok(())
    }

    /// It gets a place and a fresh idle clock; the link is made when somebody needs it.
    fn adopt(&self, entry: &LedgerEntry, spec: SandboxSpec) {
        let tenant = SlotSandbox {
            backend: entry.backend,
            spec: Arc::new(spec),
            sandbox: None,
            egress_port: None,
        };
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.insert(
            entry.conversation.clone(),
            Arc::new(SandboxSlot::with(Some(tenant))),
        );
    }
}

/// Exists, is ours, and no row speaks of it: a create that came late, or a ledger that was lost. One that
/// lives by its creator (`hermetic exec`) is that one's, not ours; kept files are somebody's.
async fn settle_stray(
    backend: &Arc<dyn Backend>,
    stray: &FoundSandbox,
    settled: &mut SettleReport,
) {
    let gone = match (stray.state, stray.lifeline) {
        (FoundState::Busy, _) | (FoundState::Running, Some(SandboxLifeline::Creator)) => return,
        // Destroys an ephemeral one.
        (FoundState::Running, _) => backend.stop(&stray.id).await,
        (FoundState::Stopped, _) => Ok(()),
        (FoundState::Broken, _) => backend.destroy(&stray.id).await,
    };
    let still_there = match (gone, stray.state) {
        (Err(error), _) => {
            tracing::warn!(sandbox = %stray.id, %error, "a stray sandbox could not be removed");
            true
        }
        (Ok(()), FoundState::Broken) => false,
        (Ok(()), _) => holds_files(backend, stray).await,
    };
    match still_there {
        true => settled.left += 1,
        false => settled.destroyed += 1,
    }
}

/// Whether kept files are left of it, which is said.
async fn holds_files(backend: &Arc<dyn Backend>, stray: &FoundSandbox) -> bool {
    let listed = backend.list().await.unwrap_or_default();
    let there = listed.iter().any(|found| found.id == stray.id);
    if there {
        tracing::warn!(
            sandbox = %stray.id,
            backend = %backend.kind(),
            "no conversation has this sandbox, and files are kept in it; `hermetic sandbox destroy` \
             removes it"
        );
    }
    there
}
