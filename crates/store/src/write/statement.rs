//! One SQL statement with its values.

use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments as _, Encode, Sqlite, Type};

/// Owned and repeatable: it may be run again after a transaction that failed.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(super) sql: &'static str,
    pub(super) arguments: SqliteArguments,
    /// A value that SQLite has no form for. None of ours is.
    pub(super) unfit: bool,
}

impl Statement {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self {
            sql,
            arguments: SqliteArguments::default(),
            unfit: false,
        }
    }

    pub(crate) fn bind<'t, T: Encode<'t, Sqlite> + Type<Sqlite>>(mut self, value: T) -> Self {
        self.unfit |= self.arguments.add(value).is_err();
        self
    }
}
