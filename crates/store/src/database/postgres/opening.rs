//! Connecting, and reading.

use std::sync::Arc;
use std::time::Duration;

use hermetic_types::{GatewayId, SharedClock};
use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::time::{Instant, sleep};

use super::attempt::{STEP, tells_timeline, within};
use super::beat::BeatConnection;
use super::committer::PostgresCommitter;
use super::failure::{PostgresFailure, named};
use super::migrations::migrate;
use super::{PostgresAddress, failure};
use crate::database::{
    Database, DatabaseReader, OpenError, SqlStatement, StoreMetrics, StoreWriter,
};

/// Connections that read.
const READERS: u32 = 4;

/// Connections that write. Whoever writes waits for the server's disk, and the server syncs once for all who
/// wait at that moment.
pub(super) const WRITERS: u32 = 6;

/// How long one is waited for.
const CONNECT: Duration = Duration::from_secs(5);

/// Whoever changes the schema waits for others who do; how long a step itself takes, nobody can say.
const MIGRATING: [(&str, &str); 2] = [
    ("lock_timeout", "60s"),
    ("idle_in_transaction_session_timeout", "15s"),
];

/// How long a gateway's question waits for a database that is being restarted.
const READ_PATIENCE: Duration = Duration::from_secs(10);

/// How often it asks meanwhile.
const READ_AGAIN: Duration = Duration::from_millis(100);

impl Database {
    /// Must be called within a runtime, which has to live as long as the store is written to.
    pub(crate) async fn open_postgres(
        address: &PostgresAddress,
        gateway: GatewayId,
        clock: SharedClock,
    ) -> Result<Self, OpenError> {
        let unreachable = |source: sqlx::Error| OpenError::Unreachable {
            address: address.clone(),
            why: failure::in_words(&source),
            source: source.into(),
        };
        let options = address
            .options()
            .map_err(|error| unreachable(sqlx::Error::Configuration(error.into())))?;
        let migrating = connect(options.clone().options(MIGRATING));
        let mut first = migrating.await.map_err(unreachable)?;
        let migrated = migrate(&mut first).await;
        migrated.map_err(|source| OpenError::migrating_postgres(address, source))?;
        let has_timeline = tells_timeline(&mut first).await;
        let _ = within(CONNECT, first.close()).await;
        let writing = session(options.clone(), "off");
        let writers = pool(writing.clone(), WRITERS);
        let writer = PostgresCommitter::start(writers, has_timeline, Arc::clone(&clock));
        let reader = pool(session(options, "on"), READERS);
        Ok(Self {
            reader: DatabaseReader::Postgres(reader),
            writer,
            gateway,
            metrics: StoreMetrics::default(),
            clock,
            beats: Some(Arc::new(BeatConnection::new(writing))),
            fence: None,
        })
    }
}

fn pool(options: PgConnectOptions, most: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(most)
        .acquire_timeout(CONNECT)
        // A question before each question would double them. What broke meanwhile is found out by using it.
        .test_before_acquire(false)
        .connect_lazy_with(options)
}

/// What holds for every connection, whatever the server was told. A commit waits for the server's disk; a
/// gateway that is cut off in the middle of a transaction keeps its locks no longer than this.
fn session(options: PgConnectOptions, read_only: &str) -> PgConnectOptions {
    options.options([
        ("default_transaction_read_only", read_only),
        ("default_transaction_isolation", "read committed"),
        ("idle_in_transaction_session_timeout", "15s"),
        ("statement_timeout", "30s"),
        ("lock_timeout", "10s"),
        ("synchronous_commit", "on"),
    ])
}

/// All rows of a query. It is asked again where a connection turns out to be gone: of those that wait in the
/// pool all are, after the server was restarted.
pub(in crate::database) async fn read_all(
    pool: &PgPool,
    writer: &StoreWriter,
    query: &SqlStatement,
) -> Result<Vec<PgRow>, sqlx::Error> {
    let begun = Instant::now();
    let mut stale = READERS;
    loop {
        let failed = match read_once(pool, query).await {
            Ok(rows) => return Ok(rows),
            Err(error) => error,
        };
        if PostgresFailure::of(&failed) != PostgresFailure::Connection {
            return Err(named(failed));
        }
        if stale > 0 {
            stale -= 1;
        } else if writer.may_wait() && begun.elapsed() < READ_PATIENCE {
            sleep(READ_AGAIN).await;
        } else {
            return Err(named(failed));
        }
    }
}

/// A connection on which nothing came back, or whose prepared statements are of an older schema, is not for
/// anybody else.
async fn read_once(pool: &PgPool, query: &SqlStatement) -> Result<Vec<PgRow>, sqlx::Error> {
    let mut connection = within(STEP, pool.acquire()).await?;
    let rows = query.postgres_query().fetch_all(&mut *connection);
    let rows = within(STEP, rows).await;
    if let Err(error) = &rows
        && PostgresFailure::of(error) == PostgresFailure::Connection
    {
        connection.close_on_drop();
    }
    rows
}

/// A server that takes a connection and says nothing is given up.
pub(in crate::database) async fn connect(
    options: PgConnectOptions,
) -> Result<PgConnection, sqlx::Error> {
    within(CONNECT, options.connect()).await
}

impl OpenError {
    fn migrating_postgres(address: &PostgresAddress, source: MigrateError) -> Self {
        let address = address.clone();
        let is_newer = matches!(source, MigrateError::VersionMissing(_));
        let source = crate::DatabaseError::from(sqlx::Error::from(source));
        match is_newer {
            true => Self::NewerDatabase { address, source },
            false => Self::MigrateDatabase { address, source },
        }
    }
}
