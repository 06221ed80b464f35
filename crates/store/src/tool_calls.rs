//! What a turn was about to do, and what came of it.

use hermetic_types::{ConversationKey, Timestamp};

use crate::database::WithoutRoom::Wait;
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement, StatementResult};
use crate::{MessageRow, StoreError, history};

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

    /// Notes what came of a call, and its result as a line of the conversation, both or neither; the number of
    /// the line.
    pub async fn end(
        &self,
        (message, call): (MessageRow, &str),
        result: &str,
        (conversation, line): (&ConversationKey, &str),
        now: Timestamp,
    ) -> Result<i64, StoreError> {
        let doing = "note a tool call's end";
        history::one_line(doing, line)?;
        let ended = SqlStatement::new(
            "UPDATE tool_calls SET result = ?, ended_at = ? WHERE message = ? AND call = ?",
        )
        .bind(result)
        .bind(now.millis())
        .bind(message.0)
        .bind(call);
        let both = vec![history::inserted(conversation, line, now), ended];
        let written = self.database.write(doing, (Soon, Wait), both).await?;
        written
            .first()
            .and_then(StatementResult::first_row)
            .ok_or_else(DatabaseError::no_row)
            .and_then(|row| row.get(0))
            .map_err(StoreError::while_doing(doing))
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
    use crate::ViewBounds;
    use crate::test_databases::TestDatabase;

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
            let ended = calls.end((row, "c1"), "done", (&key, "a line"), now);
            let number = ended.await.unwrap();
            let several = calls.end((row, "c2"), "done", (&key, "two\nlines"), now);
            assert!(several.await.is_err());
            let history = store.history();
            let lines = history.lines(&key, ViewBounds::default());
            let lines = lines.await.unwrap();
            let found: Vec<_> = lines
                .iter()
                .map(|line| (line.number, line.text.as_str()))
                .collect();
            assert_eq!(found, [(number, "a line")]);
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
