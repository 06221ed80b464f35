//! Where the audit chains of gateways that share a store stand, for each other to write down.

use hermetic_types::Timestamp;

use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::Soon;
use crate::database::{Database, DatabaseRow, SqlStatement};

#[derive(Clone, Debug)]
pub struct AuditHeadRows {
    database: Database,
}

/// The head of one chain. Texts of whoever may write the store: its seal tells whether the chain's own gateway
/// wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditHeadRow {
    pub chain: String,
    /// The machine and file that the chain is of.
    pub place: String,
    pub seq: u64,
    pub hash: String,
    pub seal: String,
}

/// More than gateways ever share a store.
const MOST_HEADS: i64 = 256;

impl AuditHeadRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Tells where a chain stands. A row only goes forward: a chain that was cut does not take back what
    /// it said.
    pub async fn publish(&self, row: &AuditHeadRow, now: Timestamp) -> Result<(), StoreError> {
        let put = SqlStatement::new(
            "INSERT INTO audit_heads (chain, place, seq, hash, seal, published_at) VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT (chain, place) DO UPDATE
             SET seq = excluded.seq, hash = excluded.hash, seal = excluded.seal, published_at = excluded.published_at
             WHERE audit_heads.seq < excluded.seq",
        )
        .bind(row.chain.as_str())
        .bind(row.place.as_str())
        .bind(i64::try_from(row.seq).unwrap_or(i64::MAX))
        .bind(row.hash.as_str())
        .bind(row.seal.as_str())
        .bind(now.millis());
        let doing = "tell where the audit record stands";
        // Told again with the next record; what was lost in a power cut is told then.
        let told = self.database.change(doing, (Soon, Fail), put);
        told.await.map(drop)
    }

    /// All of them, the latest first.
    pub async fn all(&self) -> Result<Vec<AuditHeadRow>, StoreError> {
        let query = SqlStatement::new(
            "SELECT chain, place, seq, hash, seal FROM audit_heads ORDER BY published_at DESC LIMIT ?",
        )
        .bind(MOST_HEADS);
        let row = |row: &DatabaseRow| {
            Ok(AuditHeadRow {
                chain: row.get("chain")?,
                place: row.get("place")?,
                seq: u64::try_from(row.get::<i64>("seq")?).unwrap_or_default(),
                hash: row.get("hash")?,
                seal: row.get("seal")?,
            })
        };
        let doing = "read where other audit records stand";
        self.database.read(doing, query, row).await
    }

    /// Forgets those that were last told of before: the others have them in their chains.
    pub async fn forget_before(&self, before: Timestamp) -> Result<(), StoreError> {
        let forget = SqlStatement::new("DELETE FROM audit_heads WHERE published_at < ?")
            .bind(before.millis());
        let doing = "forget where audit records stood";
        let forgotten = self.database.change(doing, (Soon, Fail), forget);
        forgotten.await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_databases::TestDatabase;

    fn head(chain: &str, seq: u64) -> AuditHeadRow {
        AuditHeadRow {
            chain: chain.to_owned(),
            place: "machine:/home/audit.jsonl".to_owned(),
            seq,
            hash: format!("hash {seq}"),
            seal: format!("seal {seq}"),
        }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[tokio::test]
    async fn a_chain_does_not_take_back_where_it_stood() {
        for database in TestDatabase::each().await {
            let one = database.open().await.unwrap().audit_heads();
            let two = database.open().await.unwrap().audit_heads();
            one.publish(&head("a", 7), at(1)).await.unwrap();
            two.publish(&head("b", 3), at(2)).await.unwrap();
            one.publish(&head("a", 5), at(3)).await.unwrap();
            assert_eq!(one.all().await.unwrap(), [head("b", 3), head("a", 7)]);
            one.publish(&head("a", 8), at(4)).await.unwrap();
            assert_eq!(two.all().await.unwrap(), [head("a", 8), head("b", 3)]);
            two.forget_before(at(4)).await.unwrap();
            assert_eq!(one.all().await.unwrap(), [head("a", 8)]);
        }
    }
}
