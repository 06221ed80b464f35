//! Reads what was said, and what waits to be taken.

use super::BrowserChatRows;
use super::rows::{BrowserFile, BrowserMessage, WaitingMessage, file_of, message_of, waiting_of};
use crate::database::{DatabaseRow, SqlStatement};
use crate::{RowOwner, StoreError};

impl BrowserChatRows {
    /// What was said and not taken yet, in its order.
    pub async fn waiting(&self, owner: RowOwner) -> Result<Vec<WaitingMessage>, StoreError> {
        let query = SqlStatement::new(
            "SELECT m.*, c.person FROM browser_messages m
             JOIN browser_conversations c ON c.id = m.conversation
             WHERE m.state = 'waiting' AND m.owner = coalesce(?, m.owner) ORDER BY m.id",
        )
        .bind(owner.filter(&self.database));
        let mut found = self
            .database
            .read("read what was said", query, waiting_of)
            .await?;
        for waiting in &mut found {
            waiting.message.files = self.files((waiting.message.id, waiting.message.id)).await?;
        }
        Ok(found)
    }

    /// One message that was not taken yet.
    pub async fn waiting_message(&self, id: i64) -> Result<Option<WaitingMessage>, StoreError> {
        let query = SqlStatement::new(
            "SELECT m.*, c.person FROM browser_messages m
             JOIN browser_conversations c ON c.id = m.conversation
             WHERE m.state = 'waiting' AND m.id = ?",
        )
        .bind(id);
        let doing = "read what was said";
        let found = self.database.read_first(doing, query, waiting_of).await?;
        let Some(mut found) = found else {
            return Ok(None);
        };
        found.message.files = self.files((id, id)).await?;
        Ok(Some(found))
    }

    /// The latest messages of a conversation, or the latest before one, in their order.
    pub async fn messages(
        &self,
        person: &str,
        conversation: i64,
        before: Option<i64>,
        most: u32,
    ) -> Result<Vec<BrowserMessage>, StoreError> {
        let query = SqlStatement::new(
            "SELECT m.* FROM browser_messages m
             JOIN browser_conversations c ON c.id = m.conversation
             WHERE c.person = ? AND m.conversation = ? AND m.id < coalesce(?, m.id + 1)
             ORDER BY m.id DESC LIMIT ?",
        )
        .bind(person)
        .bind(conversation)
        .bind(before)
        .bind(most);
        let doing = "read a conversation";
        let mut messages = self.database.read(doing, query, message_of).await?;
        messages.reverse();
        for message in &mut messages {
            message.files = self.files((message.id, message.id)).await?;
        }
        Ok(messages)
    }

    /// The bytes of one of a person's files.
    pub async fn file(
        &self,
        person: &str,
        id: i64,
    ) -> Result<Option<(BrowserFile, Vec<u8>)>, StoreError> {
        let query = SqlStatement::new(
            "SELECT f.id, f.name, f.mime, f.size, f.bytes FROM browser_files f
             JOIN browser_messages m ON m.id = f.message
             JOIN browser_conversations c ON c.id = m.conversation
             WHERE f.id = ? AND c.person = ?",
        )
        .bind(id)
        .bind(person);
        let file = |row: &DatabaseRow| Ok((file_of(row)?, row.get("bytes")?));
        self.database.read_first("read a file", query, file).await
    }

    async fn files(&self, (first, last): (i64, i64)) -> Result<Vec<BrowserFile>, StoreError> {
        let query = SqlStatement::new(
            "SELECT id, name, mime, size FROM browser_files
             WHERE message BETWEEN ? AND ? ORDER BY message, part",
        )
        .bind(first)
        .bind(last);
        self.database.read("list files", query, file_of).await
    }
}
