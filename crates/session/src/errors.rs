//! Why a sandbox could not be had, or not be let go.

use hermetic_sandbox::{BackendError, CreateError, GreetError};
use hermetic_store::StoreError;
use hermetic_types::{BackendKind, HolderEpoch, SandboxId};
use hermetic_warden::client::WardenCallError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum LeaseError {
    #[error("all {most} sandboxes are in use; raise gateway.max_sandboxes or wait for one to end")]
    Full { most: usize },
    #[error(
        "{most} sandboxes of one person are at work; raise gateway.max_sandboxes_per_user or wait \
         for one of theirs to end"
    )]
    FullForHolder { most: usize },
    #[error("the disk is nearly full, so nothing new is run until there is room")]
    DiskLow,
    #[error("no backend {0} in this program")]
    NoBackend(BackendKind),
    #[error("the sandbox could not be started")]
    Start(#[from] BackendError),
    #[error("the sandbox does not answer")]
    Greet(#[from] GreetError),
    #[error("the sandbox does not answer")]
    Hold(#[source] WardenCallError),
    /// It took the conversation over since, and says so to the warden by a higher epoch.
    #[error("another gateway has this sandbox")]
    HeldElsewhere { since: HolderEpoch },
    #[error("the ledger could not be written")]
    Ledger(#[from] StoreError),
    #[error("the ledger holds a sandbox that cannot be read")]
    Spec(#[from] serde_json::Error),
    /// Its files are somebody's work: another sandbox does not take its place unasked.
    #[error(
        "the sandbox {id}, which holds kept files, could not be started again; its files are kept"
    )]
    NotBack {
        id: SandboxId,
        backend: BackendKind,
        #[source]
        source: Box<LeaseError>,
    },
    #[error("the program is stopping")]
    Stopping,
}

#[derive(Debug, Error)]
pub enum LetGoError {
    #[error("no backend {0} in this program")]
    NoBackend(BackendKind),
    #[error("sandbox {id} could not be removed; it stays in the ledger and is tried again")]
    Destroy {
        id: SandboxId,
        #[source]
        source: BackendError,
    },
    #[error("the ledger could not be written")]
    Ledger(#[from] StoreError),
    #[error("letting a sandbox go broke off; what the ledger has of it is tried again")]
    BrokeOff,
}

impl From<CreateError> for LeaseError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Start(error) => Self::Start(error),
            CreateError::Greet(error) => Self::Greet(error),
        }
    }
}

impl LeaseError {
    /// The sandbox may be as well as ever; only the way to it is not there now. Its files are not given
    /// up for that.
    pub(crate) fn is_out_of_reach(&self) -> bool {
        matches!(self, Self::Start(BackendError::Unavailable { .. }))
    }

    /// The backend knows of no such sandbox: somebody removed it, or this is not the engine it is on.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Start(BackendError::NoSuchSandbox { .. }))
    }
}
