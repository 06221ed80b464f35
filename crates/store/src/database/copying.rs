//! A copy of the whole database as it is at one moment, while others go on writing.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use thiserror::Error;

use super::DatabaseError;
use super::failure::in_words;
use super::migrations::MIGRATIONS;
use super::opening::BUSY_TIMEOUT;

/// No copy was made, and nothing is left of it.
#[derive(Debug, Error)]
#[error("cannot copy the state file to {}: {why}", into.display())]
pub struct CopyError {
    into: PathBuf,
    why: String,
    #[source]
    source: DatabaseError,
}

/// The latest change that a database went through; those of a newer program are higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreVersion(pub i64);

impl StoreVersion {
    /// Of the files that this program writes.
    pub fn ours() -> Self {
        let versions = MIGRATIONS.iter().map(|(version, ..)| *version);
        Self(versions.max().unwrap_or(0))
    }
}

/// Copies the file into another, which must not be there yet. It is on the disk and readable by its owner
/// only when this returns. Whoever writes to the database meanwhile neither waits nor shows in the copy.
pub(crate) async fn copy(path: &Path, into: &Path) -> Result<StoreVersion, CopyError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .busy_timeout(BUSY_TIMEOUT);
    let failed = |source| CopyError::new(into, source);
    let mut database = options.connect().await.map_err(failed)?;
    copy_by(&mut database, into).await?;
    let version = version(&mut database).await.map_err(failed);
    let _ = database.close().await;
    version
}

/// The same by a connection that is open.
pub(super) async fn copy_by(database: &mut SqliteConnection, into: &Path) -> Result<(), CopyError> {
    let copied = match begin(into) {
        Ok(()) => vacuum(database, into).await,
        Err(error) => return Err(CopyError::new(into, sqlx::Error::Io(error))),
    };
    // On the disk before anybody relies on it: what follows may change the file that this is a copy
    // of.
    let synced = copied.and_then(|()| File::open(into)?.sync_all().map_err(sqlx::Error::Io));
    synced.map_err(|error| {
        let _ = fs::remove_file(into);
        CopyError::new(into, error)
    })
}

/// The database fills an empty file as well as it makes one, and would make one that everybody reads.
fn begin(into: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(into).map(drop)
}

async fn vacuum(database: &mut SqliteConnection, into: &Path) -> Result<(), sqlx::Error> {
    let name = into.to_str().ok_or_else(|| {
        sqlx::Error::Io(io::Error::other("the name of the folder is not UTF-8 text"))
    })?;
    let statement = sqlx::query("VACUUM INTO ?").bind(name.to_owned());
    statement.execute(database).await.map(drop)
}

/// Nothing was ever written to one without a version.
pub(super) async fn version(database: &mut SqliteConnection) -> Result<StoreVersion, sqlx::Error> {
    let tables = "SELECT count(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
    let has_versions: i64 = sqlx::query_scalar(tables).fetch_one(&mut *database).await?;
    if has_versions == 0 {
        return Ok(StoreVersion(0));
    }
    let latest = "SELECT coalesce(max(version), 0) FROM _sqlx_migrations";
    sqlx::query_scalar(latest)
        .fetch_one(database)
        .await
        .map(StoreVersion)
}

impl CopyError {
    fn new(into: &Path, source: sqlx::Error) -> Self {
        Self {
            into: into.to_owned(),
            why: in_words(&source),
            source: source.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use hermetic_types::SystemClock;

    use super::*;
    use crate::Store;

    #[tokio::test]
    async fn a_copy_holds_one_moment_and_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = Store::open(&path, SystemClock::shared()).await.unwrap();
        let documents = store.documents();
        // Two that are always written together would differ in a copy of two moments.
        documents.put("count", "0").await.unwrap();
        let writer = tokio::spawn({
            let documents = documents.clone();
            async move {
                for count in 1..=200 {
                    documents.put("count", &count.to_string()).await.unwrap();
                }
            }
        });
        let into = folder.path().join("copy.db");
        let version = Store::copy(&path, &into).await.unwrap();
        writer.await.unwrap();
        assert_eq!(version, StoreVersion::ours());
        let mode = fs::metadata(&into).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let copied = Store::open(&into, SystemClock::shared())
            .await
            .unwrap()
            .documents();
        let count = copied.load("count").await.unwrap().unwrap();
        assert_eq!(count.body, (count.version - 1).to_string());
    }

    #[tokio::test]
    async fn a_copy_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        drop(Store::open(&path, SystemClock::shared()).await.unwrap());
        let into = folder.path().join("mine");
        fs::write(&into, "mine").unwrap();
        Store::copy(&path, &into).await.unwrap_err();
        assert_eq!(fs::read_to_string(&into).unwrap(), "mine");
        let nothing = folder.path().join("nothing.db");
        Store::copy(&nothing, &folder.path().join("x"))
            .await
            .unwrap_err();
        assert!(!nothing.exists() && !folder.path().join("x").exists());
    }
}
