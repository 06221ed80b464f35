//! What was said in the chat in the browser, where the platform is ourselves.
//!
//! Every question names the person, and what is another's is not there. The number of a conversation is never
//! given again: a sandbox hangs on it.

mod reading;
mod rows;
#[cfg(test)]
mod tests;
mod writing;

use hermetic_types::Timestamp;

use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement, StatementResult};

use rows::conversation_of;
pub use rows::{
    BrowserConversation, BrowserFile, BrowserMessage, BrowserMessageState, NewBrowserFile,
    NewBrowserMessage, SaidOutcome, WaitingMessage,
};

#[derive(Clone, Debug)]
pub struct BrowserChatRows {
    database: Database,
}

impl BrowserChatRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Opens a conversation, unless this person has `most` of them.
    pub async fn open(
        &self,
        person: &str,
        most: i64,
        now: Timestamp,
    ) -> Result<Option<i64>, StoreError> {
        let insert = SqlStatement::new(
            "INSERT INTO browser_conversations (person, opened_at, said_at)
             SELECT ?, ?, ?
             WHERE (SELECT count(*) FROM browser_conversations WHERE person = ?) < ? RETURNING id",
        )
        .bind(person)
        .bind(now.millis())
        .bind(now.millis())
        .bind(person)
        .bind(most);
        let doing = "open a conversation";
        let id = |row: &DatabaseRow| row.get(0);
        self.database
            .returning(doing, (OnDisk, Fail), insert, id)
            .await
    }

    /// A person's conversations, the latest first.
    pub async fn conversations(
        &self,
        person: &str,
        most: u32,
    ) -> Result<Vec<BrowserConversation>, StoreError> {
        let query = SqlStatement::new(
            "SELECT id, title, opened_at, said_at FROM browser_conversations
             WHERE person = ? ORDER BY said_at DESC, id DESC LIMIT ?",
        )
        .bind(person)
        .bind(most);
        let doing = "read conversations";
        self.database.read(doing, query, conversation_of).await
    }

    /// One of a person's conversations.
    pub async fn conversation(
        &self,
        person: &str,
        id: i64,
    ) -> Result<Option<BrowserConversation>, StoreError> {
        let query = SqlStatement::new(
            "SELECT id, title, opened_at, said_at FROM browser_conversations
             WHERE person = ? AND id = ?",
        )
        .bind(person)
        .bind(id);
        let doing = "read a conversation";
        self.database
            .read_first(doing, query, conversation_of)
            .await
    }

    /// How many bytes of files are kept: of this person's, and of everybody's.
    pub async fn kept_bytes(&self, person: &str) -> Result<(u64, u64), StoreError> {
        let query = SqlStatement::new(
            "SELECT CAST(coalesce(sum(CASE WHEN c.person = ? THEN f.size END), 0) AS BIGINT)
                        AS own,
                    CAST(coalesce(sum(f.size), 0) AS BIGINT) AS everything
             FROM browser_files f JOIN browser_messages m ON m.id = f.message
             JOIN browser_conversations c ON c.id = m.conversation",
        )
        .bind(person);
        let sums = |row: &DatabaseRow| {
            let (own, everything): (i64, i64) = (row.get("own")?, row.get("everything")?);
            Ok((own.unsigned_abs(), everything.unsigned_abs()))
        };
        self.database.read_only("count files", query, sums).await
    }

    /// Forgets one of a person's conversations with all that is in it. `false` if there is none.
    pub async fn forget(&self, person: &str, id: i64) -> Result<bool, StoreError> {
        let files = SqlStatement::new(
            "DELETE FROM browser_files WHERE message IN
                 (SELECT m.id FROM browser_messages m
                  JOIN browser_conversations c ON c.id = m.conversation
                  WHERE c.id = ? AND c.person = ?)",
        );
        let messages = SqlStatement::new(
            "DELETE FROM browser_messages WHERE conversation IN
                 (SELECT id FROM browser_conversations WHERE id = ? AND person = ?)",
        );
        let itself =
            SqlStatement::new("DELETE FROM browser_conversations WHERE id = ? AND person = ?");
        // From the leaves up: each statement finds its rows by those that the next one deletes.
        let all = [files, messages, itself].map(|one| one.bind(id).bind(person));
        let doing = "forget a conversation";
        let written = self
            .database
            .write(doing, (OnDisk, Fail), all.to_vec())
            .await?;
        Ok(written.last().is_some_and(|itself| itself.affected() > 0))
    }

    /// Forgets conversations in which nothing was said since `before`.
    pub async fn prune(&self, before: Timestamp) -> Result<(), StoreError> {
        let files = SqlStatement::new(
            "DELETE FROM browser_files WHERE message IN
                 (SELECT m.id FROM browser_messages m
                  JOIN browser_conversations c ON c.id = m.conversation WHERE c.said_at < ?)",
        );
        let messages = SqlStatement::new(
            "DELETE FROM browser_messages WHERE conversation IN
                 (SELECT id FROM browser_conversations WHERE said_at < ?)",
        );
        let itself = SqlStatement::new("DELETE FROM browser_conversations WHERE said_at < ?");
        let all = [files, messages, itself].map(|one| one.bind(before.millis()));
        let doing = "forget old conversations";
        self.database
            .write(doing, (Soon, Fail), all.to_vec())
            .await
            .map(drop)
    }
}

fn first_id(written: &[StatementResult]) -> Result<Option<i64>, DatabaseError> {
    let row = written.first().and_then(StatementResult::first_row);
    row.map(|row| row.get(0)).transpose()
}
