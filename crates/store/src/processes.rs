//! Background processes that a later gateway has to find again.

use hermetic_types::{ConversationKey, RunId, SandboxId, Timestamp};

use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement};
use crate::{RowOwner, StoreError};

#[derive(Clone, Debug)]
pub struct ProcessRows {
    database: Database,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRow {
    pub id: RunId,
    pub conversation: ConversationKey,
    pub sandbox: SandboxId,
    /// What it is and who wants to know, as JSON; the store does not look inside.
    pub terms: String,
    pub begun_at: Timestamp,
}

impl ProcessRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Names a process that is about to be started.
    pub async fn name(&self, row: &ProcessRow) -> Result<(), StoreError> {
        self.database
            .change(
                "write a process down",
                (OnDisk, Fail),
                SqlStatement::new(
                    "INSERT INTO processes (id, conversation, sandbox, terms, begun_at, owner)
                     VALUES (?, ?, ?, ?, ?, ?)",
                )
                .bind(row.id.as_str())
                .bind(row.conversation.as_str())
                .bind(row.sandbox.as_str())
                .bind(&row.terms)
                .bind(row.begun_at.millis())
                .bind(self.database.gateway()),
            )
            .await
            .map(drop)
    }

    /// Strikes out a process of which nobody wants to know anything more.
    pub async fn forget(&self, id: &RunId) -> Result<(), StoreError> {
        self.database
            .change(
                "strike a process out",
                (Soon, Fail),
                SqlStatement::new("DELETE FROM processes WHERE id = ?").bind(id.as_str()),
            )
            .await
            .map(drop)
    }

    pub async fn forget_all_of(&self, conversation: &ConversationKey) -> Result<(), StoreError> {
        self.database
            .change(
                "strike out a conversation's processes",
                (Soon, Fail),
                SqlStatement::new("DELETE FROM processes WHERE conversation = ?")
                    .bind(conversation.as_str()),
            )
            .await
            .map(drop)
    }

    /// All of this owner's, in the order they were begun.
    pub async fn all(&self, owner: RowOwner) -> Result<Vec<ProcessRow>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM processes WHERE owner = coalesce(?, owner) ORDER BY begun_at, id",
        )
        .bind(owner.filter(&self.database));
        let doing = "read the processes";
        self.database.read(doing, query, process).await
    }
}

pub(crate) fn process(row: &DatabaseRow) -> Result<ProcessRow, DatabaseError> {
    Ok(ProcessRow {
        id: row.parsed("id", |text| text.parse().ok())?,
        conversation: ConversationKey::new(row.get::<String>("conversation")?),
        sandbox: row.parsed("sandbox", |text| text.parse().ok())?,
        terms: row.get("terms")?,
        begun_at: row.moment("begun_at")?,
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn a_process_is_known_until_it_is_forgotten() {
        for database in TestDatabase::each().await {
            let store = database.open().await.unwrap();
            let processes = store.processes();
            let row = |conversation: &str, at| ProcessRow {
                id: RunId::random(),
                conversation: ConversationKey::new(conversation),
                sandbox: SandboxId::random(),
                terms: "{}".to_owned(),
                begun_at: Timestamp::from_millis(at),
            };
            let rows = [row("a", 1), row("a", 2), row("b", 3)];
            for row in &rows {
                processes.name(row).await.unwrap();
            }
            assert!(processes.name(&rows[0]).await.is_err(), "named twice");
            processes.forget(&rows[0].id).await.unwrap();
            assert_eq!(
                processes.all(RowOwner::ThisGateway).await.unwrap(),
                rows[1..]
            );
            let conversation = ConversationKey::new("a");
            processes.forget_all_of(&conversation).await.unwrap();
            assert_eq!(
                processes.all(RowOwner::ThisGateway).await.unwrap(),
                rows[2..]
            );
        }
    }
}
