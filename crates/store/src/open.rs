//! Opening the file and bringing it up to date.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermetic_types::HealthReport;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, SqlitePool};
use thiserror::Error;

use crate::write::{Committer, Writer, has_damage};
use crate::{
    AccountState, Approvals, Deliveries, Documents, History, Inbox, Ledger, Processes, ToolCalls,
};

/// The open file. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    /// Cannot write.
    reader: SqlitePool,
    writer: Writer,
}

#[derive(Debug, Error)]
pub enum OpenError {
    #[error("the state file {} is damaged", path.display())]
    Damaged {
        path: PathBuf,
        #[source]
        source: sqlx::Error,
    },
    #[error("the state file {} was written by a newer version of this program", path.display())]
    Newer {
        path: PathBuf,
        #[source]
        source: MigrateError,
    },
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
        source: MigrateError,
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
const MIGRATIONS: [(i64, &str, &str); 9] = [
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
    (
        38,
        "accounts",
        include_str!("../migrations/0038_accounts.sql"),
    ),
    (
        40,
        "message_parts",
        include_str!("../migrations/0040_message_parts.sql"),
    ),
    (
        43,
        "longest_yes",
        include_str!("../migrations/0043_longest_yes.sql"),
    ),
];

/// Readers next to the one writer that SQLite allows.
const READERS: u32 = 4;

/// How long a writer waits for another process (the command line next to the gateway).
const PATIENCE: Duration = Duration::from_secs(10);

impl Store {
    /// Must be called within a runtime, which has to live as long as the store is written to.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        let opened = |source| OpenError::opening(path, source);
        let _alone = alone(path)
            .await
            .map_err(|source| opened(sqlx::Error::Io(source)))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(PATIENCE)
            .foreign_keys(true);
        let mut first = options
            .clone()
            .synchronous(SqliteSynchronous::Full)
            .connect()
            .await
            .map_err(opened)?;
        migrator()
            .run_direct(None, &mut first, false)
            .await
            .map_err(|source| OpenError::migrating(path, source))?;
        let reader = SqlitePoolOptions::new()
            .max_connections(READERS)
            // A connection is a thread of ours, which does not go away while nobody looks.
            .test_before_acquire(false)
            .connect_with(options.clone().pragma("query_only", "ON"))
            .await
            .map_err(opened)?;
        let writer = Committer::start(options, first);
        Ok(Self { reader, writer })
    }

    /// Whether this is a file of an earlier version, which opening it would change. Changes nothing; what
    /// cannot be looked at is not known to be one.
    pub async fn is_of_earlier_version(path: &Path) -> bool {
        let looking = SqliteConnectOptions::new().filename(path).read_only(true);
        let Ok(mut file) = looking.connect().await else {
            return false;
        };
        let applied = sqlx::query_scalar::<_, i64>("SELECT version FROM _sqlx_migrations")
            .fetch_all(&mut file)
            .await;
        applied.is_ok_and(|applied| MIGRATIONS.iter().any(|(ours, ..)| !applied.contains(ours)))
    }

    /// Whether it can be written to, and if not, why and since when.
    pub fn health(&self) -> HealthReport {
        self.writer.health()
    }

    /// From now on, what was done already and has only to be remembered waits while there is no room,
    /// instead of failing. For a program that lives long enough to see room come back.
    pub fn wait_for_room(&self) {
        self.writer.set_waiting(true);
    }

    /// Ends that: what still waits fails when it is tried next. For a program that is about to end.
    pub fn stop_waiting_for_room(&self) {
        self.writer.set_waiting(false);
    }

    pub fn ledger(&self) -> Ledger {
        Ledger::new(self.reader.clone(), self.writer.clone())
    }

    pub fn inbox(&self) -> Inbox {
        Inbox::new(self.reader.clone(), self.writer.clone())
    }

    pub fn tool_calls(&self) -> ToolCalls {
        ToolCalls::new(self.reader.clone(), self.writer.clone())
    }

    pub fn history(&self) -> History {
        History::new(self.reader.clone(), self.writer.clone())
    }

    pub fn deliveries(&self) -> Deliveries {
        Deliveries::new(self.reader.clone(), self.writer.clone())
    }

    pub fn approvals(&self) -> Approvals {
        Approvals::new(self.reader.clone(), self.writer.clone())
    }

    pub fn processes(&self) -> Processes {
        Processes::new(self.reader.clone(), self.writer.clone())
    }

    /// What the adapter of this account remembers.
    pub fn account_state(&self, account: &str) -> AccountState {
        AccountState::new(self.reader.clone(), self.writer.clone(), account.to_owned())
    }

    pub fn documents(&self) -> Documents {
        Documents::new(self.reader.clone(), self.writer.clone())
    }
}

impl OpenError {
    fn opening(path: &Path, source: sqlx::Error) -> Self {
        let path = path.to_owned();
        if has_damage(&source) {
            Self::Damaged { path, source }
        } else {
            Self::Open { path, source }
        }
    }

    fn migrating(path: &Path, source: MigrateError) -> Self {
        let path = path.to_owned();
        match source {
            MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _)
                if has_damage(&source) =>
            {
                Self::Damaged { path, source }
            }
            MigrateError::VersionMissing(_) => Self::Newer { path, source },
            source => Self::Migrate { path, source },
        }
    }

    /// What a person does next.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Damaged { .. } => DAMAGED,
            Self::Newer { .. } => "use the version of the program that wrote it, or a later one",
            Self::Open { .. } | Self::Migrate { .. } => {
                "check the folder's permissions and the space left"
            }
        }
    }
}

/// The log belongs to the file: one without the other is damaged once more.
const DAMAGED: &str = "put a copy of it back, or move state.db, state.db-wal and state.db-shm aside together and start without \
     them: conversations, pairings and approvals in them are then forgotten; `sqlite3 state.db .recover` may \
     read what is left";

impl StoreError {
    /// What a person does next.
    pub fn remedy(&self) -> &'static str {
        if has_damage(&self.source) {
            DAMAGED
        } else {
            "check the state folder's permissions and the space left"
        }
    }

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

pub(crate) fn migrator() -> Migrator {
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
    use std::fs;

    use super::*;
    use crate::write::{Durability, Statement, WithoutRoom};

    #[tokio::test]
    async fn two_first_starts_at_once_both_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let (one, two) = tokio::join!(Store::open(&path), Store::open(&path));
        assert_eq!(one.unwrap().ledger().entries().await.unwrap(), []);
        assert_eq!(two.unwrap().ledger().entries().await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_damaged_file_is_called_damaged_and_has_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let garbage = vec![b'x'; 8192];
        fs::write(&path, &garbage).unwrap();
        is_damaged(&path).await;

        fs::remove_file(&path).unwrap();
        let whole = folder.path().join("whole.db");
        drop(Store::open(&whole).await.unwrap());
        // Folded into one file by whoever was the last to close it.
        let mut bytes = until_whole(&whole).await;
        let page = 4096;
        bytes[page..4 * page].fill(b'x');
        fs::write(&path, &bytes).unwrap();
        is_damaged(&path).await;

        fs::write(&path, &bytes[..page + 100]).unwrap();
        is_damaged(&path).await;
    }

    async fn is_damaged(path: &Path) {
        let error = Store::open(path).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("state.db is damaged"), "{text}");
        let remedy = error.remedy();
        assert!(!remedy.contains("permission"), "{remedy}");
        assert!(
            remedy.contains("aside") && remedy.contains("copy"),
            "{remedy}"
        );
    }

    async fn until_whole(path: &Path) -> Vec<u8> {
        while path.with_extension("db-wal").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        fs::read(path).unwrap()
    }

    #[tokio::test]
    async fn a_file_of_a_newer_version_is_named_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = Store::open(&path).await.unwrap();
        let later = Statement::new(
            "INSERT INTO _sqlx_migrations
             (version, description, success, checksum, execution_time)
             VALUES (999, 'later', 1, x'00', 1)",
        );
        let terms = (Durability::OnDisk, WithoutRoom::Fail);
        store.writer.change("pretend", terms, later).await.unwrap();
        let error = Store::open(&path).await.unwrap_err();
        assert!(error.to_string().contains("newer version"), "{error}");
        assert!(error.remedy().contains("version"), "{}", error.remedy());
    }

    #[tokio::test]
    async fn a_file_from_before_there_were_accounts_keeps_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let options = SqliteConnectOptions::new().filename(&path);
        let mut old = options.create_if_missing(true).connect().await.unwrap();
        let all = migrator();
        let before = all.iter().filter(|one| one.version < 38).cloned();
        let before = Migrator::with_migrations(before.collect());
        before.run_direct(None, &mut old, false).await.unwrap();
        for row in [
            "INSERT INTO inbox (platform, update_id, conversation, payload, state, received_at)
             VALUES ('telegram', '7', 'agent:main:telegram:dm:42', '{}', 'accepted', 1)",
            "INSERT INTO deliveries (message, platform, address, text, state, queued_at)
             VALUES (1, 'telegram', '{}', 'hi', 'pending', 1)",
        ] {
            sqlx::query(row).execute(&mut old).await.unwrap();
        }
        drop(old);

        let store = Store::open(&path).await.unwrap();
        let open = store.inbox().open().await.unwrap();
        assert_eq!(open[0].account, "telegram");
        assert_eq!(
            store.deliveries().due().await.unwrap()[0].account,
            "telegram"
        );
        // The update of the platform's own account is known; another bot's of the same number is not.
        let key = open[0].conversation.clone();
        let now = hermetic_types::Timestamp::from_millis(2);
        for (account, is_new) in [("telegram", false), ("telegram/work", true)] {
            let accepted = store.inbox().accept(account, "7", &key, "{}", now).await;
            assert_eq!(accepted.unwrap().is_some(), is_new, "{account}");
        }
    }

    #[tokio::test]
    async fn a_file_that_may_not_be_opened_is_not_called_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no such folder").join("state.db");
        let error = Store::open(&path).await.unwrap_err();
        assert!(error.to_string().contains("cannot open"), "{error}");
        assert!(error.remedy().contains("permissions"));
    }

    #[tokio::test]
    async fn whoever_reads_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = Store::open(&path).await.unwrap();
        let written = sqlx::query("DELETE FROM inbox RETURNING id")
            .fetch_optional(&store.reader)
            .await;
        let error = written.unwrap_err().to_string();
        assert!(error.contains("readonly"), "{error}");
    }
}
