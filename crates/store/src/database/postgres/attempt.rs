//! One try at a write, and what is known of it afterwards.
//!
//! A connection that breaks while a commit is under way leaves open whether there was one. Trying again would
//! write twice, giving up would deny what is there. So a transaction is known by its number, and whoever lost
//! the answer asks the server what became of it.

use std::time::Duration;

use futures::TryStreamExt;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPool, Postgres};
use sqlx::{Either, Executor, PgConnection, Row as _};
use tokio::time::timeout;

use super::failure::PostgresFailure;
use super::opening::WRITERS;
use crate::database::write::StatementResult;
use crate::database::{DatabaseRow, SqlStatement};

/// Longer than the server lets any statement of ours run.
pub(super) const STEP: Duration = Duration::from_secs(35);

/// So often writes that came in each other's way are tried.
const COLLISIONS: u32 = 8;

/// The first half of the key of our locks; the second is their name.
const NAMED_LOCKS: i32 = 0x4865_726d;

#[derive(Debug)]
pub(super) enum CommitAttempt {
    Committed(Vec<StatementResult>),
    /// By the statement's own fault; nothing was written.
    Refused(sqlx::Error),
    /// Nothing was written.
    Failed(sqlx::Error),
    /// Nobody knows yet.
    InDoubt(Doubt, sqlx::Error),
    /// Nobody will ever know.
    Unknown(sqlx::Error),
}

/// A commit whose answer was lost.
#[derive(Debug)]
pub(super) struct Doubt {
    transaction: TransactionName,
    written: Vec<StatementResult>,
}

/// What a transaction is known by afterwards.
#[derive(Clone, Debug)]
struct TransactionName {
    number: String,
    /// The history of the server that gave the number; another server that takes its place begins a new one and
    /// gives the same numbers to others. Unknown where a service does not tell it.
    timeline: Option<String>,
}

/// The history that this server writes. A standby has none of its own.
const TIMELINE: &str = "substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)";

/// Commits these statements, or changes nothing, or does not know.
pub(super) async fn attempt(
    pool: &PgPool,
    statements: &[SqlStatement],
    has_timeline: bool,
) -> CommitAttempt {
    let (mut stale, mut collisions) = (WRITERS, COLLISIONS);
    loop {
        let ended = once(pool, statements, has_timeline).await;
        let again = match &ended {
            // Of those that wait in the pool all are gone after the server was restarted.
            CommitAttempt::Failed(error) => match PostgresFailure::of(error) {
                PostgresFailure::Connection => &mut stale,
                PostgresFailure::Collision => &mut collisions,
                PostgresFailure::Statement | PostgresFailure::Server => return ended,
            },
            _ => return ended,
        };
        if *again == 0 {
            return ended;
        }
        *again -= 1;
    }
}

/// What became of a commit whose answer was lost.
pub(super) async fn settle(pool: &PgPool, doubt: Doubt) -> CommitAttempt {
    let (timeline, status) = match within(STEP, look_up(pool, &doubt.transaction)).await {
        Ok(found) => found,
        Err(error) => return CommitAttempt::InDoubt(doubt, error),
    };
    let words = |what: &str| sqlx::Error::Protocol(format!("the connection was lost, and {what}"));
    if timeline != doubt.transaction.timeline {
        return CommitAttempt::Unknown(words(
            "another server has taken over: it is not known whether it was written",
        ));
    }
    match status.as_deref() {
        Some("committed") => CommitAttempt::Committed(doubt.written),
        Some("aborted") => CommitAttempt::Failed(words("nothing was written")),
        _ => CommitAttempt::InDoubt(doubt, words("it is not known whether it was written")),
    }
}

/// The server's history, and what became of the transaction in it. A number that this server has not given yet
/// is no error of the question's, but says nothing either.
async fn look_up(
    pool: &PgPool,
    transaction: &TransactionName,
) -> Result<(Option<String>, Option<String>), sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let timeline = match transaction.timeline {
        Some(_) => {
            let asked = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT {TIMELINE}")));
            Some(asked.fetch_one(&mut *connection).await?)
        }
        None => None,
    };
    if timeline != transaction.timeline {
        return Ok((timeline, None));
    }
    let question = "SELECT pg_xact_status(CAST(CAST($1 AS text) AS xid8))";
    let asked = sqlx::query_scalar::<_, Option<String>>(question).bind(&transaction.number);
    Ok((timeline, asked.fetch_one(&mut *connection).await?))
}

/// Whether this server tells its timeline: some that only speak like one do not.
pub(super) async fn tells_timeline(connection: &mut PgConnection) -> bool {
    let asked = sqlx::query(sqlx::AssertSqlSafe(format!("SELECT {TIMELINE}")));
    within(STEP, asked.execute(connection)).await.is_ok()
}

async fn once(pool: &PgPool, statements: &[SqlStatement], has_timeline: bool) -> CommitAttempt {
    let mut connection = match within(STEP, pool.acquire()).await {
        Ok(connection) => connection,
        Err(error) => return CommitAttempt::Failed(error),
    };
    // Its number is asked for before anything is written: afterwards there may be nobody left to
    // ask.
    let transaction = match within(STEP, begin(&mut connection, has_timeline)).await {
        Ok(transaction) => transaction,
        Err(error) => return failed(connection, error),
    };
    let written = match within(STEP, run_all(&mut connection, statements)).await {
        Ok(written) => written,
        Err(error) => return refused(connection, error).await,
    };
    match within(STEP, plain(&mut connection, "COMMIT")).await {
        Ok(()) => CommitAttempt::Committed(written),
        Err(error) => {
            // Closed in any case: a connection whose commit failed may be in any state, and the
            // next write must not find out which.
            connection.close_on_drop();
            match PostgresFailure::of(&error) {
                // Said instead of a commit: there was none.
                PostgresFailure::Statement => CommitAttempt::Refused(error),
                PostgresFailure::Collision => CommitAttempt::Failed(error),
                PostgresFailure::Connection | PostgresFailure::Server => {
                    let doubt = Doubt {
                        transaction,
                        written,
                    };
                    CommitAttempt::InDoubt(doubt, error)
                }
            }
        }
    }
}

fn failed(mut connection: PoolConnection<Postgres>, error: sqlx::Error) -> CommitAttempt {
    // Only in a new one it is certain that no transaction is open.
    connection.close_on_drop();
    CommitAttempt::Failed(error)
}

async fn refused(mut connection: PoolConnection<Postgres>, error: sqlx::Error) -> CommitAttempt {
    let failure = PostgresFailure::of(&error);
    if failure == PostgresFailure::Connection
        || within(STEP, plain(&mut connection, "ROLLBACK"))
            .await
            .is_err()
    {
        connection.close_on_drop();
    }
    match failure {
        PostgresFailure::Statement => CommitAttempt::Refused(error),
        _ => CommitAttempt::Failed(error),
    }
}

/// Begins a transaction; what it is known by.
async fn begin(
    connection: &mut PgConnection,
    has_timeline: bool,
) -> Result<TransactionName, sqlx::Error> {
    let timeline = if has_timeline { TIMELINE } else { "NULL" };
    let both =
        format!("BEGIN; SELECT CAST(pg_current_xact_id() AS text), CAST({timeline} AS text)");
    let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(both)).fetch_all(connection);
    let rows = rows.await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    Ok(TransactionName {
        number: row.try_get(0)?,
        timeline: row.try_get(1)?,
    })
}

async fn plain(connection: &mut PgConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(sql).execute(connection).await.map(drop)
}

async fn run_all(
    connection: &mut PgConnection,
    statements: &[SqlStatement],
) -> Result<Vec<StatementResult>, sqlx::Error> {
    // In one order, so that no two wait for each other.
    let mut locks: Vec<_> = statements
        .iter()
        .filter_map(SqlStatement::lock_name)
        .collect();
    locks.sort_unstable();
    // Before all statements, and not each before its own: two writes that take the same two locks
    // in another order would wait for each other.
    locks.dedup();
    for lock in locks {
        let locked = sqlx::query("SELECT pg_advisory_xact_lock($1, hashtext($2))");
        let locked = locked.bind(NAMED_LOCKS).bind(lock);
        locked.execute(&mut *connection).await?;
    }
    let mut written = Vec::with_capacity(statements.len());
    for statement in statements {
        written.push(run(connection, statement).await?);
    }
    Ok(written)
}

async fn run(
    connection: &mut PgConnection,
    statement: &SqlStatement,
) -> Result<StatementResult, sqlx::Error> {
    let mut steps = connection.fetch_many(statement.postgres_query());
    let mut written = StatementResult {
        rows: Vec::new(),
        affected: 0,
    };
    while let Some(step) = steps.try_next().await? {
        match step {
            Either::Left(done) => written.affected += done.rows_affected(),
            Either::Right(row) => written.rows.push(DatabaseRow::from(row)),
        }
    }
    Ok(written)
}

/// A server behind a network that swallows everything says nothing at all.
pub(super) async fn within<T>(
    longest: Duration,
    step: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    timeout(longest, step).await.unwrap_or_else(|elapsed| {
        Err(sqlx::Error::Io(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            elapsed,
        )))
    })
}
