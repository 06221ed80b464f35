//! One SQL statement with its values.

use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};

/// Owned and repeatable: it may be run again after a transaction that failed.
#[derive(Clone, Debug)]
pub(crate) struct SqlStatement {
    sql: &'static str,
    values: Vec<SqlValue>,
}

/// What a row can hold.
#[derive(Clone, Debug)]
pub(crate) enum SqlValue {
    Nothing,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl SqlStatement {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self {
            sql,
            values: Vec::new(),
        }
    }

    /// Gives the next `?` its value.
    pub(crate) fn bind(mut self, value: impl Into<SqlValue>) -> Self {
        self.values.push(value.into());
        self
    }

    pub(super) fn query(&self) -> Query<'static, Sqlite, SqliteArguments> {
        let query = sqlx::query(self.sql);
        self.values.iter().fold(query, |query, value| match value {
            SqlValue::Nothing => query.bind(None::<i64>),
            SqlValue::Number(number) => query.bind(*number),
            SqlValue::Text(text) => query.bind(text.clone()),
            SqlValue::Bytes(bytes) => query.bind(bytes.clone()),
        })
    }
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

impl<T: Into<Self>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}
