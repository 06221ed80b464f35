//! The database behind all rows: the one place that knows which it is.
//!
//! A handle (`InboxRows`, `SandboxLedger`, …) writes down what it wants as a [`SqlStatement`] and reads what it gets
//! from a [`DatabaseRow`]. How those reach a disk is decided here, and no type of sqlx leaves this module.
//!
//! There are two: SQLite, a file, in this folder, and PostgreSQL in [`postgres`]. Each has its connections, its
//! migrations and a committer of its own. A statement is one text for both; where they differ it has two.

mod committer;
mod copying;
mod error;
mod failure;
mod migrations;
mod moving;
#[cfg(test)]
mod old_files;
mod opening;
mod placeholders;
mod postgres;
mod row;
mod statement;
mod write;

use std::sync::Arc;

use hermetic_types::{GatewayId, HealthReport, SharedClock, Timestamp};
use sqlx::{PgPool, SqlitePool};
use tokio::sync::watch;
use tokio::time::Instant;

pub(crate) use copying::copy;
pub use copying::{CopyError, StoreVersion};
pub use error::{DatabaseError, StoreError};
pub(crate) use moving::move_rows;
pub use moving::{MoveDirection, MoveError, MovedTable};
pub use opening::OpenError;
pub(crate) use opening::is_of_earlier_version;
use postgres::BeatConnection;
pub(crate) use postgres::LeaseListener;
pub use postgres::{PostgresAddress, PostgresAddressError};
pub(crate) use row::DatabaseRow;
pub(crate) use statement::SqlStatement;
use write::StoreWriter;
pub(crate) use write::{StatementResult, WithoutRoom, WriteDurability};

use crate::HeldLease;
use crate::metrics::{StoreMetrics, StoreOperation};

/// The open database. Clones share its connections.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    reader: DatabaseReader,
    writer: StoreWriter,
    gateway: GatewayId,
    metrics: StoreMetrics,
    clock: SharedClock,
    /// For signs of life, where others wait for them to stop.
    beats: Option<Arc<BeatConnection>>,
    /// What every write of a gateway that shares the store depends on; none where nobody shares it.
    fence: Option<HeldLease>,
}

/// Connections that cannot write.
#[derive(Clone, Debug)]
pub(crate) enum DatabaseReader {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// Whose rows are asked for.
///
/// A gateway takes up its own work only. Several may share a store: what one of them has open is not
/// for another to destroy, to send or to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOwner {
    /// The gateway that opened the store.
    ThisGateway,
    /// Every gateway that shares it. For whoever only looks, and for questions that any of them may
    /// answer.
    AnyGateway,
}

impl Database {
    /// The gateway in whose name rows are written.
    pub(crate) fn gateway(&self) -> &str {
        self.gateway.as_str()
    }

    /// For what is written down beside a change whose caller does not say when it is.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn count_in(&mut self, metrics: StoreMetrics) {
        self.metrics = metrics;
    }

    /// Whether processes of other machines may be there, too.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.reader, DatabaseReader::Postgres(_))
    }

    pub(crate) fn fence_by(&mut self, held: HeldLease) {
        self.fence = Some(held);
    }

    pub(crate) fn share_by(&mut self, held: HeldLease) {
        self.gateway = held.gateway().clone();
        self.fence = Some(held);
    }

    /// Whether other gateways serve beside the one that writes here.
    pub(crate) fn is_served_together(&self) -> bool {
        self.fence.as_ref().is_some_and(HeldLease::is_together)
    }

    /// All rows of a query, each read by `read`.
    pub(crate) async fn read<T>(
        &self,
        doing: &'static str,
        query: SqlStatement,
        read: impl Fn(&DatabaseRow) -> Result<T, DatabaseError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.fetch(query).await;
        rows.and_then(|rows| rows.iter().map(&read).collect())
            .map_err(StoreError::while_doing(doing))
    }

    /// The first row of a query, if there is one.
    pub(crate) async fn read_first<T>(
        &self,
        doing: &'static str,
        query: SqlStatement,
        read: impl FnOnce(&DatabaseRow) -> Result<T, DatabaseError>,
    ) -> Result<Option<T>, StoreError> {
        let rows = self.fetch(query).await;
        rows.and_then(|rows| rows.first().map(read).transpose())
            .map_err(StoreError::while_doing(doing))
    }

    /// The first row of a query that always has one.
    pub(crate) async fn read_only<T>(
        &self,
        doing: &'static str,
        query: SqlStatement,
        read: impl FnOnce(&DatabaseRow) -> Result<T, DatabaseError>,
    ) -> Result<T, StoreError> {
        let first = self.read_first(doing, query, read).await?;
        first.ok_or_else(|| StoreError::while_doing(doing)(DatabaseError::no_row()))
    }

    /// Runs one statement; how many rows it changed.
    pub(crate) async fn change(
        &self,
        doing: &'static str,
        terms: (WriteDurability, WithoutRoom),
        statement: SqlStatement,
    ) -> Result<u64, StoreError> {
        let written = self.write(doing, terms, vec![statement]).await?;
        Ok(written.first().map_or(0, StatementResult::affected))
    }

    /// Runs one statement that says what it wrote; its first row, if it wrote one.
    pub(crate) async fn returning<T>(
        &self,
        doing: &'static str,
        terms: (WriteDurability, WithoutRoom),
        statement: SqlStatement,
        read: impl FnOnce(&DatabaseRow) -> Result<T, DatabaseError>,
    ) -> Result<Option<T>, StoreError> {
        let written = self.write(doing, terms, vec![statement]).await?;
        let first = written.first().and_then(StatementResult::first_row);
        first
            .map(read)
            .transpose()
            .map_err(StoreError::while_doing(doing))
    }

    /// Runs all of these statements or none; none where a lease that the store depends on was lost.
    pub(crate) async fn write(
        &self,
        doing: &'static str,
        terms: (WriteDurability, WithoutRoom),
        mut statements: Vec<SqlStatement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        let Some(fence) = &self.fence else {
            return self.write_all(doing, terms, statements).await;
        };
        // Before all others: they may be seen by nobody if it fails.
        statements.insert(0, fence.check());
        let mut written = self.write_all(doing, terms, statements).await?;
        written.remove(0);
        Ok(written)
    }

    /// Runs all of these statements or none, on the disk or not at all: for leases themselves.
    pub(crate) async fn write_unfenced(
        &self,
        doing: &'static str,
        statements: Vec<SqlStatement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        let terms = (WriteDurability::OnDisk, WithoutRoom::Fail);
        self.write_all(doing, terms, statements).await
    }

    /// Runs one statement that is whole by itself and may run twice, past everything that waits to be written; the
    /// rows that it gives back.
    pub(crate) async fn beat<T>(
        &self,
        doing: &'static str,
        statement: SqlStatement,
        read: impl Fn(&DatabaseRow) -> Result<T, DatabaseError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = match &self.beats {
            None => {
                let written = self.write_unfenced(doing, vec![statement]).await?;
                written.into_iter().flat_map(|one| one.rows).collect()
            }
            Some(beats) => {
                let rows = Box::pin(beats.run(&statement)).await;
                let rows = rows.map_err(|error| StoreError::while_doing(doing)(error.into()))?;
                rows.into_iter().map(DatabaseRow::from).collect::<Vec<_>>()
            }
        };
        let rows = rows.iter().map(read).collect::<Result<_, _>>();
        rows.map_err(StoreError::while_doing(doing))
    }

    /// Hears what is told on a channel; nothing where nobody can tell.
    pub(crate) async fn listen(&self, channel: &'static str) -> Option<LeaseListener> {
        Box::pin(self.beats.as_ref()?.listen(channel)).await
    }

    async fn write_all(
        &self,
        doing: &'static str,
        terms: (WriteDurability, WithoutRoom),
        statements: Vec<SqlStatement>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        let begun = Instant::now();
        let written = self.writer.write(terms, statements).await;
        let operation = StoreOperation::Write;
        self.metrics
            .took(operation, begun.elapsed(), written.is_err());
        written.map_err(StoreError::while_doing(doing))
    }

    /// Whether writes that may wait for room do.
    pub(crate) fn set_waiting(&self, waits: bool) {
        self.writer.set_waiting(waits);
    }

    /// Counts up with every commit of this process.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.writer.changes.subscribe()
    }

    pub(crate) fn health(&self) -> HealthReport {
        self.writer.health()
    }

    async fn fetch(&self, query: SqlStatement) -> Result<Vec<DatabaseRow>, DatabaseError> {
        let begun = Instant::now();
        let rows = self.fetch_all(&query).await;
        let operation = StoreOperation::Read;
        self.metrics.took(operation, begun.elapsed(), rows.is_err());
        Ok(rows?)
    }

    async fn fetch_all(&self, query: &SqlStatement) -> Result<Vec<DatabaseRow>, sqlx::Error> {
        match &self.reader {
            DatabaseReader::Sqlite(pool) => {
                let rows = query.sqlite_query().fetch_all(pool).await?;
                Ok(rows.into_iter().map(DatabaseRow::from).collect())
            }
            DatabaseReader::Postgres(pool) => {
                // Boxed, so that whoever reads a file does not carry what a server would need: reads are in the
                // futures of whole pages.
                let rows = Box::pin(postgres::read_all(pool, &self.writer, query)).await?;
                Ok(rows.into_iter().map(DatabaseRow::from).collect())
            }
        }
    }
}

impl RowOwner {
    /// The value that `owner = coalesce(?, owner)` compares with: nothing stands for everybody.
    pub(crate) fn filter(self, database: &Database) -> Option<&str> {
        match self {
            Self::ThisGateway => Some(database.gateway()),
            Self::AnyGateway => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use hermetic_types::SystemClock;

    use super::*;
    use crate::Store;

    #[tokio::test]
    async fn whoever_reads_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = Store::open(&path, SystemClock::shared()).await.unwrap();
        let delete = SqlStatement::new("DELETE FROM inbox RETURNING id");
        let error = store.database.fetch(delete).await.unwrap_err().to_string();
        assert!(error.contains("readonly"), "{error}");
    }
}
