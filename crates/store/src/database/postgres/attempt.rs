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
const STEP: Duration = Duration::from_secs(35);

/// So often writes that came in each other's way are tried.
const COLLISIONS: u32 = 8;

/// The first half of the key of our locks; the second is their name.
const NAMED_LOCKS: i32 = 0x4865_726d;

#[derive(Debug)]
pub(super) enum Attempt {
    Committed(Vec<StatementResult>),
    /// By the statement's own fault; nothing was written.
    Refused(sqlx::Error),
    /// Nothing was written.
    Failed(sqlx::Error),
    /// Nobody knows yet.
    InDoubt(Doubt, sqlx::Error),
}

/// A commit whose answer was lost.
#[derive(Debug)]
pub(super) struct Doubt {
    transaction: String,
    written: Vec<StatementResult>,
}

/// Commits these statements, or changes nothing, or does not know.
pub(super) async fn attempt(pool: &PgPool, statements: &[SqlStatement]) -> Attempt {
    let (mut stale, mut collisions) = (WRITERS, COLLISIONS);
    loop {
        let ended = once(pool, statements).await;
        let again = match &ended {
            // Of those that wait in the pool all are gone after the server was restarted.
            Attempt::Failed(error) => match PostgresFailure::of(error) {
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
pub(super) async fn settle(pool: &PgPool, doubt: Doubt) -> Attempt {
    let question = "SELECT pg_xact_status(CAST(CAST($1 AS text) AS xid8))";
    let asked = sqlx::query_scalar::<_, Option<String>>(question)
        .bind(doubt.transaction.clone())
        .fetch_one(pool);
    let status = match within(asked).await {
        Ok(status) => status,
        Err(error) => return Attempt::InDoubt(doubt, error),
    };
    let words = |what: &str| sqlx::Error::Protocol(format!("the connection was lost, and {what}"));
    match status.as_deref() {
        Some("committed") => Attempt::Committed(doubt.written),
        Some("aborted") => Attempt::Failed(words("nothing was written")),
        _ => Attempt::InDoubt(doubt, words("it is not known whether it was written")),
    }
}

async fn once(pool: &PgPool, statements: &[SqlStatement]) -> Attempt {
    let mut connection = match within(pool.acquire()).await {
        Ok(connection) => connection,
        Err(error) => return Attempt::Failed(error),
    };
    // Its number is asked for before anything is written: afterwards there may be nobody left to
    // ask.
    let transaction = match within(begin(&mut connection)).await {
        Ok(transaction) => transaction,
        Err(error) => return failed(connection, error),
    };
    let written = match within(run_all(&mut connection, statements)).await {
        Ok(written) => written,
        Err(error) => return refused(connection, error).await,
    };
    match within(plain(&mut connection, "COMMIT")).await {
        Ok(()) => Attempt::Committed(written),
        Err(error) => {
            // Closed in any case: a connection whose commit failed may be in any state, and the
            // next write must not find out which.
            connection.close_on_drop();
            match PostgresFailure::of(&error) {
                // Said instead of a commit: there was none.
                PostgresFailure::Statement => Attempt::Refused(error),
                PostgresFailure::Collision => Attempt::Failed(error),
                PostgresFailure::Connection | PostgresFailure::Server => {
                    let doubt = Doubt {
                        transaction,
                        written,
                    };
                    Attempt::InDoubt(doubt, error)
                }
            }
        }
    }
}

fn failed(mut connection: PoolConnection<Postgres>, error: sqlx::Error) -> Attempt {
    // Only in a new one it is certain that no transaction is open.
    connection.close_on_drop();
    Attempt::Failed(error)
}

async fn refused(mut connection: PoolConnection<Postgres>, error: sqlx::Error) -> Attempt {
    let own_fault = PostgresFailure::of(&error) == PostgresFailure::Statement;
    if within(plain(&mut connection, "ROLLBACK")).await.is_err() {
        connection.close_on_drop();
    }
    match own_fault {
        true => Attempt::Refused(error),
        false => Attempt::Failed(error),
    }
}

/// Begins a transaction; the number it is known by.
async fn begin(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
    let both = sqlx::raw_sql("BEGIN; SELECT CAST(pg_current_xact_id() AS text)");
    let rows = both.fetch_all(connection).await?;
    rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0)
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
async fn within<T>(step: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    timeout(STEP, step).await.unwrap_or_else(|elapsed| {
        Err(sqlx::Error::Io(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            elapsed,
        )))
    })
}
