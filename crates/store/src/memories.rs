//! What is remembered for a person or a group, and changes that wait for a person.
//!
//! Every method but those for the command line names the owner, so that nothing of one is read for another.

use hermetic_types::Timestamp;

use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::OnDisk;
use crate::database::{Database, DatabaseRow, SqlStatement, StatementResult};

#[derive(Clone, Debug)]
pub struct MemoryRows {
    database: Database,
}

/// The entries of one owner for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRow {
    pub owner: String,
    pub target: String,
    pub entries: String,
    pub version: u64,
    /// How often a person changed them.
    pub reviewed: u64,
    pub changed_at: Timestamp,
}

/// A change that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRequestRow {
    pub id: String,
    pub owner: String,
    pub target: String,
    pub operations: String,
    pub asked_at: Timestamp,
}

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub struct MemoryWrite<'a> {
    pub owner: &'a str,
    pub target: &'a str,
    pub entries: &'a str,
    /// The version that was read; 0 for none.
    pub expected: u64,
    /// Whether a person wrote it.
    pub by_person: bool,
    /// Rows of all owners, beyond which no new one is written.
    pub most_rows: u32,
}

/// What a list shows at most.
const MOST_LISTED: u32 = 20_000;

impl MemoryRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    pub async fn of(&self, owner: &str) -> Result<Vec<MemoryRow>, StoreError> {
        let query = SqlStatement::new("SELECT * FROM memories WHERE owner = ?").bind(owner);
        self.database.read("read memories", query, memory).await
    }

    /// Those of everybody, for the operator.
    pub async fn all(&self) -> Result<Vec<MemoryRow>, StoreError> {
        let sql = "SELECT * FROM memories ORDER BY owner, target LIMIT ?";
        let query = SqlStatement::new(sql).bind(MOST_LISTED);
        self.database.read("list memories", query, memory).await
    }

    /// Writes, on the disk, if the version is still the expected one and there is a row left. `false`, and
    /// nothing changes, where not.
    pub async fn replace(
        &self,
        write: MemoryWrite<'_>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let expected = i64::try_from(write.expected).unwrap_or(i64::MAX - 1);
        let reviewed = i64::from(write.by_person);
        let statement = if expected == 0 {
            SqlStatement::new(
                "INSERT INTO memories (owner, target, entries, version, reviewed, changed_at)
                 SELECT ?, ?, ?, 1, ?, ? WHERE (SELECT count(*) FROM memories) < ?
                 ON CONFLICT (owner, target) DO NOTHING",
            )
            .bind(write.owner)
            .bind(write.target)
            .bind(write.entries)
            .bind(reviewed)
            .bind(now.millis())
            .bind(write.most_rows)
            .alone_in("memories")
        } else {
            SqlStatement::new(
                "UPDATE memories SET entries = ?, version = version + 1, reviewed = reviewed + ?,
                     changed_at = ?
                 WHERE owner = ? AND target = ? AND version = ?",
            )
            .bind(write.entries)
            .bind(reviewed)
            .bind(now.millis())
            .bind(write.owner)
            .bind(write.target)
            .bind(expected)
        };
        let changed = self
            .database
            .change("write memories", (OnDisk, Fail), statement);
        Ok(changed.await? == 1)
    }

    /// Forgets all that is remembered for an owner, and what waits; whether there was anything.
    pub async fn forget(&self, owner: &str) -> Result<bool, StoreError> {
        // Together: a change that still waits, approved later, would bring back what was forgotten.
        let forgotten = [
            "DELETE FROM memories WHERE owner = ?",
            "DELETE FROM memory_requests WHERE owner = ?",
        ]
        .map(|sql| SqlStatement::new(sql).bind(owner));
        let written = self
            .database
            .write("forget memories", (OnDisk, Fail), forgotten.into());
        let gone = written
            .await?
            .iter()
            .map(StatementResult::affected)
            .sum::<u64>();
        Ok(gone > 0)
    }

    /// Writes a change down that waits for a person. `false` where this owner, or all together, have as many
    /// as may wait.
    pub async fn ask(
        &self,
        request: &MemoryRequestRow,
        (most_of_owner, most): (u32, u32),
    ) -> Result<bool, StoreError> {
        let insert = SqlStatement::new(
            "INSERT INTO memory_requests (id, owner, target, operations, asked_at)
             SELECT ?, ?, ?, ?, ?
             WHERE (SELECT count(*) FROM memory_requests WHERE owner = ?) < ?
               AND (SELECT count(*) FROM memory_requests) < ?",
        )
        .bind(&request.id)
        .bind(&request.owner)
        .bind(&request.target)
        .bind(&request.operations)
        .bind(request.asked_at.millis())
        .bind(&request.owner)
        .bind(most_of_owner)
        .bind(most)
        .alone_in("memory_requests");
        let doing = "write down a memory that waits";
        let changed = self.database.change(doing, (OnDisk, Fail), insert);
        Ok(changed.await? == 1)
    }

    pub async fn waiting_of(&self, owner: &str) -> Result<Vec<MemoryRequestRow>, StoreError> {
        let sql = "SELECT * FROM memory_requests WHERE owner = ? ORDER BY asked_at, id LIMIT ?";
        let query = SqlStatement::new(sql).bind(owner).bind(MOST_LISTED);
        let doing = "read memories that wait";
        self.database.read(doing, query, request).await
    }

    /// Those of everybody, for the operator.
    pub async fn waiting(&self) -> Result<Vec<MemoryRequestRow>, StoreError> {
        let sql = "SELECT * FROM memory_requests ORDER BY asked_at, id LIMIT ?";
        let query = SqlStatement::new(sql).bind(MOST_LISTED);
        let doing = "read memories that wait";
        self.database.read(doing, query, request).await
    }

    /// Strikes a request off; whether it was there.
    pub async fn settle(&self, id: &str) -> Result<bool, StoreError> {
        let gone = SqlStatement::new("DELETE FROM memory_requests WHERE id = ?").bind(id);
        let doing = "settle a memory that waits";
        Ok(self.database.change(doing, (OnDisk, Fail), gone).await? == 1)
    }
}

fn memory(row: &DatabaseRow) -> Result<MemoryRow, crate::DatabaseError> {
    let (version, reviewed): (i64, i64) = (row.get("version")?, row.get("reviewed")?);
    Ok(MemoryRow {
        owner: row.get("owner")?,
        target: row.get("target")?,
        entries: row.get("entries")?,
        version: version.unsigned_abs(),
        reviewed: reviewed.unsigned_abs(),
        changed_at: row.moment("changed_at")?,
    })
}

fn request(row: &DatabaseRow) -> Result<MemoryRequestRow, crate::DatabaseError> {
    Ok(MemoryRequestRow {
        id: row.get("id")?,
        owner: row.get("owner")?,
        target: row.get("target")?,
        operations: row.get("operations")?,
        asked_at: row.moment("asked_at")?,
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;

    fn write(owner: &'static str, entries: &'static str, expected: u64) -> MemoryWrite<'static> {
        MemoryWrite {
            owner,
            target: "memory",
            entries,
            expected,
            by_person: false,
            most_rows: 2,
        }
    }

    #[tokio::test]
    async fn an_owner_has_its_own_and_the_one_who_comes_late_is_outrun() {
        for database in TestDatabase::each().await {
            let opened = database.open().await;
            let rows = opened.unwrap().memories();
            let now = Timestamp::from_millis(1);
            assert!(rows.replace(write("a", "1", 0), now).await.unwrap());
            assert!(!rows.replace(write("a", "x", 0), now).await.unwrap());
            assert!(rows.replace(write("a", "2", 1), now).await.unwrap());
            assert!(!rows.replace(write("a", "y", 1), now).await.unwrap());
            assert!(rows.replace(write("b", "3", 0), now).await.unwrap());
            let full = rows.replace(write("c", "4", 0), now).await.unwrap();
            assert!(!full, "there is no row left");
            let by_person = MemoryWrite {
                by_person: true,
                ..write("a", "5", 2)
            };
            assert!(rows.replace(by_person, now).await.unwrap());
            let of_a = rows.of("a").await.unwrap();
            assert_eq!((of_a.len(), of_a[0].entries.as_str()), (1, "5"));
            assert_eq!((of_a[0].version, of_a[0].reviewed), (3, 1));
            assert!(rows.forget("a").await.unwrap());
            assert_eq!(rows.of("a").await.unwrap(), []);
            assert_eq!(rows.all().await.unwrap().len(), 1);
        }
    }

    #[tokio::test]
    async fn what_waits_is_bounded_for_one_and_for_all() {
        for database in TestDatabase::each().await {
            let opened = database.open().await;
            let rows = opened.unwrap().memories();
            let request = |id: &str, owner: &str| MemoryRequestRow {
                id: id.to_owned(),
                owner: owner.to_owned(),
                target: "user".to_owned(),
                operations: "[]".to_owned(),
                asked_at: Timestamp::from_millis(1),
            };
            let mut taken = Vec::new();
            for (id, owner) in [("1", "a"), ("2", "a"), ("3", "a"), ("4", "b"), ("5", "c")] {
                taken.push(rows.ask(&request(id, owner), (2, 3)).await.unwrap());
            }
            assert_eq!(taken, [true, true, false, true, false]);
            assert_eq!(rows.waiting_of("a").await.unwrap().len(), 2);
            assert!(rows.settle("1").await.unwrap());
            assert!(!rows.settle("1").await.unwrap());
            assert_eq!(rows.waiting().await.unwrap().len(), 2);
        }
    }
}
