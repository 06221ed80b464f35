//! The tasks that an agent wrote down for a conversation. They go with what was said: a fresh conversation has
//! none.

use hermetic_types::ConversationKey;

use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::OnDisk;
use crate::database::{Database, DatabaseRow, SqlStatement};
use crate::{MessageRow, StoreError};

#[derive(Clone, Debug)]
pub struct TodoRows {
    database: Database,
}

impl TodoRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    pub async fn of(&self, conversation: &ConversationKey) -> Result<Option<String>, StoreError> {
        let query = SqlStatement::new("SELECT items FROM todo_lists WHERE conversation = ?")
            .bind(conversation.as_str());
        let items = |row: &DatabaseRow| row.get(0);
        let doing = "read a list of tasks";
        self.database.read_first(doing, query, items).await
    }

    /// Keeps the list as it is now, to be brought back where the turn of this message is taken back. The first
    /// of a turn is kept, whatever it writes afterwards.
    pub async fn keep(
        &self,
        conversation: &ConversationKey,
        turn: MessageRow,
    ) -> Result<(), StoreError> {
        let kept = SqlStatement::new(
            "INSERT INTO todo_lists (conversation, items, undo_message, undo_items) VALUES (?, '[]', ?, '[]')
             ON CONFLICT (conversation) DO UPDATE
             SET undo_message = excluded.undo_message, undo_items = todo_lists.items
             WHERE coalesce(todo_lists.undo_message, 0) <> excluded.undo_message",
        )
        .bind(conversation.as_str())
        .bind(turn.0);
        self.database
            .change("keep a list of tasks", (OnDisk, Fail), kept)
            .await
            .map(drop)
    }

    /// Brings back what [`Self::keep`] kept before this turn; whether something was kept.
    pub async fn bring_back(
        &self,
        conversation: &ConversationKey,
        turn: MessageRow,
    ) -> Result<bool, StoreError> {
        let brought = SqlStatement::new(
            "UPDATE todo_lists SET items = undo_items, undo_message = NULL, undo_items = NULL
             WHERE conversation = ? AND undo_message = ?",
        )
        .bind(conversation.as_str())
        .bind(turn.0);
        let doing = "bring a list of tasks back";
        let changed = self.database.change(doing, (OnDisk, Fail), brought).await?;
        Ok(changed > 0)
    }

    pub async fn write(
        &self,
        conversation: &ConversationKey,
        items: &str,
    ) -> Result<(), StoreError> {
        let written = SqlStatement::new(
            "INSERT INTO todo_lists (conversation, items) VALUES (?, ?)
             ON CONFLICT (conversation) DO UPDATE SET items = excluded.items",
        )
        .bind(conversation.as_str())
        .bind(items);
        self.database
            .change("write a list of tasks", (OnDisk, Fail), written)
            .await
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use hermetic_types::Timestamp;

    use super::*;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn a_list_comes_back_as_it_was_before_a_turn() {
        for database in TestDatabase::each().await {
            let store = database.open().await.unwrap();
            let (lists, key) = (store.todo_lists(), ConversationKey::new("k"));
            let now = async || lists.of(&key).await.unwrap();
            let (one, two) = (MessageRow(1), MessageRow(2));
            // Where there was none before.
            lists.keep(&key, one).await.unwrap();
            lists.write(&key, "first").await.unwrap();
            assert!(!lists.bring_back(&key, two).await.unwrap());
            assert!(lists.bring_back(&key, one).await.unwrap());
            assert_eq!(now().await.as_deref(), Some("[]"));
            lists.write(&key, "first").await.unwrap();
            for written in ["second", "third"] {
                lists.keep(&key, two).await.unwrap();
                lists.write(&key, written).await.unwrap();
            }
            assert!(lists.bring_back(&key, two).await.unwrap());
            assert_eq!(now().await.as_deref(), Some("first"));
            assert!(!lists.bring_back(&key, two).await.unwrap(), "once");
        }
    }

    #[tokio::test]
    async fn a_list_goes_with_what_was_said() {
        for database in TestDatabase::each().await {
            let opened = database.open().await;
            let store = opened.unwrap();
            let (lists, key) = (store.todo_lists(), ConversationKey::new("k"));
            let other = ConversationKey::new("other");
            lists.write(&other, "theirs").await.unwrap();
            for how in ["new", "resume", "forget", "silence"] {
                store
                    .history()
                    .append(&key, "x", Timestamp::from_millis(1))
                    .await
                    .unwrap();
                store
                    .history()
                    .append(&other, "x", Timestamp::from_millis(9))
                    .await
                    .unwrap();
                lists.write(&key, "first").await.unwrap();
                lists.write(&key, "second").await.unwrap();
                assert_eq!(lists.of(&key).await.unwrap().as_deref(), Some("second"));
                let sessions = store.sessions();
                match how {
                    "new" => sessions.begin_anew(&key, "a", "t").await.unwrap(),
                    "resume" => {
                        let now = Timestamp::from_millis(2);
                        assert!(sessions.resume(&key, "a", ("b", "t"), now).await.unwrap());
                    }
                    "forget" => store.history().clear(&key).await.unwrap(),
                    _ => drop(
                        store
                            .history()
                            .forget_silent(Timestamp::from_millis(5))
                            .await
                            .unwrap(),
                    ),
                }
                assert_eq!(lists.of(&key).await.unwrap(), None, "{how}");
                assert_eq!(lists.of(&other).await.unwrap().as_deref(), Some("theirs"));
            }
        }
    }
}
