//! Small things with one owner each, replaced whole if nobody else did meanwhile.

use crate::StoreError;
use crate::database::Durability::{OnDisk, Soon};
use crate::database::WithoutRoom::Fail;
use crate::database::{Database, Row, Statement};

#[derive(Clone, Debug)]
pub struct Documents {
    database: Database,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub body: String,
    /// Counts up from 1 with each replacement.
    pub version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Replaced {
    Yes,
    /// Somebody else was faster: load again.
    Outrun,
}

impl Documents {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    pub async fn load(&self, name: &str) -> Result<Option<Document>, StoreError> {
        let query = Statement::new("SELECT body, version FROM documents WHERE name = ?").bind(name);
        let document = |row: &Row| {
            let version: i64 = row.get("version")?;
            Ok(Document {
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
    ) -> Result<Replaced, StoreError> {
        let expected = i64::try_from(expected).unwrap_or(i64::MAX - 1);
        let statement = if expected == 0 {
            Statement::new(
                "INSERT INTO documents (name, version, body) VALUES (?, 1, ?)
                 ON CONFLICT (name) DO NOTHING",
            )
            .bind(name)
            .bind(body)
        } else {
            Statement::new(
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
                Statement::new(
                    "INSERT INTO documents (name, version, body) VALUES (?, 1, ?)
             ON CONFLICT (name) DO UPDATE SET body = excluded.body, version = version + 1",
                )
                .bind(name)
                .bind(body),
            )
            .await
            .map(drop)
    }
}

fn outcome(rows: u64) -> Replaced {
    if rows == 1 {
        Replaced::Yes
    } else {
        Replaced::Outrun
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[tokio::test]
    async fn of_two_who_read_the_same_version_one_is_outrun() {
        let folder = tempfile::tempdir().unwrap();
        let documents = Store::open(&folder.path().join("s.db"))
            .await
            .unwrap()
            .documents();
        assert_eq!(documents.load("a").await.unwrap(), None);
        assert_eq!(documents.replace("a", "1", 0).await.unwrap(), Replaced::Yes);
        assert_eq!(
            documents.replace("a", "x", 0).await.unwrap(),
            Replaced::Outrun
        );
        let (one, two) = tokio::join!(
            documents.replace("a", "one", 1),
            documents.replace("a", "two", 1)
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_ne!(one, two);
        let winner = if one == Replaced::Yes { "one" } else { "two" };
        let expected = Document {
            body: winner.to_owned(),
            version: 2,
        };
        assert_eq!(documents.load("a").await.unwrap(), Some(expected));
    }
}
