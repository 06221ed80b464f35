//! The one way by which anything is written.
//!
//! A write is a list of statements. It is handed to a task, the [`committer`], which takes all that
//! wait at that moment into one transaction, and the answer comes after that transaction's commit: a
//! row is never seen before it is certain. Nothing else can write: the connections for reading are
//! opened with `query_only`.
//!
//! Commits survive a power cut in their order: the write-ahead log is one file, its frames are chained
//! by checksums, and what is lost is always its end. So a write waits for the disk only if something
//! happens outside right after it, and then everything that was written before it is safe as well.

mod committer;
mod failure;
mod statement;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hermetic_types::HealthReport;
use sqlx::sqlite::SqliteRow;
use tokio::sync::{mpsc, oneshot};

pub(crate) use committer::Committer;
pub(crate) use failure::has_damage;
use failure::{Failure, in_words};
pub(crate) use statement::Statement;

use crate::StoreError;

/// What has to be true of a write when its caller goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
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
pub(crate) struct Written {
    pub(crate) rows: Vec<SqliteRow>,
    pub(crate) affected: u64,
}

/// The callers' end. Clones share one committer, which ends when the last of them is gone.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    jobs: mpsc::UnboundedSender<Job>,
    waits: Arc<AtomicBool>,
    health: HealthReport,
}

#[derive(Debug)]
pub(crate) struct Job {
    statements: Vec<Statement>,
    durability: Durability,
    without_room: WithoutRoom,
    answer: oneshot::Sender<Result<Vec<Written>, sqlx::Error>>,
}

impl Writer {
    /// Whether writes that may wait for room do.
    pub(crate) fn set_waiting(&self, waits: bool) {
        self.waits.store(waits, Ordering::SeqCst);
    }

    pub(crate) fn health(&self) -> HealthReport {
        self.health.clone()
    }

    /// One statement; how many rows it changed.
    pub(crate) async fn change(
        &self,
        doing: &'static str,
        (durability, without_room): (Durability, WithoutRoom),
        statement: Statement,
    ) -> Result<u64, StoreError> {
        let terms = (durability, without_room);
        let written = self.write(doing, terms, vec![statement]).await?;
        Ok(written.first().map_or(0, |written| written.affected))
    }

    /// One statement that says what it wrote; its first row, if it wrote one.
    pub(crate) async fn returning(
        &self,
        doing: &'static str,
        terms: (Durability, WithoutRoom),
        statement: Statement,
    ) -> Result<Option<SqliteRow>, StoreError> {
        let written = self.write(doing, terms, vec![statement]).await?;
        Ok(written
            .into_iter()
            .next()
            .and_then(|written| written.rows.into_iter().next()))
    }

    /// All of these statements or none.
    pub(crate) async fn write(
        &self,
        doing: &'static str,
        (durability, without_room): (Durability, WithoutRoom),
        statements: Vec<Statement>,
    ) -> Result<Vec<Written>, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job = Job {
            statements,
            durability,
            without_room,
            answer,
        };
        // Whoever is gone by now is gone because the program ends.
        let written = match self.jobs.send(job) {
            Ok(()) => answered.await.unwrap_or(Err(sqlx::Error::PoolClosed)),
            Err(_) => Err(sqlx::Error::PoolClosed),
        };
        written.map_err(StoreError::while_doing(doing))
    }
}
