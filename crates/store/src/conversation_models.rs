//! Which model somebody chose for a conversation.

use hermetic_types::ConversationKey;

use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::OnDisk;
use crate::database::{Database, DatabaseRow, SqlStatement};

#[derive(Clone, Debug)]
pub struct ConversationModels {
    database: Database,
}

impl ConversationModels {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    pub async fn of(&self, conversation: &ConversationKey) -> Result<Option<String>, StoreError> {
        let query =
            SqlStatement::new("SELECT model FROM conversation_models WHERE conversation = ?")
                .bind(conversation.as_str());
        let model = |row: &DatabaseRow| row.get(0);
        let doing = "read the model of a conversation";
        self.database.read_first(doing, query, model).await
    }

    pub async fn choose(
        &self,
        conversation: &ConversationKey,
        model: &str,
    ) -> Result<(), StoreError> {
        let chosen = SqlStatement::new(
            "INSERT INTO conversation_models (conversation, model) VALUES (?, ?)
             ON CONFLICT (conversation) DO UPDATE SET model = excluded.model",
        )
        .bind(conversation.as_str())
        .bind(model);
        self.database
            .change("choose a model", (OnDisk, Fail), chosen)
            .await
            .map(drop)
    }

    /// The usual one answers again.
    pub async fn forget(&self, conversation: &ConversationKey) -> Result<(), StoreError> {
        let forgotten = SqlStatement::new("DELETE FROM conversation_models WHERE conversation = ?")
            .bind(conversation.as_str());
        self.database
            .change("choose the usual model", (OnDisk, Fail), forgotten)
            .await
            .map(drop)
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn a_choice_holds_for_one_conversation_until_it_is_taken_back() {
        for database in TestDatabase::each().await {
            let opened = database.open().await;
            let store = opened.unwrap();
            let (models, key) = (store.conversation_models(), ConversationKey::new("k"));
            assert_eq!(models.of(&key).await.unwrap(), None);
            models.choose(&key, "a").await.unwrap();
            models.choose(&key, "b").await.unwrap();
            assert_eq!(models.of(&key).await.unwrap().as_deref(), Some("b"));
            assert_eq!(
                models.of(&ConversationKey::new("other")).await.unwrap(),
                None
            );
            models.forget(&key).await.unwrap();
            assert_eq!(models.of(&key).await.unwrap(), None);
            models.choose(&key, "b").await.unwrap();
            store.history().clear(&key).await.unwrap();
            assert_eq!(
                models.of(&key).await.unwrap(),
                None,
                "all of it is forgotten"
            );
        }
    }
}
