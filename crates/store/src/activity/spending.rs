//! What was spent, for whoever looks on.

use hermetic_types::ConversationKey;

use super::ActivityRows;
use super::totals::{postgres_total, sqlite_total};
use crate::database::{DatabaseError, DatabaseRow, SqlStatement};
use crate::{SpendingAmounts, StoreError};

/// What was spent over some days under one name: a day's, a person's, a conversation's or a model's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpentSum {
    pub name: String,
    pub spent: SpendingAmounts,
    /// Of that, today.
    pub today: SpendingAmounts,
}

/// Whose spending is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpendingGroup {
    People,
    Conversations,
    Models,
}

/// What each of a group spent, the dearest first.
macro_rules! names_by {
    ($total:ident) => {
        concat!(
            "SELECT name,
                    ",
            $total!("requests"),
            " AS requests,
                    ",
            $total!("tokens"),
            " AS tokens,
                    ",
            $total!("nanodollars"),
            " AS nanodollars,
                    ",
            $total!("unpriced"),
            " AS unpriced,
                    ",
            $total!("tool_ms"),
            " AS tool_ms,
                    ",
            $total!("CASE day WHEN ?3 THEN requests ELSE 0 END"),
            " AS today_requests,
                    ",
            $total!("CASE day WHEN ?3 THEN tokens ELSE 0 END"),
            " AS today_tokens,
                    ",
            $total!("CASE day WHEN ?3 THEN nanodollars ELSE 0 END"),
            " AS today_nanodollars,
                    ",
            $total!("CASE day WHEN ?3 THEN unpriced ELSE 0 END"),
            " AS today_unpriced,
                    ",
            $total!("CASE day WHEN ?3 THEN tool_ms ELSE 0 END"),
            " AS today_tool_ms
             FROM spending WHERE scope = ?1 AND day >= ?2 GROUP BY name
             ORDER BY 4 DESC, 3 DESC, name LIMIT ?4",
        )
    };
}

impl ActivityRows {
    /// What everybody together spent from that day on, day by day, the latest first.
    pub async fn spending_by_day(
        &self,
        from_day: &str,
        today: &str,
    ) -> Result<Vec<SpentSum>, StoreError> {
        let query = SqlStatement::new(
            "SELECT day AS name, requests, tokens, nanodollars, unpriced, tool_ms,
                    CASE day WHEN ?2 THEN requests ELSE 0 END AS today_requests,
                    CASE day WHEN ?2 THEN tokens ELSE 0 END AS today_tokens,
                    CASE day WHEN ?2 THEN nanodollars ELSE 0 END AS today_nanodollars,
                    CASE day WHEN ?2 THEN unpriced ELSE 0 END AS today_unpriced,
                    CASE day WHEN ?2 THEN tool_ms ELSE 0 END AS today_tool_ms
             FROM spending WHERE scope = 'all' AND name = '' AND day >= ?1
             ORDER BY day DESC LIMIT 1000",
        )
        .bind(from_day)
        .bind(today);
        let doing = "read what was spent";
        self.database.read(doing, query, spent_sum).await
    }

    /// What each of a group spent from that day on, the dearest first. Sums are made by the database, so
    /// that none is cut short by how many days and names there are.
    pub async fn spending_by_name(
        &self,
        group: SpendingGroup,
        (from_day, today): (&str, &str),
        most: u32,
    ) -> Result<Vec<SpentSum>, StoreError> {
        // A total is a fraction, which does not overflow; a sum would be an error.
        let query = SqlStatement::for_each(names_by!(sqlite_total), names_by!(postgres_total))
            .bind(group.scope())
            .bind(from_day)
            .bind(today)
            .bind(most);
        let doing = "read what was spent";
        self.database.read(doing, query, spent_sum).await
    }

    /// What one conversation spent in all the days that are kept.
    pub async fn spent_in(
        &self,
        conversation: &ConversationKey,
    ) -> Result<SpendingAmounts, StoreError> {
        let query = SqlStatement::new(
            "SELECT CAST(coalesce(sum(requests), 0) AS BIGINT) AS requests, CAST(coalesce(sum(tokens), 0) AS BIGINT) AS tokens,
                    CAST(coalesce(sum(nanodollars), 0) AS BIGINT) AS nanodollars,
                    CAST(coalesce(sum(unpriced), 0) AS BIGINT) AS unpriced, CAST(coalesce(sum(tool_ms), 0) AS BIGINT) AS tool_ms
             FROM spending WHERE scope = 'conversation' AND name = ?",
        )
        .bind(conversation.as_str());
        let sums = |row: &DatabaseRow| {
            Ok(SpendingAmounts {
                requests: row.get("requests")?,
                tokens: row.get("tokens")?,
                nanodollars: row.get("nanodollars")?,
                unpriced: row.get("unpriced")?,
                tool_ms: row.get("tool_ms")?,
            })
        };
        let doing = "read what a conversation spent";
        self.database.read_only(doing, query, sums).await
    }
}

impl SpendingGroup {
    const fn scope(self) -> &'static str {
        match self {
            Self::People => "person",
            Self::Conversations => "conversation",
            Self::Models => "model",
        }
    }
}

fn spent_sum(row: &DatabaseRow) -> Result<SpentSum, DatabaseError> {
    Ok(SpentSum {
        name: row.get("name")?,
        spent: SpendingAmounts {
            requests: row.get("requests")?,
            tokens: row.get("tokens")?,
            nanodollars: row.get("nanodollars")?,
            unpriced: row.get("unpriced")?,
            tool_ms: row.get("tool_ms")?,
        },
        today: SpendingAmounts {
            requests: row.get("today_requests")?,
            tokens: row.get("today_tokens")?,
            nanodollars: row.get("today_nanodollars")?,
            unpriced: row.get("today_unpriced")?,
            tool_ms: row.get("today_tool_ms")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpendingScope;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn sums_are_whole_however_many_days_and_names_there_are() {
        for database in TestDatabase::each().await {
            let store = database.open().await.unwrap();
            let (rows, activity) = (store.spending(), store.activity());
            let amounts = |tokens| SpendingAmounts {
                tokens,
                nanodollars: tokens * 2,
                ..SpendingAmounts::default()
            };
            let (model, talk) = (
                |name: &str| SpendingScope::Model(name.to_owned()),
                SpendingScope::Conversation("a".to_owned()),
            );
            for day in ["2026-01-01", "2026-01-02", "2026-01-03"] {
                let scopes = [talk.clone(), SpendingScope::All];
                let settled =
                    rows.settle_request(day, &scopes, amounts(5), (model("m"), amounts(10)));
                settled.await.unwrap();
                rows.settle(day, &[model("n")], amounts(40)).await.unwrap();
            }
            let days = ("2026-01-02", "2026-01-03");
            let models = activity.spending_by_name(SpendingGroup::Models, days, 9);
            let models = models.await.unwrap();
            let told: Vec<_> = models
                .iter()
                .map(|one| (one.name.as_str(), one.spent.tokens, one.today.nanodollars))
                .collect();
            assert_eq!(told, [("n", 80, 80), ("m", 20, 20)]);
            let first = activity.spending_by_name(SpendingGroup::Models, days, 1);
            assert_eq!(first.await.unwrap().len(), 1);
            let people = activity.spending_by_name(SpendingGroup::People, days, 9);
            assert_eq!(people.await.unwrap(), []);
            let by_day = activity.spending_by_day(days.0, days.1).await.unwrap();
            let told: Vec<_> = by_day
                .iter()
                .map(|one| (one.name.as_str(), one.spent.tokens, one.today.tokens))
                .collect();
            assert_eq!(told, [("2026-01-03", 5, 5), ("2026-01-02", 5, 0)]);
        }
    }
}
