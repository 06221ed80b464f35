//! The sandbox ledger: every sandbox is named here before it exists.

mod events;

use hermetic_types::{BackendKind, ConversationKey, SandboxId, Timestamp};
use serde::Serialize;

use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement};
use crate::{RowOwner, StoreError};

pub use events::{SandboxEvent, SandboxEventRow};

#[derive(Clone, Debug)]
pub struct SandboxLedger {
    database: Database,
}

/// One sandbox that exists, may exist, or still has to be seen gone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LedgerEntry {
    pub id: SandboxId,
    pub conversation: ConversationKey,
    pub backend: BackendKind,
    pub state: LedgerState,
    /// The sandbox's `Spec` as JSON; the ledger does not look inside.
    pub spec: String,
    pub named_at: Timestamp,
    pub touched_at: Timestamp,
    pub failures: u32,
    pub last_failure: Option<String>,
    /// Since when its files are kept although nothing uses it; absent for one in use.
    pub set_aside_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LedgerState {
    Creating,
    Running,
    Stopping,
    Stopped,
    Destroying,
}

impl SandboxLedger {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Names a sandbox that is about to be created. Fails if the conversation has one already.
    pub async fn name(
        &self,
        id: &SandboxId,
        conversation: &ConversationKey,
        backend: BackendKind,
        spec: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let insert = SqlStatement::new(
            "INSERT INTO sandboxes
                 (id, conversation, backend, state, spec, named_at, touched_at, owner)
             VALUES (?, ?, ?, 'creating', ?, ?, ?, ?)",
        )
        .bind(id.as_str())
        .bind(conversation.as_str())
        .bind(backend.name())
        .bind(spec)
        .bind(now.millis())
        .bind(now.millis())
        .bind(self.database.gateway());
        let noted = SandboxEvent::Named.note(id, None, now);
        self.database
            // On the disk before the backend is asked: after a power cut a remote one would
            // otherwise hold something that nobody remembers.
            .write(
                "name a sandbox in the ledger",
                (OnDisk, Fail),
                vec![insert, noted],
            )
            .await
            .map(drop)
    }

    pub async fn mark(&self, id: &SandboxId, state: LedgerState) -> Result<(), StoreError> {
        // Before anything runs in it: one that is found half made has no files to lose.
        let durability = match state {
            LedgerState::Running => OnDisk,
            _ => Soon,
        };
        let marked = SqlStatement::new("UPDATE sandboxes SET state = ? WHERE id = ?")
            .bind(state.name())
            .bind(id.as_str());
        // What it becomes depends on what it was, so that is looked at before it is changed.
        let mut both: Vec<_> = events::marked(id, state, self.database.now())
            .into_iter()
            .collect();
        both.push(marked);
        self.database
            .write(
                "change a sandbox's state in the ledger",
                (durability, Fail),
                both,
            )
            .await
            .map(drop)
    }

    pub async fn touch(&self, id: &SandboxId, now: Timestamp) -> Result<(), StoreError> {
        self.database
            .change(
                "touch a sandbox in the ledger",
                (Soon, Fail),
                SqlStatement::new("UPDATE sandboxes SET touched_at = ? WHERE id = ?")
                    .bind(now.millis())
                    .bind(id.as_str()),
            )
            .await
            .map(drop)
    }

    /// Gives a sandbox to a conversation, in one step. Fails if the conversation has one already.
    pub async fn give(
        &self,
        id: &SandboxId,
        conversation: &ConversationKey,
        spec: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let given = SqlStatement::new(
            "UPDATE sandboxes SET conversation = ?, spec = ?, touched_at = ? WHERE id = ?",
        )
        .bind(conversation.as_str())
        .bind(spec)
        .bind(now.millis())
        .bind(id.as_str());
        let noted = SandboxEvent::Given.note(id, None, now);
        self.database
            .write(
                "give a sandbox to a conversation",
                (OnDisk, Fail),
                vec![given, noted],
            )
            .await
            .map(drop)
    }

    /// From here on the conversation may have another sandbox; this one is kept for its files.
    pub async fn set_aside(&self, id: &SandboxId, now: Timestamp) -> Result<(), StoreError> {
        let aside = SqlStatement::new("UPDATE sandboxes SET set_aside_at = ? WHERE id = ?")
            .bind(now.millis())
            .bind(id.as_str());
        let noted = SandboxEvent::SetAside.note(id, None, now);
        self.database
            .write(
                "set a sandbox aside in the ledger",
                (OnDisk, Fail),
                vec![aside, noted],
            )
            .await
            .map(drop)
    }

    /// One that was set aside is the conversation's again. Fails if the conversation has one in use.
    pub async fn take_back(&self, id: &SandboxId) -> Result<(), StoreError> {
        let back = SqlStatement::new("UPDATE sandboxes SET set_aside_at = NULL WHERE id = ?");
        let noted = SandboxEvent::TakenBack.note(id, None, self.database.now());
        self.database
            .write(
                "take a sandbox back in the ledger",
                (OnDisk, Fail),
                vec![back.bind(id.as_str()), noted],
            )
            .await
            .map(drop)
    }

    /// Notes a failure to stop or destroy; the entry stays until that has worked.
    pub async fn note_failure(&self, id: &SandboxId, failure: &str) -> Result<(), StoreError> {
        let counted = SqlStatement::new(
            "UPDATE sandboxes SET failures = failures + 1, last_failure = ? WHERE id = ?",
        )
        .bind(failure)
        .bind(id.as_str());
        // One that is tried again and again is not told again and again: its row counts.
        let noted = events::failed(id, failure, self.database.now());
        self.database
            .write(
                "note a failure in the ledger",
                (Soon, Fail),
                vec![noted, counted],
            )
            .await
            .map(drop)
    }

    /// Strikes out a sandbox that was seen to be gone.
    pub async fn forget(&self, id: &SandboxId) -> Result<(), StoreError> {
        let gone = SqlStatement::new("DELETE FROM sandboxes WHERE id = ?").bind(id.as_str());
        let noted = SandboxEvent::Gone.note(id, None, self.database.now());
        self.database
            .write(
                // Not on the disk at once: a row that comes back is struck out again when the next
                // start sees nothing behind it.
                "strike a sandbox out of the ledger",
                (Soon, Fail),
                vec![noted, gone],
            )
            .await
            .map(drop)
    }

    pub async fn find(&self, id: &SandboxId) -> Result<Option<LedgerEntry>, StoreError> {
        let query = SqlStatement::new("SELECT * FROM sandboxes WHERE id = ?").bind(id.as_str());
        self.database
            .read_first("read the ledger", query, entry)
            .await
    }

    /// The conversation's sandbox in use: not one on its way out, and none that was set aside.
    pub async fn of(
        &self,
        conversation: &ConversationKey,
    ) -> Result<Option<LedgerEntry>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM sandboxes
             WHERE conversation = ? AND state <> 'destroying' AND set_aside_at IS NULL",
        )
        .bind(conversation.as_str());
        self.database
            .read_first("read the ledger", query, entry)
            .await
    }

    /// The conversation's sandboxes that were set aside, the latest first.
    pub async fn set_aside_of(
        &self,
        conversation: &ConversationKey,
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM sandboxes
             WHERE conversation = ? AND state <> 'destroying' AND set_aside_at IS NOT NULL
             ORDER BY set_aside_at DESC, rowid DESC",
        )
        .bind(conversation.as_str());
        self.database.read("read the ledger", query, entry).await
    }

    /// How many of this owner's there are in each state.
    pub async fn counts(&self, owner: RowOwner) -> Result<Vec<(LedgerState, i64)>, StoreError> {
        let query = SqlStatement::new(
            "SELECT state, count(*) AS many FROM sandboxes WHERE owner = coalesce(?, owner)
             GROUP BY state",
        )
        .bind(owner.filter(&self.database));
        let count =
            |row: &DatabaseRow| Ok((row.parsed("state", LedgerState::parse)?, row.get("many")?));
        self.database.read("count the ledger", query, count).await
    }

    /// All of this owner's, the longest untouched first.
    pub async fn entries(&self, owner: RowOwner) -> Result<Vec<LedgerEntry>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM sandboxes WHERE owner = coalesce(?, owner) ORDER BY touched_at, id",
        )
        .bind(owner.filter(&self.database));
        self.database.read("read the ledger", query, entry).await
    }
}

impl LedgerState {
    const ALL: [Self; 5] = [
        Self::Creating,
        Self::Running,
        Self::Stopping,
        Self::Stopped,
        Self::Destroying,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Destroying => "destroying",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

pub(crate) fn entry(row: &DatabaseRow) -> Result<LedgerEntry, DatabaseError> {
    Ok(LedgerEntry {
        id: row.parsed("id", |text| text.parse().ok())?,
        conversation: ConversationKey::new(row.get::<String>("conversation")?),
        backend: row.parsed("backend", |text| text.parse().ok())?,
        state: row.parsed("state", LedgerState::parse)?,
        spec: row.get("spec")?,
        named_at: row.moment("named_at")?,
        touched_at: row.moment("touched_at")?,
        failures: row.get("failures")?,
        last_failure: row.get("last_failure")?,
        set_aside_at: row.maybe_moment("set_aside_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_databases::TestDatabase;

    const NOW: i64 = 1_000;

    async fn ledger(database: &TestDatabase) -> SandboxLedger {
        let store = database.open().await.unwrap();
        store.ledger()
    }

    async fn named(ledger: &SandboxLedger, conversation: &str) -> Result<SandboxId, StoreError> {
        let id = SandboxId::random();
        let now = Timestamp::from_millis(NOW);
        let conversation = ConversationKey::new(conversation);
        ledger
            .name(&id, &conversation, BackendKind::Native, "{}", now)
            .await?;
        Ok(id)
    }

    #[tokio::test]
    async fn a_named_sandbox_is_there_until_it_is_forgotten() {
        for database in TestDatabase::each().await {
            let ledger = ledger(&database).await;
            let id = named(&ledger, "a").await.unwrap();
            ledger.mark(&id, LedgerState::Running).await.unwrap();
            ledger.note_failure(&id, "busy").await.unwrap();
            let entry = ledger.find(&id).await.unwrap().unwrap();
            assert_eq!((entry.state, entry.failures), (LedgerState::Running, 1));
            ledger.forget(&id).await.unwrap();
            assert_eq!(ledger.entries(RowOwner::ThisGateway).await.unwrap(), []);
        }
    }

    #[tokio::test]
    async fn a_sandbox_is_given_only_to_a_conversation_that_has_none() {
        for database in TestDatabase::each().await {
            let ledger = ledger(&database).await;
            let (waiting, now) = (
                named(&ledger, "pool:1").await.unwrap(),
                Timestamp::from_millis(NOW),
            );
            named(&ledger, "a").await.unwrap();
            let (a, b) = (ConversationKey::new("a"), ConversationKey::new("b"));
            assert!(ledger.give(&waiting, &a, "{}", now).await.is_err());
            ledger.give(&waiting, &b, "{}", now).await.unwrap();
            assert_eq!(ledger.of(&b).await.unwrap().unwrap().id, waiting);
        }
    }

    #[tokio::test]
    async fn a_conversation_has_one_sandbox_besides_those_on_their_way_out() {
        for database in TestDatabase::each().await {
            let ledger = ledger(&database).await;
            let old = named(&ledger, "a").await.unwrap();
            assert!(named(&ledger, "a").await.is_err());
            ledger.mark(&old, LedgerState::Destroying).await.unwrap();
            let new = named(&ledger, "a").await.unwrap();
            let found = ledger
                .of(&ConversationKey::new("a"))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(found.id, new);
            assert_eq!(
                ledger.entries(RowOwner::ThisGateway).await.unwrap().len(),
                2
            );
        }
    }
    #[tokio::test]
    async fn one_that_is_set_aside_stays_in_the_ledger_and_can_be_taken_back() {
        for database in TestDatabase::each().await {
            let ledger = ledger(&database).await;
            let (alice, now) = (ConversationKey::new("a"), Timestamp::from_millis(NOW));
            let old = named(&ledger, "a").await.unwrap();
            ledger.mark(&old, LedgerState::Stopped).await.unwrap();
            ledger.set_aside(&old, now).await.unwrap();
            assert_eq!(ledger.of(&alice).await.unwrap(), None);
            let new = named(&ledger, "a").await.unwrap();
            let aside = ledger.set_aside_of(&alice).await.unwrap();
            assert_eq!(aside.len(), 1);
            assert_eq!(aside[0].id, old);
            assert!(ledger.take_back(&old).await.is_err(), "two in use");
            ledger.set_aside(&new, now).await.unwrap();
            ledger.take_back(&old).await.unwrap();
            assert_eq!(ledger.of(&alice).await.unwrap().unwrap().id, old);
            assert_eq!(
                ledger.entries(RowOwner::ThisGateway).await.unwrap().len(),
                2
            );
        }
    }
}
