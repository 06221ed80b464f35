//! The tasks that an agent wrote down for a conversation. They go with what was said: a fresh conversation has
//! none.

use hermetic_types::ConversationKey;

use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::OnDisk;
use crate::database::{Database, DatabaseRow, SqlStatement};

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
