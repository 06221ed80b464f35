//! Kept files that the configuration of today does not use.
//!
//! A sandbox that another configuration put on another backend must not run what was judged for here.
//! What is in it is still somebody's work, so it is stopped and set aside: its row stays in the ledger,
//! `hermetic sandbox list` shows it, going back to its backend finds it again, and only a person's word
//! destroys it.

use std::fmt;

use hermetic_sandbox::{SandboxPersistence, SandboxSpec};
use hermetic_store::{LedgerEntry, LedgerState};
use hermetic_types::{BackendKind, SandboxId};

use crate::sandboxes::MovedIn;
use crate::{LeaseError, Sandboxes};

/// A sandbox whose files are kept while the conversation goes on in another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    pub id: SandboxId,
    /// Where it is.
    pub backend: BackendKind,
    /// Whether its backend found it. If not, it was removed there, or is on another engine or host.
    pub found: bool,
}

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, backend, found } = self;
        match found {
            true => write!(
                f,
                "the files from before are kept in sandbox {id} on the {backend} backend, which is not \
                 used here any more; going back to {backend} finds them again, `hermetic sandbox list` \
                 shows them and `hermetic sandbox destroy {id}` removes them"
            ),
            false => write!(
                f,
                "the {backend} backend does not find sandbox {id} with the files from before: it was \
                 removed there, or is on another engine or host than the one configured now; it stays in \
                 `hermetic sandbox list`, is used again where it is found, and `hermetic sandbox destroy \
                 {id}` forgets it"
            ),
        }
    }
}

impl Sandboxes {
    /// Sets a sandbox aside, stopped where its backend can be reached.
    pub(crate) async fn set_aside(
        &self,
        entry: &LedgerEntry,
        found: bool,
    ) -> Result<SetAside, LeaseError> {
        // The row first: killed after it, the next start stops what still runs.
        self.ledger.set_aside(&entry.id, self.now()).await?;
        let (id, backend) = (&entry.id, entry.backend);
        if found
            && entry.state != LedgerState::Stopped
            && let Err(error) = self.stop(id, backend).await
        {
            tracing::warn!(sandbox = %id, %backend, %error, "one that is set aside still runs");
        }
        let aside = SetAside {
            id: id.clone(),
            backend,
            found,
        };
        tracing::warn!(conversation = %entry.conversation, "{aside}");
        Ok(aside)
    }

    /// The latest one that was set aside where the conversation's sandboxes are now, in use again.
    pub(crate) async fn take_back(
        &self,
        conversation: &hermetic_types::ConversationKey,
    ) -> Result<Option<MovedIn>, LeaseError> {
        let here = self.plan_of(conversation).backend;
        for entry in self.ledger.set_aside_of(conversation).await? {
            // One that is to be destroyed is not taken back, whatever its row says: its person
            // asked for its end.
            if entry.backend != here || self.unfinished.contains(&entry.id) {
                continue;
            }
            self.ledger.take_back(&entry.id).await?;
            match self.bring_back(&entry).await {
                Ok((spec, sandbox)) => return Ok(Some(MovedIn::alone(spec, sandbox))),
                // Set aside again and on to an older one: it may be on another engine today, and
                // found again tomorrow.
                Err(error) if error.is_gone() => {
                    self.ledger.set_aside(&entry.id, self.now()).await?;
                }
                Err(error) => return Err(not_back(&entry, error)),
            }
        }
        Ok(None)
    }
}

/// Whether files in it may be somebody's work. What cannot be read is in doubt, and kept.
pub(crate) fn keeps_files(entry: &LedgerEntry) -> bool {
    let spec = serde_json::from_str::<SandboxSpec>(&entry.spec);
    entry.state != LedgerState::Creating
        && spec.map_or(true, |spec| spec.persistence == SandboxPersistence::Kept)
}

/// Whether files go with it. On the host itself they are the host's, and stay whatever becomes of this.
pub(crate) fn holds_files(entry: &LedgerEntry) -> bool {
    keeps_files(entry) && entry.backend != BackendKind::Local
}

pub(crate) fn not_back(entry: &LedgerEntry, error: LeaseError) -> LeaseError {
    if error.spares_the_sandbox() {
        return error;
    }
    LeaseError::NotBack {
        id: entry.id.clone(),
        backend: entry.backend,
        source: Box::new(error),
    }
}
