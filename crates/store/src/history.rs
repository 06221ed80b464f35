//! What was said in a conversation, as the agent keeps it.

use hermetic_types::{ConversationKey, Timestamp};

use crate::StoreError;
use crate::database::WithoutRoom::{Fail, Wait};
use crate::database::WriteDurability::Soon;
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement};

#[derive(Clone, Debug)]
pub struct HistoryRows {
    database: Database,
}

impl HistoryRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Appends a message, which is one line.
    pub async fn append(
        &self,
        conversation: &ConversationKey,
        message: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let doing = "append to a conversation";
        if message.contains('\n') {
            let several = DatabaseError::unfit("it is several lines");
            return Err(StoreError::while_doing(doing)(several));
        }
        self.database
            .change(
                doing,
                (Soon, Wait),
                SqlStatement::new(
                    "INSERT INTO history (conversation, message, at) VALUES (?, ?, ?)",
                )
                .bind(conversation.as_str())
                .bind(message)
                .bind(now.millis()),
            )
            .await
            .map(drop)
    }

    /// The last `most` messages, oldest first.
    pub async fn recent(
        &self,
        conversation: &ConversationKey,
        most: u32,
    ) -> Result<Vec<String>, StoreError> {
        // As one row: each crosses from SQLite's thread to ours.
        let query = SqlStatement::new(
            "SELECT group_concat(message, char(10) ORDER BY id) FROM
                 (SELECT id, message FROM history WHERE conversation = ? ORDER BY id DESC LIMIT ?)",
        )
        .bind(conversation.as_str())
        .bind(most);
        let lines = |row: &DatabaseRow| row.get::<Option<String>>(0);
        let lines = self.database.read_only("read a conversation", query, lines);
        let lines = lines.await?;
        let lines = lines.iter().flat_map(|lines| lines.split('\n'));
        Ok(lines.map(str::to_owned).collect())
    }

    /// When something was last said.
    pub async fn last_at(
        &self,
        conversation: &ConversationKey,
    ) -> Result<Option<Timestamp>, StoreError> {
        let query = SqlStatement::new(
            "SELECT at FROM history WHERE conversation = ? ORDER BY id DESC LIMIT 1",
        )
        .bind(conversation.as_str());
        let doing = "look when something was said";
        let at = |row: &DatabaseRow| row.moment("at");
        self.database.read_first(doing, query, at).await
    }

    /// Forgets conversations in which nothing was said since `before`; how many lines those were.
    pub async fn forget_silent(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.database
            .change(
                "forget silent conversations",
                (Soon, Fail),
                SqlStatement::new(
                    "DELETE FROM history WHERE conversation IN
                 (SELECT conversation FROM history GROUP BY conversation HAVING MAX(at) < ?)",
                )
                .bind(before.millis()),
            )
            .await
    }

    pub async fn clear(&self, conversation: &ConversationKey) -> Result<(), StoreError> {
        self.database
            .change(
                "clear a conversation",
                (Soon, Fail),
                SqlStatement::new("DELETE FROM history WHERE conversation = ?")
                    .bind(conversation.as_str()),
            )
            .await
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use hermetic_types::SystemClock;

    use super::*;
    use crate::Store;

    #[tokio::test]
    async fn a_conversation_comes_back_in_order_and_alone() {
        let folder = tempfile::tempdir().unwrap();
        let history = Store::open(&folder.path().join("s.db"), SystemClock::shared())
            .await
            .unwrap()
            .history();
        let (a, b) = (ConversationKey::new("a"), ConversationKey::new("b"));
        let now = Timestamp::from_millis(1);
        for (key, message) in [(&a, "1"), (&a, "2"), (&b, "other"), (&a, "3")] {
            history.append(key, message, now).await.unwrap();
        }
        assert!(history.append(&a, "4\n5", now).await.is_err());
        assert_eq!(history.recent(&a, 2).await.unwrap(), ["2", "3"]);
        history.clear(&a).await.unwrap();
        assert_eq!(history.recent(&a, 9).await.unwrap(), [""; 0]);
        assert_eq!(history.recent(&b, 9).await.unwrap(), ["other"]);
    }

    #[tokio::test]
    async fn a_silent_conversation_is_forgotten_and_a_living_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let history = Store::open(&folder.path().join("s.db"), SystemClock::shared())
            .await
            .unwrap()
            .history();
        let (a, b) = (ConversationKey::new("a"), ConversationKey::new("b"));
        for (key, at) in [(&a, 1), (&b, 1), (&b, 9)] {
            let at = Timestamp::from_millis(at);
            history.append(key, "x", at).await.unwrap();
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
