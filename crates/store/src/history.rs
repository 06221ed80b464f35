//! What was said in a conversation, as the agent keeps it.

use hermetic_types::{ConversationKey, Timestamp};
use sqlx::SqlitePool;

use crate::StoreError;

#[derive(Clone, Debug)]
pub struct History {
    pool: SqlitePool,
}

impl History {
    pub(crate) fn new(pool: SqlitePool) -> Self {
        Self { pool }
    }

    /// Appends messages, all or none.
    pub async fn append(
        &self,
        conversation: &ConversationKey,
        messages: &[String],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let doing = || StoreError::while_doing("append to a conversation");
        let mut all = self.pool.begin().await.map_err(doing())?;
        for message in messages {
            sqlx::query("INSERT INTO history (conversation, message, at) VALUES (?, ?, ?)")
                .bind(conversation.as_str())
                .bind(message)
                .bind(now.millis())
                .execute(&mut *all)
                .await
                .map_err(doing())?;
        }
        all.commit().await.map_err(doing())
    }

    /// The last `most` messages, oldest first.
    pub async fn recent(
        &self,
        conversation: &ConversationKey,
        most: u32,
    ) -> Result<Vec<String>, StoreError> {
        sqlx::query_scalar(
            "SELECT message FROM
                 (SELECT id, message FROM history WHERE conversation = ? ORDER BY id DESC LIMIT ?)
             ORDER BY id",
        )
        .bind(conversation.as_str())
        .bind(most)
        .fetch_all(&self.pool)
        .await
        .map_err(StoreError::while_doing("read a conversation"))
    }

    /// When something was last said.
    pub async fn last_at(
        &self,
        conversation: &ConversationKey,
    ) -> Result<Option<Timestamp>, StoreError> {
        sqlx::query_scalar::<_, i64>(
            "SELECT at FROM history WHERE conversation = ? ORDER BY id DESC LIMIT 1",
        )
        .bind(conversation.as_str())
        .fetch_optional(&self.pool)
        .await
        .map(|at| at.map(Timestamp::from_millis))
        .map_err(StoreError::while_doing("look when something was said"))
    }

    /// Forgets conversations in which nothing was said since `before`; how many lines those were.
    pub async fn forget_silent(&self, before: Timestamp) -> Result<u64, StoreError> {
        sqlx::query(
            "DELETE FROM history WHERE conversation IN
                 (SELECT conversation FROM history GROUP BY conversation HAVING MAX(at) < ?)",
        )
        .bind(before.millis())
        .execute(&self.pool)
        .await
        .map(|done| done.rows_affected())
        .map_err(StoreError::while_doing("forget silent conversations"))
    }

    pub async fn clear(&self, conversation: &ConversationKey) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM history WHERE conversation = ?")
            .bind(conversation.as_str())
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(StoreError::while_doing("clear a conversation"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[tokio::test]
    async fn a_conversation_comes_back_in_order_and_alone() {
        let folder = tempfile::tempdir().unwrap();
        let history = Store::open(&folder.path().join("s.db"))
            .await
            .unwrap()
            .history();
        let (a, b) = (ConversationKey::new("a"), ConversationKey::new("b"));
        let now = Timestamp::from_millis(1);
        history
            .append(&a, &["1".into(), "2".into()], now)
            .await
            .unwrap();
        history.append(&b, &["other".into()], now).await.unwrap();
        history.append(&a, &["3".into()], now).await.unwrap();
        assert_eq!(history.recent(&a, 2).await.unwrap(), ["2", "3"]);
        history.clear(&a).await.unwrap();
        assert_eq!(history.recent(&a, 9).await.unwrap(), [""; 0]);
        assert_eq!(history.recent(&b, 9).await.unwrap(), ["other"]);
    }

    #[tokio::test]
    async fn a_silent_conversation_is_forgotten_and_a_living_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let history = Store::open(&folder.path().join("s.db"))
            .await
            .unwrap()
            .history();
        let (a, b) = (ConversationKey::new("a"), ConversationKey::new("b"));
        for (key, at) in [(&a, 1), (&b, 1), (&b, 9)] {
            let at = Timestamp::from_millis(at);
            history.append(key, &["x".into()], at).await.unwrap();
        }
        assert_eq!(
            history.last_at(&b).await.unwrap(),
            Some(Timestamp::from_millis(9))
        );
        let forgotten = history
            .forget_silent(Timestamp::from_millis(5))
            .await
            .unwrap();
        assert_eq!(forgotten, 1);
        assert_eq!(history.last_at(&a).await.unwrap(), None);
        assert_eq!(history.recent(&b, 9).await.unwrap().len(), 2);
    }
}
