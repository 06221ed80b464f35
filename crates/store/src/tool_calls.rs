//! What a turn was about to do, and what came of it.

use hermetic_types::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};

use crate::write::Durability::{OnDisk, Soon};
use crate::write::WithoutRoom::Wait;
use crate::write::{Statement, Writer};
use crate::{MessageRow, StoreError};

#[derive(Clone, Debug)]
pub struct ToolCalls {
    reader: SqlitePool,
    writer: Writer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    pub call: String,
    pub tool: String,
    pub arguments: String,
    pub begun_at: Timestamp,
    /// Absent if it was begun and nobody knows how it ended.
    pub result: Option<String>,
}

impl ToolCalls {
    pub(crate) fn new(reader: SqlitePool, writer: Writer) -> Self {
        Self { reader, writer }
    }

    pub async fn begin(
        &self,
        message: MessageRow,
        call: &str,
        tool: &str,
        arguments: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.writer
            .change(
                "write a tool call down",
                (OnDisk, Wait),
                Statement::new(
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
        self.writer
            .change(
                "note a tool call's end",
                (Soon, Wait),
                Statement::new(
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
    pub async fn of(&self, message: MessageRow) -> Result<Vec<ToolCall>, StoreError> {
        sqlx::query("SELECT * FROM tool_calls WHERE message = ? ORDER BY begun_at, rowid")
            .bind(message.0)
            .fetch_all(&self.reader)
            .await
            .and_then(|rows| rows.iter().map(tool_call).collect())
            .map_err(StoreError::while_doing("read a message's tool calls"))
    }
}

fn tool_call(row: &SqliteRow) -> Result<ToolCall, sqlx::Error> {
    Ok(ToolCall {
        call: row.try_get("call")?,
        tool: row.try_get("tool")?,
        arguments: row.try_get("arguments")?,
        begun_at: Timestamp::from_millis(row.try_get("begun_at")?),
        result: row.try_get("result")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use hermetic_types::ConversationKey;

    #[tokio::test]
    async fn a_call_begun_and_never_ended_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("s.db")).await.unwrap();
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
