//! The one way by which anything is written.
//!
//! A write is a list of statements. It is handed to a task, the [`Committer`](super::committer::Committer), which takes all that
//! wait at that moment into one transaction, and the answer comes after that transaction's commit: a
//! row is never seen before it is certain. Nothing else can write: the connections for reading are
//! opened with `query_only`.
//!
//! Commits survive a power cut in their order: the write-ahead log is one file, its frames are chained
//! by checksums, and what is lost is always its end. So a write waits for the disk only if something
//! happens outside right after it, and then everything that was written before it is safe as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hermetic_types::HealthReport;
use tokio::sync::{mpsc, oneshot, watch};

use super::{DatabaseError, DatabaseRow, SqlStatement};

/// What has to be true of a write when its caller goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteDurability {
    /// It is on the disk. For what is written before something happens outside that cannot be taken
    /// back: a receipt, a command, a message, a word to a person.
    OnDisk,
    /// It is committed, and on the disk with the next write that waits for that, or a moment later. For
    /// what may be lost in a power cut because it would be done again, or because nothing outside has
    /// happened since.
    Soon,
}

/// What a write does while there is no room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithoutRoom {
    /// It fails, and whoever asked for it does not do what it was for.
    Fail,
    /// It waits, where the store was opened by somebody who lives long enough for that. For what was
    /// done already and only has to be remembered.
    Wait,
}

/// What one statement of a write came to.
#[derive(Debug)]
pub(crate) struct StatementResult {
    pub(super) rows: Vec<DatabaseRow>,
    pub(super) affected: u64,
}

/// The callers' end. Clones share one committer, which ends when the last of them is gone.
#[derive(Clone, Debug)]
pub(super) struct StoreWriter {
    pub(super) jobs: mpsc::UnboundedSender<WriteJob>,
    pub(super) waits: Arc<AtomicBool>,
    pub(super) health: HealthReport,
    pub(super) changes: watch::Sender<u64>,
}

#[derive(Debug)]
pub(super) struct WriteJob {
    pub(super) statements: Vec<SqlStatement>,
    pub(super) durability: WriteDurability,
    pub(super) without_room: WithoutRoom,
    pub(super) answer: oneshot::Sender<Result<Vec<StatementResult>, sqlx::Error>>,
}

impl StoreWriter {
    /// Whether writes that may wait for room do.
    pub(super) fn set_waiting(&self, waits: bool) {
        self.waits.store(waits, Ordering::SeqCst);
    }

    pub(super) fn may_wait(&self) -> bool {
        self.waits.load(Ordering::SeqCst)
    }

    pub(super) fn health(&self) -> HealthReport {
        self.health.clone()
    }

    /// All of these statements or none.
    pub(super) async fn write(
        &self,
        (durability, without_room): (WriteDurability, WithoutRoom),
        statements: Vec<SqlStatement>,
    ) -> Result<Vec<StatementResult>, DatabaseError> {
        let (answer, answered) = oneshot::channel();
        let job = WriteJob {
            statements,
            durability,
            without_room,
            answer,
        };
        // Whoever is gone by now is gone because the program ends.
        let written = match self.jobs.send(job) {
            // Dropped while it waits here, the write goes on: the committer has it, and what was
            // handed in is committed.
            Ok(()) => answered.await.unwrap_or(Err(sqlx::Error::PoolClosed)),
            Err(_) => Err(sqlx::Error::PoolClosed),
        };
        written.map_err(DatabaseError::from)
    }
}

impl StatementResult {
    /// How many rows it changed.
    pub(crate) fn affected(&self) -> u64 {
        self.affected
    }

    /// The rows that it says it wrote.
    pub(crate) fn rows(&self) -> &[DatabaseRow] {
        &self.rows
    }

    /// The first row that it says it wrote.
    pub(crate) fn first_row(&self) -> Option<&DatabaseRow> {
        self.rows.first()
    }
}
