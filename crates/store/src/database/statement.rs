//! One SQL statement with its values.

use std::borrow::Cow;

use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};
use sqlx::{AssertSqlSafe, SqlSafeStr as _};

use super::placeholders::numbered;

/// Owned and repeatable: it may be run again after a transaction that failed.
#[derive(Clone, Debug)]
pub(crate) struct SqlStatement {
    sqlite: Cow<'static, str>,
    /// Where PostgreSQL needs a text of its own.
    postgres: Option<Cow<'static, str>>,
    values: Vec<SqlValue>,
    /// Nobody else writes under this name until the transaction ends.
    alone_in: Option<&'static str>,
    /// Those of one line are written in the order in which this process handed them in.
    line: Option<String>,
}

/// What a row can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SqlValue {
    /// PostgreSQL wants to know what it is that is absent.
    Nothing(ValueKind),
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Number,
    Text,
    Bytes,
}

/// A type whose values a row can hold.
pub(crate) trait StoredKind {
    const KIND: ValueKind;
}

impl SqlStatement {
    /// A text that both databases take. Its placeholders are `?`, or `?1`, `?2`, … throughout.
    pub(crate) fn new(sql: &'static str) -> Self {
        Self::owned(Cow::Borrowed(sql))
    }

    /// Two texts for the same, where the databases differ. Both take the same values in the same order.
    pub(crate) fn for_each(sqlite: &'static str, postgres: &'static str) -> Self {
        Self {
            postgres: Some(Cow::Borrowed(postgres)),
            ..Self::new(sqlite)
        }
    }

    /// A text made from the names of our own tables and columns; never from anything else.
    pub(super) fn owned(sql: Cow<'static, str>) -> Self {
        Self {
            sqlite: sql,
            postgres: None,
            values: Vec::new(),
            alone_in: None,
            line: None,
        }
    }

    /// Gives the next `?` its value.
    pub(crate) fn bind(mut self, value: impl Into<SqlValue>) -> Self {
        self.values.push(value.into());
        self
    }

    /// For a write that looks before it writes: no other of this name runs between the two. SQLite has one
    /// writer at a time anyway; PostgreSQL takes a lock that ends with the transaction.
    pub(crate) fn alone_in(mut self, name: &'static str) -> Self {
        self.alone_in = Some(name);
        self
    }

    /// For rows whose numbers tell their order: they are written as they were handed in. SQLite does that with all;
    /// PostgreSQL is written to by several connections.
    pub(crate) fn in_line(mut self, name: &str) -> Self {
        self.line = Some(name.to_owned());
        self
    }

    pub(super) fn line(&self) -> Option<&str> {
        self.line.as_deref()
    }

    pub(super) fn lock_name(&self) -> Option<&'static str> {
        self.alone_in
    }

    pub(super) fn sqlite_query(&self) -> Query<'static, Sqlite, SqliteArguments> {
        let query = match &self.sqlite {
            Cow::Borrowed(sql) => sqlx::query(*sql),
            Cow::Owned(sql) => sqlx::query(AssertSqlSafe(sql.clone()).into_sql_str()),
        };
        self.values.iter().fold(query, bound)
    }

    /// Several statements as one text for SQLite, from what opens a transaction to what ends it. `None` where a
    /// placeholder has a number, which would count through all of them.
    pub(super) fn sqlite_script(
        opening: &str,
        statements: &[Self],
        closing: &str,
    ) -> Option<Query<'static, Sqlite, SqliteArguments>> {
        let mut text = String::from(opening);
        for statement in statements {
            if has_numbers(&statement.sqlite) {
                return None;
            }
            text.push_str(SEPARATOR);
            text.push_str(&statement.sqlite);
        }
        text.push_str(SEPARATOR);
        text.push_str(closing);
        let query = sqlx::query(AssertSqlSafe(text).into_sql_str());
        let values = statements.iter().flat_map(|statement| &statement.values);
        Some(values.fold(query, bound))
    }

    pub(super) fn postgres_query(&self) -> Query<'static, Postgres, PgArguments> {
        let text = self.postgres.as_ref().unwrap_or(&self.sqlite);
        let query = sqlx::query(AssertSqlSafe(numbered(text)).into_sql_str());
        self.values.iter().fold(query, |query, value| match value {
            SqlValue::Nothing(ValueKind::Number) => query.bind(None::<i64>),
            SqlValue::Nothing(ValueKind::Text) => query.bind(None::<String>),
            SqlValue::Nothing(ValueKind::Bytes) => query.bind(None::<Vec<u8>>),
            SqlValue::Number(number) => query.bind(*number),
            SqlValue::Text(text) => query.bind(without_nul(text)),
            SqlValue::Bytes(bytes) => query.bind(bytes.clone()),
        })
    }
}

/// On a line of its own, because a text may end with a comment.
const SEPARATOR: &str = "\n;\n";

/// With its next value.
fn bound(
    query: Query<'static, Sqlite, SqliteArguments>,
    value: &SqlValue,
) -> Query<'static, Sqlite, SqliteArguments> {
    match value {
        SqlValue::Nothing(_) => query.bind(None::<i64>),
        SqlValue::Number(number) => query.bind(*number),
        SqlValue::Text(text) => query.bind(text.clone()),
        SqlValue::Bytes(bytes) => query.bind(bytes.clone()),
    }
}

/// Whether it has placeholders like `?1`.
fn has_numbers(sql: &str) -> bool {
    let after = sql.split('?').skip(1);
    let mut after = after.filter_map(|rest| rest.bytes().next());
    after.any(|byte| byte.is_ascii_digit())
}

/// PostgreSQL's texts hold every character but NUL, which the output of a command may well contain. A turn
/// must not fail for that, so a sign for "no character" takes its place.
pub(super) fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

impl StoredKind for i64 {
    const KIND: ValueKind = ValueKind::Number;
}

impl StoredKind for u32 {
    const KIND: ValueKind = ValueKind::Number;
}

impl StoredKind for &str {
    const KIND: ValueKind = ValueKind::Text;
}

impl StoredKind for &String {
    const KIND: ValueKind = ValueKind::Text;
}

impl StoredKind for &[u8] {
    const KIND: ValueKind = ValueKind::Bytes;
}

impl From<i64> for SqlValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for SqlValue {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for SqlValue {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<&[u8]> for SqlValue {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl<T: Into<Self> + StoredKind> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing(T::KIND), Into::into)
    }
}
