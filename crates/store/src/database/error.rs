//! What went wrong in the database, and what a person does about it.

use thiserror::Error;

use super::failure::has_damage;
use super::postgres::{is_of_postgres, remedy};

/// A row could not be read or written.
#[derive(Debug, Error)]
#[error("cannot {doing}")]
pub struct StoreError {
    doing: &'static str,
    #[source]
    source: DatabaseError,
}

/// What the database itself says.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct DatabaseError(#[from] sqlx::Error);

/// The log belongs to the file: one without the other is damaged once more.
pub(super) const DAMAGED: &str = "put a copy of it back, or move state.db, state.db-wal and state.db-shm aside together and start without \
     them: conversations, pairings and approvals in them are then forgotten; `sqlite3 state.db .recover` may \
     read what is left";

impl StoreError {
    /// What a person does next.
    pub fn remedy(&self) -> &'static str {
        if has_damage(&self.source.0) {
            DAMAGED
        } else if is_of_postgres(&self.source.0) {
            remedy(&self.source.0)
        } else {
            "check the state folder's permissions and the space left"
        }
    }

    pub(crate) fn while_doing(doing: &'static str) -> impl FnOnce(DatabaseError) -> Self {
        move |source| Self { doing, source }
    }
}

impl DatabaseError {
    /// There is no row where one has to be.
    pub(crate) fn no_row() -> Self {
        Self(sqlx::Error::RowNotFound)
    }

    /// What is to be stored, or was, is not what it has to be.
    pub(crate) fn unfit(why: impl Into<String>) -> Self {
        Self(sqlx::Error::Protocol(why.into()))
    }
}
