//! Which agent answers in a conversation, and what it calls its session.

use hermetic_types::ConversationKey;

use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::OnDisk;
use crate::database::{Database, DatabaseRow, SqlStatement};

/// The agents that somebody chose for conversations.
#[derive(Clone, Debug)]
pub struct ConversationAgents {
    database: Database,
}

impl ConversationAgents {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    pub async fn of(&self, conversation: &ConversationKey) -> Result<Option<String>, StoreError> {
        let query =
            SqlStatement::new("SELECT agent FROM conversation_agents WHERE conversation = ?")
                .bind(conversation.as_str());
        let agent = |row: &DatabaseRow| row.get(0);
        let doing = "read the agent of a conversation";
        self.database.read_first(doing, query, agent).await
    }

    pub async fn choose(
        &self,
        conversation: &ConversationKey,
        agent: &str,
    ) -> Result<(), StoreError> {
        let chosen = SqlStatement::new(
            "INSERT INTO conversation_agents (conversation, agent) VALUES (?, ?)
             ON CONFLICT (conversation) DO UPDATE SET agent = excluded.agent",
        )
        .bind(conversation.as_str())
        .bind(agent);
        let written = self
            .database
            .change("choose an agent", (OnDisk, Fail), chosen);
        written.await.map(drop)
    }

    /// The one of the configuration answers again.
    pub async fn forget(&self, conversation: &ConversationKey) -> Result<(), StoreError> {
        let forgotten = SqlStatement::new("DELETE FROM conversation_agents WHERE conversation = ?")
            .bind(conversation.as_str());
        let doing = "choose the usual agent";
        let written = self.database.change(doing, (OnDisk, Fail), forgotten);
        written.await.map(drop)
    }
}

/// What agents call their sessions.
#[derive(Clone, Debug)]
pub struct AgentSessionRows {
    database: Database,
}

impl AgentSessionRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    pub async fn of(
        &self,
        conversation: &ConversationKey,
        agent: &str,
    ) -> Result<Option<String>, StoreError> {
        let query = SqlStatement::new(
            "SELECT session FROM agent_sessions WHERE conversation = ? AND agent = ?",
        )
        .bind(conversation.as_str())
        .bind(agent);
        let session = |row: &DatabaseRow| row.get(0);
        let doing = "read the session of an agent";
        self.database.read_first(doing, query, session).await
    }

    /// The agents that have a session in a conversation.
    pub async fn agents_of(
        &self,
        conversation: &ConversationKey,
    ) -> Result<Vec<String>, StoreError> {
        let query = SqlStatement::new(
            "SELECT agent FROM agent_sessions WHERE conversation = ? ORDER BY agent",
        )
        .bind(conversation.as_str());
        let agent = |row: &DatabaseRow| row.get(0);
        let doing = "list the agents of a conversation";
        self.database.read(doing, query, agent).await
    }

    pub async fn keep(
        &self,
        conversation: &ConversationKey,
        agent: &str,
        session: &str,
    ) -> Result<(), StoreError> {
        let kept = SqlStatement::new(
            "INSERT INTO agent_sessions (conversation, agent, session) VALUES (?, ?, ?)
             ON CONFLICT (conversation, agent) DO UPDATE SET session = excluded.session",
        )
        .bind(conversation.as_str())
        .bind(agent)
        .bind(session);
        let doing = "keep the session of an agent";
        let written = self.database.change(doing, (OnDisk, Fail), kept);
        written.await.map(drop)
    }

    /// Every agent of the conversation begins anew.
    pub async fn forget(&self, conversation: &ConversationKey) -> Result<(), StoreError> {
        let forgotten = SqlStatement::new("DELETE FROM agent_sessions WHERE conversation = ?")
            .bind(conversation.as_str());
        let doing = "forget the sessions of agents";
        let written = self.database.change(doing, (OnDisk, Fail), forgotten);
        written.await.map(drop)
    }
}

/// The mode and the model that somebody chose for an agent of somebody else's in a conversation.
#[derive(Clone, Debug)]
pub struct AgentSettingRows {
    database: Database,
}

/// What can be chosen of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentSettingKind {
    Mode,
    Model,
}

/// What was chosen of an agent; what is absent, it decides itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSettings {
    pub mode: Option<String>,
    pub model: Option<String>,
}

impl AgentSettingKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Model => "model",
        }
    }
}

impl AgentSettingRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    pub async fn of(
        &self,
        conversation: &ConversationKey,
        agent: &str,
    ) -> Result<AgentSettings, StoreError> {
        let query = SqlStatement::new(
            "SELECT kind, value FROM agent_settings WHERE conversation = ? AND agent = ?",
        )
        .bind(conversation.as_str())
        .bind(agent);
        let pair =
            |row: &DatabaseRow| -> Result<(String, String), _> { Ok((row.get(0)?, row.get(1)?)) };
        let doing = "read the settings of an agent";
        let mut settings = AgentSettings::default();
        for (kind, value) in self.database.read(doing, query, pair).await? {
            match kind.as_str() {
                "mode" => settings.mode = Some(value),
                _ => settings.model = Some(value),
            }
        }
        Ok(settings)
    }

    pub async fn choose(
        &self,
        conversation: &ConversationKey,
        agent: &str,
        (kind, value): (AgentSettingKind, &str),
    ) -> Result<(), StoreError> {
        let chosen = SqlStatement::new(
            "INSERT INTO agent_settings (conversation, agent, kind, value) VALUES (?, ?, ?, ?)
             ON CONFLICT (conversation, agent, kind) DO UPDATE SET value = excluded.value",
        )
        .bind(conversation.as_str())
        .bind(agent)
        .bind(kind.name())
        .bind(value);
        let doing = "choose a setting of an agent";
        let written = self.database.change(doing, (OnDisk, Fail), chosen);
        written.await.map(drop)
    }

    /// The agent decides it itself again.
    pub async fn forget(
        &self,
        conversation: &ConversationKey,
        agent: &str,
        kind: AgentSettingKind,
    ) -> Result<(), StoreError> {
        let forgotten = SqlStatement::new(
            "DELETE FROM agent_settings WHERE conversation = ? AND agent = ? AND kind = ?",
        )
        .bind(conversation.as_str())
        .bind(agent)
        .bind(kind.name());
        let doing = "forget a setting of an agent";
        let written = self.database.change(doing, (OnDisk, Fail), forgotten);
        written.await.map(drop)
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn what_was_chosen_and_what_is_kept_is_the_conversations_own() {
        for database in TestDatabase::each().await {
            let store = database.open().await.unwrap();
            let (key, other) = (ConversationKey::new("k"), ConversationKey::new("other"));
            let agents = store.conversation_agents();
            agents.choose(&key, "a").await.unwrap();
            agents.choose(&key, "b").await.unwrap();
            assert_eq!(agents.of(&key).await.unwrap().as_deref(), Some("b"));
            assert_eq!(agents.of(&other).await.unwrap(), None);
            agents.forget(&key).await.unwrap();
            assert_eq!(agents.of(&key).await.unwrap(), None);

            let sessions = store.agent_sessions();
            for (agent, session) in [("a", "1"), ("b", "2"), ("a", "3")] {
                sessions.keep(&key, agent, session).await.unwrap();
            }
            assert_eq!(sessions.of(&key, "a").await.unwrap().as_deref(), Some("3"));
            assert_eq!(sessions.of(&key, "b").await.unwrap().as_deref(), Some("2"));
            assert_eq!(sessions.of(&other, "a").await.unwrap(), None);
            let settings = store.agent_settings();
            let (mode, model) = (AgentSettingKind::Mode, AgentSettingKind::Model);
            for chosen in [(mode, "plan"), (model, "large"), (mode, "ask")] {
                settings.choose(&key, "a", chosen).await.unwrap();
            }
            let both = settings.of(&key, "a").await.unwrap();
            assert_eq!(both.mode.as_deref(), Some("ask"));
            assert_eq!(both.model.as_deref(), Some("large"));
            assert_eq!(
                settings.of(&key, "b").await.unwrap(),
                AgentSettings::default()
            );
            settings.forget(&key, "a", mode).await.unwrap();
            assert_eq!(settings.of(&key, "a").await.unwrap().mode, None);
            store.history().clear(&key).await.unwrap();
            assert_eq!(
                settings.of(&key, "a").await.unwrap(),
                AgentSettings::default()
            );
            assert_eq!(
                sessions.of(&key, "a").await.unwrap(),
                None,
                "forgotten with what was said"
            );
        }
    }
}
