//! What it means when SQLite says no.

use sqlx::error::DatabaseError;
use sqlx::sqlite::SqliteError;

/// SQLite's primary result codes, as <https://sqlite.org/rescode.html> has them.
mod code {
    pub(super) const BUSY: u32 = 5;
    pub(super) const READ_ONLY: u32 = 8;
    pub(super) const IO: u32 = 10;
    pub(super) const CORRUPT: u32 = 11;
    pub(super) const FULL: u32 = 13;
    pub(super) const CANNOT_OPEN: u32 = 14;
    pub(super) const CONSTRAINT: u32 = 19;
    pub(super) const NOT_A_DATABASE: u32 = 26;
}

/// Whose fault a failed write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteFailure {
    /// The rows contradict each other: the statement's own fault, and the store is well.
    Statement,
    /// There is no room.
    Full,
    /// The disk answers with errors: what it was told before may be lost, too.
    Disk,
    /// Anything else that is not about this statement.
    Store,
}

impl WriteFailure {
    pub(super) fn of(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(error) => match primary(error.as_ref()) {
                Some(code::CONSTRAINT) => Self::Statement,
                Some(code::FULL) => Self::Full,
                Some(code::IO) => Self::Disk,
                _ => Self::Store,
            },
            sqlx::Error::Io(_) => Self::Disk,
            sqlx::Error::Encode(_) => Self::Statement,
            _ => Self::Store,
        }
    }
}

/// For the operator.
pub(super) fn in_words(error: &sqlx::Error) -> String {
    let sqlx::Error::Database(database) = error else {
        return error.to_string();
    };
    let what = match primary(database.as_ref()) {
        Some(code::FULL) => "the disk is full",
        Some(code::IO) => "the disk answers with an error",
        Some(code::CORRUPT | code::NOT_A_DATABASE) => "the state file is damaged",
        Some(code::READ_ONLY) => "the state file cannot be written",
        Some(code::CANNOT_OPEN) => "the state file cannot be opened",
        Some(code::BUSY) => "another program holds the state file",
        _ => return database.message().to_owned(),
    };
    format!("{what} ({})", database.message())
}

pub(super) fn has_damage(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    matches!(
        primary(error.as_ref()),
        Some(code::CORRUPT | code::NOT_A_DATABASE)
    )
}

fn primary(error: &dyn DatabaseError) -> Option<u32> {
    // Theirs are numbers as well, and mean something else.
    let _: &SqliteError = error.try_downcast_ref()?;
    let extended: u32 = error.code()?.parse().ok()?;
    Some(extended & 0xff)
}

/// Whether the disk said that it did not keep what it was given.
pub(super) fn is_failed_sync(error: &sqlx::Error) -> bool {
    /// `SQLITE_IOERR_FSYNC` and `SQLITE_IOERR_DIR_FSYNC`.
    const SYNCS: [&str; 2] = ["1034", "1290"];
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    error.code().is_some_and(|code| SYNCS.contains(&&*code))
}
