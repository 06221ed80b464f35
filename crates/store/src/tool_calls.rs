//! What a turn was about to do, and what came of it.

use hermetic_types::Timestamp;

use crate::database::WithoutRoom::Wait;
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement};
use crate::{MessageRow, StoreError};

#[derive(Clone, Debug)]
pub struct ToolCalls {
    database: Database,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCallRow {
    pub call: String,
    pub tool: String,
    pub arguments: String,
    pub begun_at: Timestamp,
    /// Absent if it was begun and nobody knows how it ended.
    pub result: Option<String>,
}

impl ToolCalls {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    pub async fn begin(
        &self,
        message: MessageRow,
        call: &str,
        tool: &str,
        arguments: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.database
            .change(
                "write a tool call down",
                // On the disk before the tool runs: after a power cut the model is told that this
                // may have happened, instead of doing it again.
                (OnDisk, Wait),
                SqlStatement::new(
                    "INSERT INTO tool_calls (message, call, tool, arguments, begun_at)
             VALUES (?, ?, ?, ?, ?)",
                )
                .bind(message.0)
                .bind(call)
                .bind(tool)
                .bind(arguments)
                .bind(now.millis()),
            )
            .await
            .map(drop)
    }

    pub async fn end(
        &self,
        message: MessageRow,
        call: &str,
        result: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.database
            .change(
                "note a tool call's end",
                (Soon, Wait),
                SqlStatement::new(
                    "UPDATE tool_calls SET result = ?, ended_at = ? WHERE message = ? AND call = ?",
                )
                .bind(result)
                .bind(now.millis())
                .bind(message.0)
                .bind(call),
            )
            .await
            .map(drop)
    }

    /// In the order they were begun.
    pub async fn of(&self, message: MessageRow) -> Result<Vec<ToolCallRow>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM tool_calls WHERE message = ? ORDER BY begun_at, rowid",
        )
        .bind(message.0);
        self.database
            .read("read a message's tool calls", query, tool_call)
            .await
    }
}

fn tool_call(row: &DatabaseRow) -> Result<ToolCallRow, DatabaseError> {
    Ok(ToolCallRow {
        call: row.get("call")?,
        tool: row.get("tool")?,
        arguments: row.get("arguments")?,
        begun_at: row.moment("begun_at")?,
        result: row.get("result")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_databases::TestDatabase;
    use hermetic_types::ConversationKey;

    #[tokio::test]
    async fn a_call_begun_and_never_ended_is_known() {
        for database in TestDatabase::each().await {
            let store = database.open().await.unwrap();
            let (key, now) = (ConversationKey::new("k"), Timestamp::from_millis(5));
            let row = store
                .inbox()
                .accept("t", "1", &key, "{}", now)
                .await
                .unwrap()
                .unwrap();
            let calls = store.tool_calls();
            calls.begin(row, "c1", "terminal", "{}", now).await.unwrap();
            calls.begin(row, "c2", "terminal", "{}", now).await.unwrap();
            calls.end(row, "c1", "done", now).await.unwrap();
            let results: Vec<_> = calls
                .of(row)
                .await
                .unwrap()
                .into_iter()
                .map(|call| call.result)
                .collect();
            assert_eq!(results, [Some("done".to_owned()), None]);
        }
    }
}
