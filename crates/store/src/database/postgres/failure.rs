//! What it means when PostgreSQL says no, or nothing.

use sqlx::postgres::PgDatabaseError;

/// Whose fault a failed statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostgresFailure {
    /// The statement's own: the rows contradict each other, or it asks for what there is not.
    Statement,
    /// Two came in each other's way: the same once more goes through.
    Collision,
    /// The connection is gone. Another may be had.
    Connection,
    /// There is no room, or the server does not take writes now.
    Server,
}

impl PostgresFailure {
    /// By the error's class, as <https://www.postgresql.org/docs/current/errcodes-appendix.html> has them.
    pub(super) fn of(error: &sqlx::Error) -> Self {
        let sqlx::Error::Database(database) = error else {
            return match error {
                sqlx::Error::Encode(_)
                | sqlx::Error::Decode(_)
                | sqlx::Error::ColumnDecode { .. } => Self::Statement,
                sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => Self::Server,
                _ => Self::Connection,
            };
        };
        let code = database.code().unwrap_or_default();
        match (&*code, code.get(..2).unwrap_or_default()) {
            ("40001" | "40P01" | "55P03", _) => Self::Collision,
            ("57P01" | "57P02" | "57P03" | "57P05" | "25P03", _) | (_, "08" | "26") => {
                Self::Connection
            }
            // Of a statement that was prepared before a newer program added a column to its table.
            ("0A000", _) if database.message().contains("cached plan") => Self::Connection,
            (_, "25" | "28" | "3D" | "53" | "55" | "57" | "58" | "F0" | "XX") => Self::Server,
            // Tried again it would fail again, for ever, and everything behind it with it.
            _ => Self::Statement,
        }
    }
}

/// For the operator.
pub(super) fn in_words(error: &sqlx::Error) -> String {
    let sqlx::Error::Database(database) = error else {
        return format!("the database does not answer ({error})");
    };
    let code = database.code().unwrap_or_default();
    let what = match (&*code, code.get(..2).unwrap_or_default()) {
        ("53100", _) => "the database's disk is full",
        ("53300", _) => "the database takes no more connections",
        ("25006", _) => "the database takes no writes: it may be a standby",
        ("57P01" | "57P02" | "57P03", _) => "the database is shutting down or starting",
        (_, "28") => "the database refuses this user",
        ("3D000", _) => "there is no such database",
        (_, "58" | "XX") => "the database reports an error of its own",
        _ => "the database refuses",
    };
    format!("{what} ({})", database.message())
}

/// Whether this is PostgreSQL's word, or that of the way to it.
pub(in crate::database) fn is_of_postgres(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => error.try_downcast_ref::<PgDatabaseError>().is_some(),
        sqlx::Error::AnyDriverError(_) => true,
        _ => false,
    }
}

/// The same as an error that says which database did not answer.
pub(super) fn named(error: sqlx::Error) -> sqlx::Error {
    match error {
        sqlx::Error::Database(_) => error,
        _ => sqlx::Error::AnyDriverError(in_words(&error).into()),
    }
}

/// What a person does next.
pub(in crate::database) fn remedy(error: &sqlx::Error) -> &'static str {
    match PostgresFailure::of(error) {
        PostgresFailure::Statement | PostgresFailure::Collision => {
            "look at the database's own log; the address may name another program's database"
        }
        PostgresFailure::Connection | PostgresFailure::Server => {
            "check that the database of `gateway.store` runs, can be reached and takes writes"
        }
    }
}
