//! Takes an installation's rows from one kind of database to the other: all of them or none.
//!
//! The columns are not listed here. Both databases are asked what they have, and where that differs nothing is
//! moved: a table that somebody forgot would otherwise stay behind in silence.

use std::borrow::Cow;
use std::collections::BTreeSet;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use hermetic_types::GatewayId;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use std::path::Path;
use thiserror::Error;

use super::postgres::connect;
use super::statement::{SqlValue, ValueKind};
use super::{DatabaseError, DatabaseRow, PostgresAddress, SqlStatement};
use crate::leases::{DEAD_AFTER, millis};

/// Rows that others point to come first; the rest in any order.
const POINTED_TO: [&str; 3] = ["inbox", "approvals", "scheduled_jobs"];

/// Numbers of these are never given again, not even when their rows are gone.
const NEVER_AGAIN: [&str; 3] = ["browser_conversations", "browser_files", "browser_messages"];

/// Rows of these are somebody's work. Nobody serves while they are moved, and who finds them is the one gateway
/// there is, or adopts what nobody has.
const WORK_OF_GATEWAYS: [(&str, &str); 8] = [
    ("inbox", "owner"),
    ("deliveries", "owner"),
    ("sandboxes", "owner"),
    ("processes", "owner"),
    ("approvals", "owner"),
    ("browser_messages", "owner"),
    ("scheduled_jobs", "owner"),
    ("conversation_holders", "gateway"),
];

/// A server that waits for somebody else's lock, or commits without its disk, is no place to move to.
const PATIENCE: [(&str, &str); 2] = [("lock_timeout", "30s"), ("synchronous_commit", "on")];

/// Whoever holds a lease and is alive.
const SERVING: &str = "SELECT coalesce(nullif(gateways.name, ''), gateways.id) FROM leases
    JOIN gateways ON gateways.id = leases.gateway
    WHERE gateways.seen_at > CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) - ?";

/// Which way the rows go. Both databases are of this program's version; the other one is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveDirection {
    ToPostgres,
    ToSqlite,
}

/// How many rows a table had, and has at its new place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedTable {
    pub name: String,
    pub rows: u64,
}

/// Nothing was moved, unless it says that this is not known.
#[derive(Debug, Error)]
pub enum MoveError {
    #[error("the database to move to is not empty: there are rows in {table}")]
    NotEmpty { table: String },
    #[error("the databases differ in {what}; both have to be of this version of the program")]
    Differ { what: String },
    #[error("{gateway} serves from that database")]
    Serving { gateway: String },
    #[error("the connection was lost in the last step: the rows may have been moved or not")]
    Unknown(#[source] DatabaseError),
    #[error("{table} had {had} rows and has {has} now")]
    Miscounted { table: String, had: u64, has: u64 },
    #[error("the rows cannot be moved")]
    Database(#[from] DatabaseError),
}

impl MoveError {
    /// What a person does next.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Serving { .. } => {
                "nothing was moved; stop every gateway of this installation, on whichever machine it runs"
            }
            Self::Unknown(_) => {
                "run it once more: it says that the target is not empty if they were, and moves them if not"
            }
            Self::NotEmpty { .. } => "nothing was moved; name an empty database",
            Self::Differ { .. } | Self::Miscounted { .. } | Self::Database(_) => {
                "nothing was moved; name an empty database, and use one version of the program for both"
            }
        }
    }
}

impl From<sqlx::Error> for MoveError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

/// A connection of either kind.
enum OneConnection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

struct TableColumns {
    table: String,
    columns: Vec<(String, ValueKind)>,
    /// The column that counts by itself.
    counter: Option<String>,
}

/// Copies every row. What was there stays there.
pub(crate) async fn move_rows(
    file: &Path,
    address: &PostgresAddress,
    direction: MoveDirection,
) -> Result<Vec<MovedTable>, MoveError> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(false)
        .foreign_keys(true);
    let mut sqlite = options.connect().await?;
    let options = address.options();
    let options = options.map_err(|error| sqlx::Error::Configuration(error.into()))?;
    let mut postgres = connect(options.options(PATIENCE)).await?;
    let tables = tables(&mut sqlite, &mut postgres).await?;
    let sqlite = OneConnection::Sqlite(sqlite);
    let postgres = OneConnection::Postgres(postgres);
    let (mut from, mut to) = match direction {
        MoveDirection::ToPostgres => (sqlite, postgres),
        MoveDirection::ToSqlite => (postgres, sqlite),
    };
    // One moment of what is read, one transaction for what is written.
    let begin = SqlStatement::for_each("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ");
    from.run(&begin).await?;
    to.run(&SqlStatement::for_each("BEGIN IMMEDIATE", "BEGIN"))
        .await?;
    from.keep_gateways_out(&["leases"]).await?;
    let names: Vec<_> = tables.iter().map(|table| table.table.as_str()).collect();
    to.keep_gateways_out(&names).await?;
    let mut moved = Vec::with_capacity(tables.len());
    for table in &tables {
        moved.push(table.copy(&mut from, &mut to).await?);
    }
    // Only when every table was counted. Until here nothing is at the new place, and nothing was
    // ever taken from the old.
    let committed = to.run(&SqlStatement::new("COMMIT")).await;
    committed.map_err(|error| MoveError::Unknown(error.into()))?;
    from.close().await;
    to.close().await;
    Ok(moved)
}

/// What both have, or a word about what only one has.
async fn tables(
    sqlite: &mut SqliteConnection,
    postgres: &mut PgConnection,
) -> Result<Vec<TableColumns>, MoveError> {
    let names = "SELECT name FROM sqlite_master WHERE type = 'table'
                 AND name NOT LIKE 'sqlite%' AND name <> '_sqlx_migrations'";
    let here: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut *sqlite).await?;
    let names = "SELECT CAST(table_name AS text) FROM information_schema.tables
                 WHERE table_schema = current_schema() AND table_name <> '_sqlx_migrations'";
    let there: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut *postgres).await?;
    let (here, there) = (BTreeSet::from_iter(here), BTreeSet::from_iter(there));
    if let Some(table) = here.symmetric_difference(&there).next() {
        let what = format!("the table {table}");
        return Err(MoveError::Differ { what });
    }
    let mut tables = Vec::with_capacity(here.len());
    let first = POINTED_TO.into_iter().map(str::to_owned);
    let rest = here
        .iter()
        .filter(|name| !POINTED_TO.contains(&name.as_str()));
    for table in first.chain(rest.cloned()) {
        tables.push(columns(table, sqlite, postgres).await?);
    }
    Ok(tables)
}

async fn columns(
    table: String,
    sqlite: &mut SqliteConnection,
    postgres: &mut PgConnection,
) -> Result<TableColumns, MoveError> {
    let of_sqlite = "SELECT name FROM pragma_table_info(?)";
    let here = sqlx::query_scalar::<_, String>(of_sqlite).bind(table.clone());
    let here = BTreeSet::from_iter(here.fetch_all(sqlite).await?);
    let of_postgres = "SELECT CAST(column_name AS text), CAST(data_type AS text),
                              is_identity = 'YES'
                       FROM information_schema.columns
                       WHERE table_schema = current_schema() AND table_name = $1
                       ORDER BY ordinal_position";
    let there: Vec<(String, String, bool)> = sqlx::query_as(of_postgres)
        .bind(table.clone())
        .fetch_all(postgres)
        .await?;
    let differ = |what: String| MoveError::Differ { what };
    let names = there.iter().map(|(name, ..)| name.clone());
    // SQLite numbers every row, and lists that number nowhere.
    let names = names.filter(|name| name != "rowid").collect();
    if let Some(column) = here.symmetric_difference(&names).next() {
        return Err(differ(format!("the column {column} of {table}")));
    }
    let counter = there.iter().find(|(_, _, counts)| *counts);
    let counter = counter.map(|(name, ..)| name.clone());
    let kind = |kind: &str| match kind {
        "bigint" => Some(ValueKind::Number),
        "text" => Some(ValueKind::Text),
        "bytea" => Some(ValueKind::Bytes),
        _ => None,
    };
    let columns = there.into_iter().map(|(name, said, _)| {
        let kind = kind(&said).ok_or_else(|| differ(format!("the kind of {name} of {table}")));
        kind.map(|kind| (name, kind))
    });
    let columns = columns.collect::<Result<_, _>>()?;
    Ok(TableColumns {
        table,
        columns,
        counter,
    })
}

impl TableColumns {
    async fn copy(
        &self,
        from: &mut OneConnection,
        to: &mut OneConnection,
    ) -> Result<MovedTable, MoveError> {
        // Table by table and within the transaction: whatever is found later undoes what was copied
        // before.
        if self.count(to).await? > 0 {
            let table = self.table.clone();
            return Err(MoveError::NotEmpty { table });
        }
        let names: Vec<_> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let (names, order) = (names.join(", "), self.order());
        let select = owned(format!(
            "SELECT {names} FROM {} ORDER BY {order}",
            self.table
        ));
        let marks = vec!["?"; self.columns.len()].join(", ");
        let insert = owned(format!(
            "INSERT INTO {} ({names}) VALUES ({marks})",
            self.table
        ));
        let mut rows = from.rows(&select);
        let mut had = 0;
        while let Some(row) = rows.try_next().await? {
            let mut insert = insert.clone();
            for (column, kind) in &self.columns {
                insert = match self.names_a_gateway(column) {
                    true => insert.bind(GatewayId::sole().as_str()),
                    false => insert.bind(value(&row, column, *kind)?),
                };
            }
            to.run(&insert).await?;
            had += 1;
        }
        drop(rows);
        let has = self.count(to).await?;
        if has != had {
            let table = self.table.clone();
            return Err(MoveError::Miscounted { table, had, has });
        }
        // The numbers have to go on from where they were: one that is given twice would join a new
        // message to an old reply.
        self.go_on_counting(from, to).await?;
        Ok(MovedTable {
            name: self.table.clone(),
            rows: had,
        })
    }

    fn names_a_gateway(&self, column: &str) -> bool {
        WORK_OF_GATEWAYS.contains(&(self.table.as_str(), column))
    }

    fn order(&self) -> &str {
        let first = self.columns.first().map_or("1", |(name, _)| name.as_str());
        self.counter.as_deref().unwrap_or(first)
    }

    async fn count(&self, at: &mut OneConnection) -> Result<u64, MoveError> {
        let count = owned(format!("SELECT count(*) FROM {}", self.table));
        let count = at.first_number(&count).await?;
        Ok(count.unwrap_or(0).unsigned_abs())
    }

    /// The next row gets a number that none had before.
    async fn go_on_counting(
        &self,
        from: &mut OneConnection,
        to: &mut OneConnection,
    ) -> Result<(), MoveError> {
        let Some(counter) = &self.counter else {
            return Ok(());
        };
        let table = &self.table;
        let sequence = format!("pg_get_serial_sequence('{table}', '{counter}')");
        let highest = owned(format!("SELECT max({counter}) FROM {table}"));
        let highest = to.first_number(&highest).await?;
        let given = match from {
            OneConnection::Sqlite(_) if !NEVER_AGAIN.contains(&table.as_str()) => None,
            OneConnection::Sqlite(_) => {
                let given = SqlStatement::new("SELECT seq FROM sqlite_sequence WHERE name = ?");
                from.first_number(&given.bind(table)).await?
            }
            OneConnection::Postgres(_) => {
                let given = format!("SELECT pg_sequence_last_value(CAST({sequence} AS regclass))");
                from.first_number(&owned(given)).await?
            }
        };
        let Some(last) = highest.max(given) else {
            return Ok(());
        };
        match to {
            OneConnection::Postgres(_) => {
                let set = owned(format!("SELECT setval({sequence}, ?)"));
                to.run(&set.bind(last)).await?;
            }
            OneConnection::Sqlite(_) if NEVER_AGAIN.contains(&table.as_str()) => {
                let gone = SqlStatement::new("DELETE FROM sqlite_sequence WHERE name = ?");
                to.run(&gone.bind(table)).await?;
                let set =
                    SqlStatement::new("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)");
                to.run(&set.bind(table).bind(last)).await?;
            }
            OneConnection::Sqlite(_) => {}
        }
        Ok(())
    }
}

fn owned(sql: String) -> SqlStatement {
    SqlStatement::owned(Cow::Owned(sql))
}

fn value(row: &DatabaseRow, column: &str, kind: ValueKind) -> Result<SqlValue, DatabaseError> {
    let absent = SqlValue::Nothing(kind);
    Ok(match kind {
        ValueKind::Number => row.get::<Option<i64>>(column)?.map(SqlValue::Number),
        ValueKind::Text => row.get::<Option<String>>(column)?.map(SqlValue::Text),
        ValueKind::Bytes => row.get::<Option<Vec<u8>>>(column)?.map(SqlValue::Bytes),
    }
    .unwrap_or(absent))
}

impl OneConnection {
    fn rows<'a>(
        &'a mut self,
        query: &SqlStatement,
    ) -> BoxStream<'a, Result<DatabaseRow, sqlx::Error>> {
        match self {
            Self::Sqlite(sqlite) => {
                let rows = query.sqlite_query().fetch(sqlite);
                rows.map_ok(DatabaseRow::from).boxed()
            }
            Self::Postgres(postgres) => {
                let rows = query.postgres_query().fetch(postgres);
                rows.map_ok(DatabaseRow::from).boxed()
            }
        }
    }

    /// Nobody writes to these tables of a PostgreSQL before this transaction ends, and no gateway serves from it now.
    /// A file has a lock of its own for that.
    async fn keep_gateways_out(&mut self, tables: &[&str]) -> Result<(), MoveError> {
        if matches!(self, Self::Sqlite(_)) {
            return Ok(());
        }
        // First: a moment that was fixed before would not show who began to serve while this waited.
        let lock = format!(
            "LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE",
            tables.join(", ")
        );
        self.run(&owned(lock)).await?;
        let serving = SqlStatement::new(SERVING).bind(millis(DEAD_AFTER));
        let serving = self.rows(&serving).try_next().await?;
        match serving {
            Some(row) => Err(MoveError::Serving {
                gateway: row.get(0)?,
            }),
            None => Ok(()),
        }
    }

    async fn run(&mut self, statement: &SqlStatement) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(sqlite) => statement.sqlite_query().execute(sqlite).await.map(drop),
            Self::Postgres(postgres) => {
                statement.postgres_query().execute(postgres).await.map(drop)
            }
        }
    }

    async fn first_number(&mut self, query: &SqlStatement) -> Result<Option<i64>, MoveError> {
        let first = self.rows(query).try_next().await?;
        let number = first.map(|row| row.get::<Option<i64>>(0)).transpose()?;
        Ok(number.flatten())
    }

    async fn close(self) {
        let _ = match self {
            Self::Sqlite(sqlite) => sqlite.close().await,
            Self::Postgres(postgres) => postgres.close().await,
        };
    }
}

#[cfg(test)]
#[path = "moving_tests.rs"]
mod tests;
