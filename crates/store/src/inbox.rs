//! Messages as they came, and how each of them ended.

use hermetic_types::{ConversationKey, Timestamp};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};

use crate::StoreError;

#[derive(Clone, Debug)]
pub struct Inbox {
    pool: SqlitePool,
}

/// The row of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageRow(pub i64);

/// A message that has no end yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    pub row: MessageRow,
    pub platform: String,
    pub conversation: ConversationKey,
    pub payload: String,
    /// How often a turn was begun for it.
    pub attempts: u32,
    /// The message of ours in which the answer had begun to show.
    pub draft: Option<String>,
    pub received_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Answered,
    Refused,
    Failed,
}

impl Inbox {
    pub(crate) fn new(pool: SqlitePool) -> Self {
        Self { pool }
    }

    /// Writes a message down. `None` if it was there already: the platform sent it twice.
    pub async fn accept(
        &self,
        platform: &str,
        update_id: &str,
        conversation: &ConversationKey,
        payload: &str,
        now: Timestamp,
    ) -> Result<Option<MessageRow>, StoreError> {
        sqlx::query_scalar(
            "INSERT INTO inbox (platform, update_id, conversation, payload, state, received_at)
             VALUES (?, ?, ?, ?, 'accepted', ?)
             ON CONFLICT (platform, update_id) DO NOTHING RETURNING id",
        )
        .bind(platform)
        .bind(update_id)
        .bind(conversation.as_str())
        .bind(payload)
        .bind(now.millis())
        .fetch_optional(&self.pool)
        .await
        .map(|id| id.map(MessageRow))
        .map_err(StoreError::while_doing("write a message down"))
    }

    /// Notes that a turn for it begins; the number of this attempt, from 1.
    pub async fn begin(&self, row: MessageRow) -> Result<u32, StoreError> {
        sqlx::query_scalar(
            "UPDATE inbox SET state = 'working', attempts = attempts + 1 WHERE id = ?
             RETURNING attempts",
        )
        .bind(row.0)
        .fetch_one(&self.pool)
        .await
        .map_err(StoreError::while_doing("begin a message's turn"))
    }

    /// Notes in which message of ours the answer grows.
    pub async fn note_draft(&self, row: MessageRow, draft: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE inbox SET draft = ? WHERE id = ?")
            .bind(draft)
            .bind(row.0)
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(StoreError::while_doing("note a draft"))
    }

    pub async fn end(
        &self,
        row: MessageRow,
        end: End,
        note: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query("UPDATE inbox SET state = ?, note = ?, ended_at = ? WHERE id = ?")
            .bind(end.name())
            .bind(note)
            .bind(now.millis())
            .bind(row.0)
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(StoreError::while_doing("note how a message ended"))
    }

    /// Messages without an end, in the order they came.
    pub async fn open(&self) -> Result<Vec<Open>, StoreError> {
        sqlx::query("SELECT * FROM inbox WHERE state IN ('accepted', 'working') ORDER BY id")
            .fetch_all(&self.pool)
            .await
            .and_then(|rows| rows.iter().map(open).collect())
            .map_err(StoreError::while_doing("read the open messages"))
    }

    /// Strikes out messages that ended before `before`, with their deliveries and tool calls.
    pub async fn prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        sqlx::query("DELETE FROM inbox WHERE ended_at < ?")
            .bind(before.millis())
            .execute(&self.pool)
            .await
            .map(|done| done.rows_affected())
            .map_err(StoreError::while_doing("strike out old messages"))
    }
}

impl End {
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

fn open(row: &SqliteRow) -> Result<Open, sqlx::Error> {
    Ok(Open {
        row: MessageRow(row.try_get("id")?),
        platform: row.try_get("platform")?,
        conversation: ConversationKey::new(row.try_get::<String, _>("conversation")?),
        payload: row.try_get("payload")?,
        attempts: row.try_get("attempts")?,
        draft: row.try_get("draft")?,
        received_at: Timestamp::from_millis(row.try_get("received_at")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[tokio::test]
    async fn a_message_sent_twice_is_one_and_open_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = Store::open(&folder.path().join("s.db"))
            .await
            .unwrap()
            .inbox();
        let (key, now) = (ConversationKey::new("k"), Timestamp::from_millis(5));
        let row = inbox
            .accept("telegram", "7", &key, "{}", now)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            inbox
                .accept("telegram", "7", &key, "{}", now)
                .await
                .unwrap(),
            None
        );
        assert_eq!(inbox.begin(row).await.unwrap(), 1);
        assert_eq!(inbox.begin(row).await.unwrap(), 2);
        inbox.note_draft(row, "118").await.unwrap();
        assert_eq!(inbox.open().await.unwrap()[0].draft.as_deref(), Some("118"));
        inbox.end(row, End::Answered, None, now).await.unwrap();
        assert_eq!(inbox.open().await.unwrap(), []);
        assert_eq!(inbox.prune(Timestamp::from_millis(6)).await.unwrap(), 1);
    }
}
