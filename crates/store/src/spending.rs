//! What was spent on a day, by a person, in a conversation, and by all together.

use crate::StoreError;
use crate::database::WithoutRoom::{Fail, Wait};
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement};

#[derive(Clone, Debug)]
pub struct SpendingRows {
    database: Database,
}

/// Whose spending.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SpendingScope {
    Person(String),
    Conversation(String),
    /// What one model took of it, whoever asked. Nothing bounds it.
    Model(String),
    All,
}

/// Amounts of a day, or a change of them, which may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendingAmounts {
    pub requests: i64,
    pub tokens: i64,
    pub nanodollars: i64,
    /// Tokens of models whose price nobody knows.
    pub unpriced: i64,
    pub tool_ms: i64,
}

/// A day of one scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendingDay {
    pub spent: SpendingAmounts,
    /// How often somebody lifted the budget.
    pub lifts: i64,
}

impl SpendingScope {
    fn kind(&self) -> &'static str {
        match self {
            Self::Person(_) => "person",
            Self::Conversation(_) => "conversation",
            Self::Model(_) => "model",
            Self::All => "all",
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Person(name) | Self::Conversation(name) | Self::Model(name) => name,
            Self::All => "",
        }
    }
}

impl SpendingRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Adds to a day what is about to be spent. Committed when it returns, so a crash does not forget it;
    /// where there is no room it fails, and nothing is spent.
    pub async fn reserve(
        &self,
        day: &str,
        scopes: &[SpendingScope],
        amounts: SpendingAmounts,
    ) -> Result<(), StoreError> {
        let writes = additions(day, scopes, amounts);
        let doing = "set a budget aside";
        self.database
            .write(doing, (Soon, Fail), writes)
            .await
            .map(drop)
    }

    /// Adds what was spent beyond what was set aside, or takes back what was not.
    pub async fn settle(
        &self,
        day: &str,
        scopes: &[SpendingScope],
        change: SpendingAmounts,
    ) -> Result<(), StoreError> {
        let writes = additions(day, scopes, change);
        let doing = "note what was spent";
        self.database
            .write(doing, (Soon, Wait), writes)
            .await
            .map(drop)
    }

    /// The same after a request, with all that its model took: for a model nothing was set aside.
    pub async fn settle_request(
        &self,
        day: &str,
        scopes: &[SpendingScope],
        change: SpendingAmounts,
        model: (SpendingScope, SpendingAmounts),
    ) -> Result<(), StoreError> {
        let mut writes = additions(day, scopes, change);
        // In the same write, so that what all models took is what everybody spent, whenever it is
        // looked at.
        writes.extend(additions(day, &[model.0], model.1));
        let doing = "note what was spent";
        self.database
            .write(doing, (Soon, Wait), writes)
            .await
            .map(drop)
    }

    pub async fn day(&self, day: &str, scope: &SpendingScope) -> Result<SpendingDay, StoreError> {
        let query =
            SqlStatement::new("SELECT * FROM spending WHERE day = ? AND scope = ? AND name = ?")
                .bind(day)
                .bind(scope.kind())
                .bind(scope.name());
        let found = self.database.read_first("read a budget", query, row);
        Ok(found.await?.unwrap_or_default())
    }

    /// Lifts a day's budget once; `false` if that was done before. On the disk when it returns.
    pub async fn lift(&self, day: &str, scope: &SpendingScope) -> Result<bool, StoreError> {
        let statement = SqlStatement::new(
            "INSERT INTO spending (day, scope, name, lifts) VALUES (?, ?, ?, 1)
             ON CONFLICT (day, scope, name) DO UPDATE SET lifts = 1 WHERE spending.lifts = 0",
        )
        .bind(day)
        .bind(scope.kind())
        .bind(scope.name());
        let changed = self
            .database
            .change("lift a budget", (OnDisk, Fail), statement)
            .await?;
        Ok(changed > 0)
    }

    /// Forgets the days before this one, but never the newest `kept` on which something was spent: a clock
    /// that is wrong for a while says that all of them are old.
    pub async fn forget_before(&self, day: &str, kept: i64) -> Result<(), StoreError> {
        let statement = SqlStatement::new(
            "DELETE FROM spending WHERE day < ? AND day NOT IN
                (SELECT DISTINCT day FROM spending ORDER BY day DESC LIMIT ?)",
        )
        .bind(day)
        .bind(kept);
        self.database
            .change("forget old budgets", (Soon, Fail), statement)
            .await
            .map(drop)
    }
}

/// Sums end well within what a column holds: one that overflows becomes a fraction or an error, which the column
/// refuses, and then nothing could be set aside any more until midnight. A `numeric` does not overflow in between.
macro_rules! sum_of {
    ($max:literal, $min:literal, $column:literal) => {
        concat!(
            $column,
            " = ",
            $max,
            "(-4000000000000000000, ",
            $min,
            "(4000000000000000000, CAST(spending.",
            $column,
            " AS NUMERIC) + excluded.",
            $column,
            "))"
        )
    };
}

macro_rules! added_by {
    ($max:literal, $min:literal) => {
        concat!(
            "INSERT INTO spending (day, scope, name, requests, tokens, nanodollars, unpriced, tool_ms)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (day, scope, name) DO UPDATE SET ",
            sum_of!($max, $min, "requests"),
            ", ",
            sum_of!($max, $min, "tokens"),
            ", ",
            sum_of!($max, $min, "nanodollars"),
            ", ",
            sum_of!($max, $min, "unpriced"),
            ", ",
            sum_of!($max, $min, "tool_ms")
        )
    };
}

fn additions(day: &str, scopes: &[SpendingScope], amounts: SpendingAmounts) -> Vec<SqlStatement> {
    let add = |scope: &SpendingScope| {
        SqlStatement::for_each(added_by!("max", "min"), added_by!("greatest", "least"))
            .bind(day)
            .bind(scope.kind())
            .bind(scope.name())
            .bind(amounts.requests)
            .bind(amounts.tokens)
            .bind(amounts.nanodollars)
            .bind(amounts.unpriced)
            .bind(amounts.tool_ms)
    };
    scopes.iter().map(add).collect()
}

fn row(row: &DatabaseRow) -> Result<SpendingDay, DatabaseError> {
    Ok(SpendingDay {
        spent: SpendingAmounts {
            requests: row.get("requests")?,
            tokens: row.get("tokens")?,
            nanodollars: row.get("nanodollars")?,
            unpriced: row.get("unpriced")?,
            tool_ms: row.get("tool_ms")?,
        },
        lifts: row.get("lifts")?,
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn sums_are_kept_by_day_and_scope_over_a_restart() {
        for database in TestDatabase::each().await {
            let (ada, talk) = (
                SpendingScope::Person("ada".to_owned()),
                SpendingScope::Conversation("ada".to_owned()),
            );
            let amounts = |tokens| SpendingAmounts {
                tokens,
                ..SpendingAmounts::default()
            };
            {
                let rows = database.open().await.unwrap().spending();
                let both = [ada.clone(), talk.clone()];
                rows.reserve("2026-01-01", &both, amounts(100))
                    .await
                    .unwrap();
                rows.settle("2026-01-01", &both, amounts(-30))
                    .await
                    .unwrap();
                let one = std::slice::from_ref(&ada);
                rows.settle("2026-01-02", one, amounts(5)).await.unwrap();
                assert!(rows.lift("2026-01-01", &ada).await.unwrap());
                assert!(!rows.lift("2026-01-01", &ada).await.unwrap());
            }
            let rows = database.open().await.unwrap().spending();
            let first = rows.day("2026-01-01", &ada).await.unwrap();
            assert_eq!((first.spent.tokens, first.lifts), (70, 1));
            let same_name = rows.day("2026-01-01", &talk).await.unwrap();
            assert_eq!((same_name.spent.tokens, same_name.lifts), (70, 0));
            rows.forget_before("2030-01-01", 2).await.unwrap();
            let kept = rows.day("2026-01-01", &ada).await.unwrap();
            assert_eq!(kept.spent.tokens, 70, "of a clock that is years ahead");
            rows.forget_before("2026-01-02", 1).await.unwrap();
            let gone = rows.day("2026-01-01", &ada).await.unwrap();
            assert_eq!(gone, SpendingDay::default());
            let next = rows.day("2026-01-02", &ada).await.unwrap();
            assert_eq!(next.spent.tokens, 5);
        }
    }

    #[tokio::test]
    async fn sums_that_cannot_be_do_not_keep_others_from_being_written() {
        for database in TestDatabase::each().await {
            let store = database.open().await.unwrap();
            let rows = store.spending();
            let all = [SpendingScope::All];
            let absurd = SpendingAmounts {
                tokens: i64::MAX / 2,
                nanodollars: i64::MAX / 2,
                ..SpendingAmounts::default()
            };
            for _ in 0..4 {
                rows.reserve("2026-01-01", &all, absurd).await.unwrap();
            }
            let one = SpendingAmounts {
                requests: 1,
                ..SpendingAmounts::default()
            };
            rows.settle("2026-01-01", &all, one).await.unwrap();
            let spent = rows.day("2026-01-01", &all[0]).await.unwrap().spent;
            assert_eq!(spent.requests, 1);
            assert_eq!(spent.tokens, 4_000_000_000_000_000_000);
        }
    }
}
