//! Opening the file and bringing it up to date.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use thiserror::Error;

use crate::{Approvals, Deliveries, Documents, History, Inbox, Ledger, Processes, ToolCalls};

/// The open file. Clones share one pool.
#[derive(Clone, Debug)]
pub struct Store {
    pool: SqlitePool,
}

#[derive(Debug, Error)]
pub enum OpenError {
    #[error("cannot open the state file {}", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: sqlx::Error,
    },
    #[error("cannot bring the state file {} up to date", path.display())]
    Migrate {
        path: PathBuf,
        #[source]
        source: sqlx::migrate::MigrateError,
    },
}

/// A row could not be read or written.
#[derive(Debug, Error)]
#[error("cannot {doing}")]
pub struct StoreError {
    doing: &'static str,
    #[source]
    source: sqlx::Error,
}

/// In the order they are applied. A landed migration is never edited.
const MIGRATIONS: [(i64, &str, &str); 6] = [
    (1, "ledger", include_str!("../migrations/0001_ledger.sql")),
    (
        2,
        "messages",
        include_str!("../migrations/0002_messages.sql"),
    ),
    (
        3,
        "approvals",
        include_str!("../migrations/0003_approvals.sql"),
    ),
    (5, "drafts", include_str!("../migrations/0005_drafts.sql")),
    (
        7,
        "processes",
        include_str!("../migrations/0007_processes.sql"),
    ),
    (
        22,
        "set_aside",
        include_str!("../migrations/0022_set_aside.sql"),
    ),
];

/// Readers next to the one writer that SQLite allows.
const CONNECTIONS: u32 = 4;

/// How long a writer waits for another process (the command line next to the gateway).
const PATIENCE: Duration = Duration::from_secs(10);

impl Store {
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        let opened = |source| OpenError::Open {
            path: path.to_owned(),
            source,
        };
        let _alone = alone(path)
            .await
            .map_err(|source| opened(sqlx::Error::Io(source)))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(PATIENCE)
            .foreign_keys(true);
        let pool = SqlitePoolOptions::new()
            .max_connections(CONNECTIONS)
            // A connection is a thread of ours, which does not go away while nobody looks.
            .test_before_acquire(false)
            .connect_with(options)
            .await
            .map_err(opened)?;
        migrator()
            .run(&pool)
            .await
            .map_err(|source| OpenError::Migrate {
                path: path.to_owned(),
                source,
            })?;
        Ok(Self { pool })
    }

    pub fn ledger(&self) -> Ledger {
        Ledger::new(self.pool.clone())
    }

    pub fn inbox(&self) -> Inbox {
        Inbox::new(self.pool.clone())
    }

    pub fn tool_calls(&self) -> ToolCalls {
        ToolCalls::new(self.pool.clone())
    }

    pub fn history(&self) -> History {
        History::new(self.pool.clone())
    }

    pub fn deliveries(&self) -> Deliveries {
        Deliveries::new(self.pool.clone())
    }

    pub fn approvals(&self) -> Approvals {
        Approvals::new(self.pool.clone())
    }

    pub fn processes(&self) -> Processes {
        Processes::new(self.pool.clone())
    }

    pub fn documents(&self) -> Documents {
        Documents::new(self.pool.clone())
    }

    /// Waits for running statements and folds the write-ahead log into the file.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

impl StoreError {
    pub(crate) fn while_doing(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self { doing, source }
    }
}

/// One process at a time opens the file and brings it up to date: two that begin at once would both
/// switch its mode and both apply what is missing.
async fn alone(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path.with_extension("lock"))?;
    let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
    locked.unwrap_or_else(|ended| Err(io::Error::other(ended)))
}

fn migrator() -> Migrator {
    let migrations = MIGRATIONS.map(|(version, name, sql)| {
        Migration::new(
            version,
            Cow::Borrowed(name),
            MigrationType::Simple,
            sqlx::SqlStr::from_static(sql),
            false,
        )
    });
    Migrator::with_migrations(migrations.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_first_starts_at_once_both_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let (one, two) = tokio::join!(Store::open(&path), Store::open(&path));
        assert_eq!(one.unwrap().ledger().entries().await.unwrap(), []);
        assert_eq!(two.unwrap().ledger().entries().await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_named_in_the_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        std::fs::write(&path, vec![b'x'; 8192]).unwrap();
        let error = Store::open(&path).await.unwrap_err();
        assert!(error.to_string().contains("state.db"), "{error}");
    }
}
