//! Small things with one owner each, replaced whole if nobody else did meanwhile.

use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseRow, SqlStatement};

#[derive(Clone, Debug)]
pub struct DocumentRows {
    database: Database,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDocument {
    pub body: String,
    /// Counts up from 1 with each replacement.
    pub version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ReplaceOutcome {
    Yes,
    /// Somebody else was faster: load again.
    Outrun,
}

impl DocumentRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    pub async fn load(&self, name: &str) -> Result<Option<StoredDocument>, StoreError> {
        let query =
            SqlStatement::new("SELECT body, version FROM documents WHERE name = ?").bind(name);
        let document = |row: &DatabaseRow| {
            let version: i64 = row.get("version")?;
            Ok(StoredDocument {
                body: row.get("body")?,
                version: version.unsigned_abs(),
            })
        };
        let doing = "read a document";
        self.database.read_first(doing, query, document).await
    }

    /// Writes, on the disk, if the stored version is still `expected`; 0 stands for a document never written.
    pub async fn replace(
        &self,
        name: &str,
        body: &str,
        expected: u64,
    ) -> Result<ReplaceOutcome, StoreError> {
        let expected = i64::try_from(expected).unwrap_or(i64::MAX - 1);
        let statement = if expected == 0 {
            SqlStatement::new(
                // Of two who write it for the first time one wins, and the other is told.
                "INSERT INTO documents (name, version, body) VALUES (?, 1, ?)
                 ON CONFLICT (name) DO NOTHING",
            )
            .bind(name)
            .bind(body)
        } else {
            SqlStatement::new(
                "UPDATE documents SET body = ?, version = version + 1
                 WHERE name = ? AND version = ?",
            )
            .bind(body)
            .bind(name)
            .bind(expected)
        };
        let changed = self
            .database
            .change("write a document", (OnDisk, Fail), statement)
            .await?;
        Ok(outcome(changed))
    }

    /// Writes whatever is there: for documents with a single writer, and whose last moments may be lost
    /// in a power cut.
    pub async fn put(&self, name: &str, body: &str) -> Result<(), StoreError> {
        self.database
            .change(
                "write a document",
                (Soon, Fail),
                SqlStatement::new(
                    "INSERT INTO documents (name, version, body) VALUES (?, 1, ?)
             ON CONFLICT (name) DO UPDATE SET body = excluded.body, version = documents.version + 1",
                )
                .bind(name)
                .bind(body),
            )
            .await
            .map(drop)
    }
}

fn outcome(rows: u64) -> ReplaceOutcome {
    if rows == 1 {
        ReplaceOutcome::Yes
    } else {
        ReplaceOutcome::Outrun
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn of_two_who_read_the_same_version_one_is_outrun() {
        for database in TestDatabase::each().await {
            let documents = database.open().await.unwrap().documents();
            assert_eq!(documents.load("a").await.unwrap(), None);
            assert_eq!(
                documents.replace("a", "1", 0).await.unwrap(),
                ReplaceOutcome::Yes
            );
            assert_eq!(
                documents.replace("a", "x", 0).await.unwrap(),
                ReplaceOutcome::Outrun
            );
            let (one, two) = tokio::join!(
                documents.replace("a", "one", 1),
                documents.replace("a", "two", 1)
            );
            let (one, two) = (one.unwrap(), two.unwrap());
            assert_ne!(one, two);
            let winner = if one == ReplaceOutcome::Yes {
                "one"
            } else {
                "two"
            };
            let expected = StoredDocument {
                body: winner.to_owned(),
                version: 2,
            };
            assert_eq!(documents.load("a").await.unwrap(), Some(expected));
        }
    }
}
