//! One row of a result.

use hermetic_types::Timestamp;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{ColumnIndex, Row as _, TypeInfo as _, ValueRef as _};

use super::DatabaseError;

/// A row, whatever database it comes from.
#[derive(Debug)]
pub(crate) struct DatabaseRow(RowKind);

#[derive(Debug)]
enum RowKind {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// A type that a column can be read as.
pub(crate) trait ColumnValue<'r>: Sized {
    fn from_sqlite(
        row: &'r SqliteRow,
        column: impl ColumnIndex<SqliteRow>,
    ) -> Result<Self, sqlx::Error>;

    fn from_postgres(row: &'r PgRow, column: impl ColumnIndex<PgRow>) -> Result<Self, sqlx::Error>;
}

impl DatabaseRow {
    /// The value in a column, by its name or its number.
    pub(crate) fn get<'r, T: ColumnValue<'r>>(
        &'r self,
        column: impl ColumnIndex<SqliteRow> + ColumnIndex<PgRow>,
    ) -> Result<T, DatabaseError> {
        let value = match &self.0 {
            RowKind::Sqlite(row) => T::from_sqlite(row, column),
            RowKind::Postgres(row) => T::from_postgres(row, column),
        };
        value.map_err(DatabaseError::from)
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

impl From<SqliteRow> for DatabaseRow {
    fn from(row: SqliteRow) -> Self {
        Self(RowKind::Sqlite(row))
    }
}

impl From<PgRow> for DatabaseRow {
    fn from(row: PgRow) -> Self {
        Self(RowKind::Postgres(row))
    }
}

/// Types that both databases read alike.
macro_rules! read_alike {
    ($($type:ty),*) => {$(
        impl<'r> ColumnValue<'r> for $type {
            fn from_sqlite(
                row: &'r SqliteRow,
                column: impl ColumnIndex<SqliteRow>,
            ) -> Result<Self, sqlx::Error> {
                row.try_get(column)
            }

            fn from_postgres(
                row: &'r PgRow,
                column: impl ColumnIndex<PgRow>,
            ) -> Result<Self, sqlx::Error> {
                row.try_get(column)
            }
        }
    )*};
}

read_alike!(
    bool,
    &'r str,
    Option<&'r str>,
    String,
    Option<String>,
    Vec<u8>,
    Option<Vec<u8>>
);

impl<'r> ColumnValue<'r> for Option<i64> {
    fn from_sqlite(
        row: &'r SqliteRow,
        column: impl ColumnIndex<SqliteRow>,
    ) -> Result<Self, sqlx::Error> {
        row.try_get(column)
    }

    /// PostgreSQL's own numbers, such as the length of a text, are shorter than those of our columns.
    fn from_postgres(row: &'r PgRow, column: impl ColumnIndex<PgRow>) -> Result<Self, sqlx::Error> {
        let index = column.index(row)?;
        let is_short = row.try_get_raw(index)?.type_info().name() == "INT4";
        if is_short {
            let short: Option<i32> = row.try_get(index)?;
            Ok(short.map(i64::from))
        } else {
            row.try_get(index)
        }
    }
}

impl<'r> ColumnValue<'r> for i64 {
    fn from_sqlite(
        row: &'r SqliteRow,
        column: impl ColumnIndex<SqliteRow>,
    ) -> Result<Self, sqlx::Error> {
        row.try_get(column)
    }

    fn from_postgres(row: &'r PgRow, column: impl ColumnIndex<PgRow>) -> Result<Self, sqlx::Error> {
        let number: Option<Self> = ColumnValue::from_postgres(row, column)?;
        number.ok_or_else(|| sqlx::Error::Decode("there is no number in the column".into()))
    }
}

impl<'r> ColumnValue<'r> for u32 {
    fn from_sqlite(
        row: &'r SqliteRow,
        column: impl ColumnIndex<SqliteRow>,
    ) -> Result<Self, sqlx::Error> {
        row.try_get(column)
    }

    fn from_postgres(row: &'r PgRow, column: impl ColumnIndex<PgRow>) -> Result<Self, sqlx::Error> {
        let number: i64 = ColumnValue::from_postgres(row, column)?;
        Self::try_from(number).map_err(|error| sqlx::Error::Decode(error.into()))
    }
}

impl<'r> ColumnValue<'r> for Option<u32> {
    fn from_sqlite(
        row: &'r SqliteRow,
        column: impl ColumnIndex<SqliteRow>,
    ) -> Result<Self, sqlx::Error> {
        row.try_get(column)
    }

    fn from_postgres(row: &'r PgRow, column: impl ColumnIndex<PgRow>) -> Result<Self, sqlx::Error> {
        let number: Option<i64> = ColumnValue::from_postgres(row, column)?;
        let number = number.map(u32::try_from).transpose();
        number.map_err(|error| sqlx::Error::Decode(error.into()))
    }
}

fn unknown(column: &str, text: &str) -> DatabaseError {
    sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: format!("{text:?} is not a known {column}").into(),
    }
    .into()
}
