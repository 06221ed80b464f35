//! Replies on their way out. None is lost; one that may have been sent before is marked so.

use hermetic_types::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};

use crate::{MessageRow, StoreError};

#[derive(Clone, Debug)]
pub struct Deliveries {
    pool: SqlitePool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryRow(pub i64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub row: DeliveryRow,
    /// What it answers.
    pub message: Option<MessageRow>,
    pub platform: String,
    pub address: String,
    pub text: String,
    pub attempts: u32,
    /// An earlier attempt began and nobody knows how it ended.
    pub maybe_sent: bool,
}

impl Deliveries {
    pub(crate) fn new(pool: SqlitePool) -> Self {
        Self { pool }
    }

    pub async fn queue(
        &self,
        message: Option<MessageRow>,
        platform: &str,
        address: &str,
        text: &str,
        now: Timestamp,
    ) -> Result<DeliveryRow, StoreError> {
        sqlx::query_scalar(
            "INSERT INTO deliveries (message, platform, address, text, state, queued_at)
             VALUES (?, ?, ?, ?, 'pending', ?) RETURNING id",
        )
        .bind(message.map(|row| row.0))
        .bind(platform)
        .bind(address)
        .bind(text)
        .bind(now.millis())
        .fetch_one(&self.pool)
        .await
        .map(DeliveryRow)
        .map_err(StoreError::while_doing("queue a reply"))
    }

    pub async fn begin(&self, row: DeliveryRow) -> Result<(), StoreError> {
        sqlx::query("UPDATE deliveries SET state = 'sending', attempts = attempts + 1 WHERE id = ?")
            .bind(row.0)
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(StoreError::while_doing("begin a delivery"))
    }

    pub async fn sent(&self, row: DeliveryRow, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query("UPDATE deliveries SET state = 'sent', sent_at = ? WHERE id = ?")
            .bind(now.millis())
            .bind(row.0)
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(StoreError::while_doing("note a delivery"))
    }

    /// The platform took nothing: it may be tried again without being a duplicate.
    pub async fn put_back(&self, row: DeliveryRow, note: &str) -> Result<(), StoreError> {
        self.note(row, "pending", note).await
    }

    pub async fn failed(&self, row: DeliveryRow, note: &str) -> Result<(), StoreError> {
        self.note(row, "failed", note).await
    }

    /// Replies that were not seen to arrive, in the order they were written.
    pub async fn due(&self) -> Result<Vec<Due>, StoreError> {
        sqlx::query("SELECT * FROM deliveries WHERE state IN ('pending', 'sending') ORDER BY id")
            .fetch_all(&self.pool)
            .await
            .and_then(|rows| rows.iter().map(due).collect())
            .map_err(StoreError::while_doing("read the replies that are due"))
    }

    /// Whether a reply to this message was ever written.
    pub async fn any_for(&self, message: MessageRow) -> Result<bool, StoreError> {
        sqlx::query_scalar::<_, bool>("SELECT EXISTS (SELECT 1 FROM deliveries WHERE message = ?)")
            .bind(message.0)
            .fetch_one(&self.pool)
            .await
            .map_err(StoreError::while_doing("look for a reply"))
    }

    async fn note(&self, row: DeliveryRow, state: &str, note: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE deliveries SET state = ?, note = ? WHERE id = ?")
            .bind(state)
            .bind(note)
            .bind(row.0)
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(StoreError::while_doing("note a failed delivery"))
    }
}

fn due(row: &SqliteRow) -> Result<Due, sqlx::Error> {
    let state: String = row.try_get("state")?;
    Ok(Due {
        row: DeliveryRow(row.try_get("id")?),
        message: row.try_get::<Option<i64>, _>("message")?.map(MessageRow),
        platform: row.try_get("platform")?,
        address: row.try_get("address")?,
        text: row.try_get("text")?,
        attempts: row.try_get("attempts")?,
        maybe_sent: state == "sending",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[tokio::test]
    async fn a_reply_cut_off_while_sending_comes_back_marked() {
        let folder = tempfile::tempdir().unwrap();
        let deliveries = Store::open(&folder.path().join("s.db"))
            .await
            .unwrap()
            .deliveries();
        let now = Timestamp::from_millis(1);
        let row = deliveries
            .queue(None, "telegram", "{}", "hi", now)
            .await
            .unwrap();
        assert!(!deliveries.due().await.unwrap()[0].maybe_sent);
        deliveries.begin(row).await.unwrap();
        assert!(deliveries.due().await.unwrap()[0].maybe_sent);
        deliveries.put_back(row, "refused").await.unwrap();
        assert!(!deliveries.due().await.unwrap()[0].maybe_sent);
        deliveries.sent(row, now).await.unwrap();
        assert_eq!(deliveries.due().await.unwrap(), []);
    }
}
