//! What became of sandboxes, for people who look back.
//!
//! Each is written with the change of the ledger that it tells of, all or nothing: what is told here happened there.

use hermetic_types::{BackendKind, ConversationKey, SandboxId, Timestamp};

use super::{LedgerState, SandboxLedger};
use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::Soon;
use crate::database::{DatabaseRow, SqlStatement};

/// Writes an event of the sandbox that the ledger has under this name.
macro_rules! noted {
    ($what:literal, $condition:literal) => {
        SqlStatement::new(concat!(
            "INSERT INTO sandbox_events (sandbox, conversation, backend, what, note, at)
             SELECT id, conversation, backend, ",
            $what,
            ", CAST(? AS TEXT), CAST(? AS BIGINT) FROM sandboxes WHERE id = ?",
            $condition
        ))
    };
}
/// Something that happened to a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxEvent {
    /// It is about to be made.
    Named,
    Ready,
    Stopped,
    /// Ready again after it was stopped.
    Resumed,
    /// Made before anybody wanted it, and somebody's now.
    Given,
    /// Kept for its files while nothing uses it.
    SetAside,
    TakenBack,
    /// It could not be stopped or destroyed.
    Failed,
    /// It was seen to be gone.
    Gone,
}

/// One of them, as it was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxEventRow {
    pub id: i64,
    pub sandbox: SandboxId,
    pub backend: BackendKind,
    pub what: SandboxEvent,
    /// Why, where it failed.
    pub note: Option<String>,
    pub at: Timestamp,
}

impl SandboxEvent {
    const ALL: [Self; 9] = [
        Self::Named,
        Self::Ready,
        Self::Stopped,
        Self::Resumed,
        Self::Given,
        Self::SetAside,
        Self::TakenBack,
        Self::Failed,
        Self::Gone,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Ready => "ready",
            Self::Stopped => "stopped",
            Self::Resumed => "resumed",
            Self::Given => "given",
            Self::SetAside => "set_aside",
            Self::TakenBack => "taken_back",
            Self::Failed => "failed",
            Self::Gone => "gone",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Notes it of a sandbox that is in the ledger at that moment.
    pub(super) fn note(self, id: &SandboxId, why: Option<&str>, now: Timestamp) -> SqlStatement {
        noted!("CAST(? AS TEXT)", "")
            .bind(self.name())
            .bind(why)
            .bind(now.millis())
            .bind(id.as_str())
    }
}

/// Notes that it is in another state, before it is: what that is called depends on the state before. On its way
/// somewhere nothing has happened yet.
pub(super) fn marked(id: &SandboxId, state: LedgerState, now: Timestamp) -> Option<SqlStatement> {
    let statement = match state {
        LedgerState::Running => noted!(
            "CASE state WHEN 'creating' THEN 'ready' ELSE 'resumed' END",
            " AND state <> 'running'"
        ),
        LedgerState::Stopped => noted!("'stopped'", " AND state <> 'stopped'"),
        LedgerState::Creating | LedgerState::Stopping | LedgerState::Destroying => return None,
    };
    let nothing: Option<&str> = None;
    let statement = statement.bind(nothing).bind(now.millis());
    Some(statement.bind(id.as_str()))
}

/// Notes a failure, before its row is changed. One that is the same as the last is only counted there: it is tried
/// again and again.
pub(super) fn failed(id: &SandboxId, failure: &str, now: Timestamp) -> SqlStatement {
    noted!("'failed'", " AND coalesce(last_failure, '') <> ?")
        .bind(Some(failure))
        .bind(now.millis())
        .bind(id.as_str())
        .bind(failure)
}

impl SandboxLedger {
    /// What became of a conversation's sandboxes since then, the earliest first; of very many the latest.
    pub async fn events(
        &self,
        conversation: &ConversationKey,
        since: Timestamp,
        most: u32,
    ) -> Result<Vec<SandboxEventRow>, StoreError> {
        let query = SqlStatement::new(
            "SELECT id, sandbox, backend, what, note, at FROM sandbox_events
             WHERE conversation = ? AND at >= ? ORDER BY id DESC LIMIT ?",
        )
        .bind(conversation.as_str())
        .bind(since.millis())
        .bind(most);
        let event = |row: &DatabaseRow| {
            Ok(SandboxEventRow {
                id: row.get("id")?,
                sandbox: row.parsed("sandbox", |text| text.parse().ok())?,
                backend: row.parsed("backend", |text| text.parse().ok())?,
                what: row.parsed("what", SandboxEvent::parse)?,
                note: row.get("note")?,
                at: row.moment("at")?,
            })
        };
        let doing = "read what became of sandboxes";
        let mut found = self.database.read(doing, query, event).await?;
        found.reverse();
        Ok(found)
    }

    /// Strikes out what happened before then.
    pub async fn forget_events(&self, before: Timestamp) -> Result<u64, StoreError> {
        let old = SqlStatement::new("DELETE FROM sandbox_events WHERE at < ?");
        let doing = "strike out what became of sandboxes";
        let old = old.bind(before.millis());
        self.database.change(doing, (Soon, Fail), old).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn what_became_of_a_sandbox_is_told_after_it_is_gone() {
        for database in TestDatabase::each().await {
            let ledger = database.open().await.unwrap().ledger();
            let (id, now) = (SandboxId::random(), Timestamp::from_millis(1000));
            let (pool, alice) = (ConversationKey::new("pool:1"), ConversationKey::new("a"));
            let named = ledger.name(&id, &pool, BackendKind::Native, "{}", now);
            named.await.unwrap();
            for state in [LedgerState::Running, LedgerState::Running] {
                ledger.mark(&id, state).await.unwrap();
            }
            ledger.give(&id, &alice, "{}", now).await.unwrap();
            for state in [
                LedgerState::Stopping,
                LedgerState::Stopped,
                LedgerState::Running,
                LedgerState::Destroying,
            ] {
                ledger.mark(&id, state).await.unwrap();
            }
            for why in ["busy", "busy", "still busy"] {
                ledger.note_failure(&id, why).await.unwrap();
            }
            ledger.forget(&id).await.unwrap();
            ledger.forget(&id).await.unwrap();
            let since = Timestamp::from_millis(0);
            let told = async |key: &ConversationKey| {
                let found = ledger.events(key, since, 99).await.unwrap();
                assert!(found.iter().all(|one| one.sandbox == id));
                let words = found.into_iter().map(|one| match one.note {
                    Some(note) => format!("{}: {note}", one.what.name()),
                    None => one.what.name().to_owned(),
                });
                words.collect::<Vec<_>>()
            };
            assert_eq!(told(&pool).await, ["named", "ready"]);
            let alices = [
                "given",
                "stopped",
                "resumed",
                "failed: busy",
                "failed: still busy",
                "gone",
            ];
            assert_eq!(told(&alice).await, alices);
            let last = ledger.events(&alice, since, 1).await.unwrap();
            assert_eq!(last[0].what, SandboxEvent::Gone);
            let later = Timestamp::from_millis(i64::MAX / 2);
            assert_eq!(ledger.events(&alice, later, 9).await.unwrap(), []);
            assert_eq!(
                ledger
                    .forget_events(now.plus(std::time::Duration::from_millis(1)))
                    .await
                    .unwrap(),
                2
            );
            assert_eq!(told(&pool).await, ["ready"]);
        }
    }
}
