//! Skills that an agent wrote and nobody has approved.

use hermetic_types::Timestamp;

use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::OnDisk;
use crate::database::{Database, DatabaseRow, SqlStatement};

#[derive(Clone, Debug)]
pub struct SkillDraftRows {
    database: Database,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillDraftRow {
    pub owner: String,
    pub name: String,
    /// Names exactly this body.
    pub digest: String,
    pub body: String,
    pub written_at: Timestamp,
}

/// What a list shows at most.
const MOST_LISTED: u32 = 1000;

impl SkillDraftRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    pub async fn of(&self, owner: &str, name: &str) -> Result<Option<SkillDraftRow>, StoreError> {
        let query = SqlStatement::new("SELECT * FROM skill_drafts WHERE owner = ? AND name = ?")
            .bind(owner)
            .bind(name);
        let doing = "read a skill that waits";
        self.database.read_first(doing, query, draft).await
    }

    /// Those of everybody, for the operator.
    pub async fn all(&self) -> Result<Vec<SkillDraftRow>, StoreError> {
        let sql = "SELECT * FROM skill_drafts ORDER BY written_at, digest LIMIT ?";
        let query = SqlStatement::new(sql).bind(MOST_LISTED);
        self.database
            .read("list skills that wait", query, draft)
            .await
    }

    /// Writes it in place of the owner's draft of this name. `false` where the owner, or all together, have
    /// as many as may wait.
    pub async fn put(
        &self,
        row: &SkillDraftRow,
        (most_of_owner, most): (u32, u32),
    ) -> Result<bool, StoreError> {
        let insert = SqlStatement::new(
            "INSERT INTO skill_drafts (owner, name, digest, body, written_at)
             SELECT ?, ?, ?, ?, ?
             WHERE EXISTS (SELECT 1 FROM skill_drafts WHERE owner = ? AND name = ?)
                OR ((SELECT count(*) FROM skill_drafts WHERE owner = ?) < ?
                    AND (SELECT count(*) FROM skill_drafts) < ?)
             ON CONFLICT (owner, name) DO UPDATE SET digest = excluded.digest, body = excluded.body,
                 written_at = excluded.written_at",
        )
        .bind(&row.owner)
        .bind(&row.name)
        .bind(&row.digest)
        .bind(&row.body)
        .bind(row.written_at.millis())
        .bind(&row.owner)
        .bind(&row.name)
        .bind(&row.owner)
        .bind(most_of_owner)
        .bind(most)
        .alone_in("skill_drafts");
        let doing = "write down a skill that waits";
        Ok(self.database.change(doing, (OnDisk, Fail), insert).await? == 1)
    }

    /// Strikes a draft off; whether it was there.
    pub async fn settle(&self, digest: &str) -> Result<bool, StoreError> {
        let gone = SqlStatement::new("DELETE FROM skill_drafts WHERE digest = ?").bind(digest);
        let doing = "settle a skill that waits";
        Ok(self.database.change(doing, (OnDisk, Fail), gone).await? == 1)
    }
}

fn draft(row: &DatabaseRow) -> Result<SkillDraftRow, crate::DatabaseError> {
    Ok(SkillDraftRow {
        owner: row.get("owner")?,
        name: row.get("name")?,
        digest: row.get("digest")?,
        body: row.get("body")?,
        written_at: row.moment("written_at")?,
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn a_draft_is_replaced_under_another_digest_and_their_number_is_bounded() {
        for database in TestDatabase::each().await {
            let opened = database.open().await;
            let rows = opened.unwrap().skill_drafts();
            let row = |owner: &str, name: &str, digest: &str| SkillDraftRow {
                owner: owner.to_owned(),
                name: name.to_owned(),
                digest: digest.to_owned(),
                body: "{}".to_owned(),
                written_at: Timestamp::from_millis(1),
            };
            let mut taken = Vec::new();
            for (owner, name, digest) in [
                ("a", "x", "1"),
                ("a", "y", "2"),
                ("a", "z", "3"),
                ("a", "x", "4"),
                ("b", "x", "5"),
                ("c", "x", "6"),
            ] {
                taken.push(rows.put(&row(owner, name, digest), (2, 3)).await.unwrap());
            }
            assert_eq!(taken, [true, true, false, true, true, false]);
            assert!(!rows.settle("1").await.unwrap(), "it was replaced");
            let found = rows.of("a", "x").await.unwrap();
            assert_eq!(found.map(|row| row.digest).as_deref(), Some("4"));
            assert!(rows.settle("4").await.unwrap());
            assert_eq!(rows.all().await.unwrap().len(), 2);
        }
    }
}
