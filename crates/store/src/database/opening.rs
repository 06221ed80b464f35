//! Opening the file and bringing it up to date.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermetic_types::{GatewayId, SharedClock};
use sqlx::migrate::MigrateError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, SqliteConnection};
use thiserror::Error;

use super::committer::Committer;
use super::copying::{CopyError, StoreVersion, copy_by, version};
use super::error::DAMAGED;
use super::failure::has_damage;
use super::migrations::{MIGRATIONS, migrator};
use super::{Database, DatabaseError, DatabaseReader, PostgresAddress, StoreMetrics};

#[derive(Debug, Error)]
pub enum OpenError {
    #[error("the state file {} is damaged", path.display())]
    Damaged {
        path: PathBuf,
        #[source]
        source: DatabaseError,
    },
    #[error("the state file {} was written by a newer version of this program", path.display())]
    Newer {
        path: PathBuf,
        #[source]
        source: DatabaseError,
    },
    #[error("cannot open the state file {}", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: DatabaseError,
    },
    #[error("no copy of the state file can be kept before it is brought up to date")]
    Keep(#[from] CopyError),
    #[error("cannot bring the state file {} up to date", path.display())]
    Migrate {
        path: PathBuf,
        #[source]
        source: DatabaseError,
    },
    #[error("cannot reach the database {address}: {why}")]
    Unreachable {
        address: PostgresAddress,
        why: String,
        #[source]
        source: DatabaseError,
    },
    #[error("the database {address} was brought up to date by a newer version of this program")]
    NewerDatabase {
        address: PostgresAddress,
        #[source]
        source: DatabaseError,
    },
    #[error("cannot bring the database {address} up to date")]
    MigrateDatabase {
        address: PostgresAddress,
        #[source]
        source: DatabaseError,
    },
}

/// Readers next to the one writer that SQLite allows.
const READERS: u32 = 4;

/// How long a writer waits for another process (the command line next to the gateway).
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

impl Database {
    /// Must be called within a runtime, which has to live as long as the store is written to.
    pub(crate) async fn open(
        path: &Path,
        gateway: GatewayId,
        clock: SharedClock,
    ) -> Result<Self, OpenError> {
        let opened = |source| OpenError::opening(path, source);
        let _alone = alone(path)
            .await
            .map_err(|source| opened(sqlx::Error::Io(source)))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true);
        let mut first = options
            .clone()
            .synchronous(SqliteSynchronous::Full)
            .connect()
            .await
            .map_err(opened)?;
        // A copy before the first change, and no change without one.
        keep_before_upgrade(&mut first, path).await?;
        migrator()
            .run_direct(None, &mut first, false)
            .await
            .map_err(|source| OpenError::migrating(path, source))?;
        let reader = SqlitePoolOptions::new()
            .max_connections(READERS)
            // A connection is a thread of ours, which does not go away while nobody looks.
            .test_before_acquire(false)
            // So that nothing can be written past the committer, by mistake or by a statement that
            // was meant to read.
            .connect_with(options.clone().pragma("query_only", "ON"))
            .await
            .map_err(opened)?;
        let writer = Committer::start(options, first, Arc::clone(&clock));
        Ok(Self {
            reader: DatabaseReader::Sqlite(reader),
            writer,
            gateway,
            metrics: StoreMetrics::default(),
            clock,
            beats: None,
            fence: None,
        })
    }
}

/// A file of an earlier version is copied before it is changed: an upgrade that turns out badly can be
/// taken back. The copy stays until somebody removes it, one for each version.
async fn keep_before_upgrade(
    database: &mut SqliteConnection,
    path: &Path,
) -> Result<(), OpenError> {
    let version = version(database).await;
    let version = version.map_err(|source| OpenError::opening(path, source))?;
    // One that is new, and one that a newer program wrote, which is refused next.
    if version == StoreVersion(0) || version >= StoreVersion::ours() {
        return Ok(());
    }
    let kept = kept_path(path, version);
    let aside = kept.with_extension("partial");
    // Of an upgrade that was killed; whoever opens the file is alone.
    let _ = fs::remove_file(&aside);
    copy_by(database, &aside).await?;
    // Under its name only when it is whole, and the name on the disk as well: a power cut in the
    // migration needs both.
    let moved = fs::rename(&aside, &kept).and_then(|()| sync_folder(path));
    moved.map_err(|source| OpenError::opening(path, sqlx::Error::Io(source)))
}

/// `state.db.22.bak`
fn kept_path(path: &Path, version: StoreVersion) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.bak", version.0));
    path.with_file_name(name)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    File::open(folder)?.sync_all()
}

/// Whether this is a file of an earlier version, which opening it would change. Changes nothing; what
/// cannot be looked at is not known to be one.
pub(crate) async fn is_of_earlier_version(path: &Path) -> bool {
    let looking = SqliteConnectOptions::new().filename(path).read_only(true);
    let Ok(mut file) = looking.connect().await else {
        return false;
    };
    let applied = sqlx::query_scalar::<_, i64>("SELECT version FROM _sqlx_migrations")
        .fetch_all(&mut file)
        .await;
    applied.is_ok_and(|applied| MIGRATIONS.iter().any(|(ours, ..)| !applied.contains(ours)))
}

impl OpenError {
    fn opening(path: &Path, source: sqlx::Error) -> Self {
        let (path, is_damage) = (path.to_owned(), has_damage(&source));
        let source = source.into();
        match is_damage {
            true => Self::Damaged { path, source },
            false => Self::Open { path, source },
        }
    }

    fn migrating(path: &Path, source: MigrateError) -> Self {
        let path = path.to_owned();
        let whole = |source: MigrateError| DatabaseError::from(sqlx::Error::from(source));
        match source {
            MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _)
                if has_damage(&source) =>
            {
                let source = source.into();
                Self::Damaged { path, source }
            }
            MigrateError::VersionMissing(_) => Self::Newer {
                path,
                source: whole(source),
            },
            source => Self::Migrate {
                path,
                source: whole(source),
            },
        }
    }

    /// What a person does next.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Damaged { .. } => DAMAGED,
            Self::Newer { .. } => "use the version of the program that wrote it, or a later one",
            Self::Keep(_) => "make room in the folder, or check its permissions",
            Self::Open { .. } | Self::Migrate { .. } => {
                "check the folder's permissions and the space left"
            }
            Self::Unreachable { .. } => {
                "check that the database runs, that `gateway.store` names it, and its password and certificate"
            }
            Self::NewerDatabase { .. } => {
                "use the version of the program that runs beside this one, or the one right before it"
            }
            Self::MigrateDatabase { .. } => {
                "the database has to be empty or Hermetic's own, and its user has to own it"
            }
        }
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
    // Not on a thread of the runtime: this may take as long as another process migrates.
    let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
    locked.unwrap_or_else(|ended| Err(io::Error::other(ended)))
}

#[cfg(test)]
mod tests {
    use hermetic_types::SystemClock;

    use super::*;
    use crate::database::{SqlStatement, WithoutRoom, WriteDurability};
    use crate::{RowOwner, Store};

    #[tokio::test]
    async fn two_first_starts_at_once_both_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let (one, two) = tokio::join!(
            Store::open(&path, SystemClock::shared()),
            Store::open(&path, SystemClock::shared())
        );
        assert_eq!(
            one.unwrap()
                .ledger()
                .entries(RowOwner::AnyGateway)
                .await
                .unwrap(),
            []
        );
        assert_eq!(
            two.unwrap()
                .ledger()
                .entries(RowOwner::AnyGateway)
                .await
                .unwrap(),
            []
        );
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
        let kept_open = Store::open(&whole, SystemClock::shared()).await.unwrap();
        // As one file, whatever still lies beside the other.
        let copied = folder.path().join("copied.db");
        Store::copy(&whole, &copied).await.unwrap();
        drop(kept_open);
        let mut bytes = fs::read(&copied).unwrap();
        let page = 4096;
        bytes[page..4 * page].fill(b'x');
        fs::write(&path, &bytes).unwrap();
        is_damaged(&path).await;

        fs::write(&path, &bytes[..page + 100]).unwrap();
        is_damaged(&path).await;
    }

    async fn is_damaged(path: &Path) {
        let error = Store::open(path, SystemClock::shared()).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("state.db is damaged"), "{text}");
        let remedy = error.remedy();
        assert!(!remedy.contains("permission"), "{remedy}");
        assert!(
            remedy.contains("aside") && remedy.contains("copy"),
            "{remedy}"
        );
    }

    #[tokio::test]
    async fn a_file_of_a_newer_version_is_named_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = Store::open(&path, SystemClock::shared()).await.unwrap();
        let later = SqlStatement::new(
            "INSERT INTO _sqlx_migrations
             (version, description, success, checksum, execution_time)
             VALUES (999, 'later', 1, x'00', 1)",
        );
        let terms = (WriteDurability::OnDisk, WithoutRoom::Fail);
        store
            .database
            .change("pretend", terms, later)
            .await
            .unwrap();
        let error = Store::open(&path, SystemClock::shared()).await.unwrap_err();
        assert!(error.to_string().contains("newer version"), "{error}");
        assert!(error.remedy().contains("version"), "{}", error.remedy());
    }

    #[tokio::test]
    async fn a_file_that_may_not_be_opened_is_not_called_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no such folder").join("state.db");
        let error = Store::open(&path, SystemClock::shared()).await.unwrap_err();
        assert!(error.to_string().contains("cannot open"), "{error}");
        assert!(error.remedy().contains("permissions"));
    }
}
