//! One row of a result.

use hermetic_types::Timestamp;
use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{ColumnIndex, Decode, Row as _, Type};

use super::DatabaseError;

/// A row, whatever database it comes from.
#[derive(Debug)]
pub(crate) struct DatabaseRow(SqliteRow);

impl DatabaseRow {
    pub(super) fn new(row: SqliteRow) -> Self {
        Self(row)
    }

    /// The value in a column, by its name or its number.
    pub(crate) fn get<'r, T>(
        &'r self,
        column: impl ColumnIndex<SqliteRow>,
    ) -> Result<T, DatabaseError>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.0.try_get(column).map_err(DatabaseError::from)
    }

    /// A moment, which is stored as milliseconds.
    pub(crate) fn moment(&self, column: &str) -> Result<Timestamp, DatabaseError> {
        self.get(column).map(Timestamp::from_millis)
    }

    /// A moment that may be absent.
    pub(crate) fn maybe_moment(&self, column: &str) -> Result<Option<Timestamp>, DatabaseError> {
        let millis: Option<i64> = self.get(column)?;
        Ok(millis.map(Timestamp::from_millis))
    }

    /// A text that has to be one of those that `parse` knows.
    pub(crate) fn parsed<T>(
        &self,
        column: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, DatabaseError> {
        let text: &str = self.get(column)?;
        parse(text).ok_or_else(|| unknown(column, text))
    }

    /// The same where the text may be absent.
    pub(crate) fn maybe_parsed<T>(
        &self,
        column: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, DatabaseError> {
        let text: Option<&str> = self.get(column)?;
        text.map(|text| parse(text).ok_or_else(|| unknown(column, text)))
            .transpose()
    }
}

fn unknown(column: &str, text: &str) -> DatabaseError {
    sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: format!("{text:?} is not a known {column}").into(),
    }
    .into()
}
