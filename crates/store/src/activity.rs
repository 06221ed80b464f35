//! What goes on in conversations, for whoever looks on. Nothing is written here.
//!
//! Every answer is bounded: by a number of rows, and by how much of a long text is read.

use hermetic_types::{ConversationKey, Timestamp};
use serde::Serialize;

use crate::approvals::request;
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement};
use crate::{ApprovalRequest, MessageRow, RowOwner, SpendingAmounts, StoreError};

/// The rows of every conversation, to be read.
#[derive(Clone, Debug)]
pub struct ActivityRows {
    database: Database,
}

/// One conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConversationSummary {
    pub conversation: ConversationKey,
    pub account: String,
    /// The last message as the platform's crate wrote it.
    #[serde(skip)]
    pub payload: String,
    /// How the last message stands: `accepted`, `working`, `answered`, `refused` or `failed`.
    pub state: String,
    pub last_at: Timestamp,
    pub messages: i64,
    /// Messages without an end.
    pub open: i64,
    /// What it took from the day on that was asked about.
    pub tokens: i64,
    pub nanodollars: i64,
}

/// One message with all that became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageActivity {
    pub row: MessageRow,
    pub conversation: ConversationKey,
    pub account: String,
    pub payload: String,
    pub state: String,
    pub note: Option<String>,
    pub attempts: u32,
    pub received_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// One tool call, with the beginnings of what went in and came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallActivity {
    pub message: MessageRow,
    pub tool: String,
    pub arguments: String,
    pub result: Option<String>,
    /// How long the result is in characters, also where only its beginning was read.
    pub result_chars: i64,
    pub begun_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// One reply on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryActivity {
    pub message: Option<MessageRow>,
    pub account: String,
    pub text: String,
    pub state: String,
    pub note: Option<String>,
    pub attempts: u32,
    pub queued_at: Timestamp,
    pub sent_at: Option<Timestamp>,
}

/// A message that is worked on, and the tool call that runs for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTurn {
    pub message: MessageActivity,
    pub call: Option<CallActivity>,
}

/// What happened to the messages that came within one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HourActivity {
    /// Hours since 1970.
    pub hour: i64,
    pub messages: i64,
    pub failed: i64,
    /// From a message's arrival to its end.
    pub mean_ms: i64,
}

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

/// How much of a text is read, in characters.
const SHOWN_CHARS: u32 = 4000;

/// A sum that does not overflow: it is a fraction in between.
macro_rules! sqlite_total {
    ($what:literal) => {
        concat!("CAST(total(", $what, ") AS INTEGER)")
    };
}

/// The same where a sum has any number of digits.
macro_rules! postgres_total {
    ($what:literal) => {
        concat!(
            "CAST(least(greatest(coalesce(sum(",
            $what,
            "), 0), -9223372036854775807), 9223372036854775807) AS BIGINT)"
        )
    };
}

/// The conversations, the one that spoke last first.
macro_rules! conversations_by {
    ($total:ident, $find:literal) => {
        concat!(
            "SELECT inbox.conversation, account, payload, state, received_at, messages, open,
                    (SELECT ",
            $total!("tokens"),
            " FROM spending
                     WHERE scope = 'conversation' AND name = inbox.conversation AND day >= ?4)
                        AS tokens,
                    (SELECT ",
            $total!("nanodollars"),
            " FROM spending
                     WHERE scope = 'conversation' AND name = inbox.conversation AND day >= ?4)
                        AS nanodollars
             FROM (SELECT max(id) AS last, count(*) AS messages,
                          count(*) FILTER (WHERE state IN ('accepted', 'working')) AS open
                   FROM inbox GROUP BY conversation) AS each_one
             JOIN inbox ON inbox.id = last
             WHERE ?1 = '' OR ",
            $find,
            "(lower(inbox.conversation), lower(?1)) > 0
                OR ",
            $find,
            "(lower(payload), lower(?1)) > 0
             ORDER BY last DESC LIMIT ?2 OFFSET ?3",
        )
    };
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
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// The conversations whose key or last message holds `search`, the latest first, with what they spent
    /// from a day on.
    pub async fn conversations(
        &self,
        search: &str,
        from_day: &str,
        (most, skip): (u32, u32),
    ) -> Result<Vec<ConversationSummary>, StoreError> {
        let query = SqlStatement::for_each(
            conversations_by!(sqlite_total, "instr"),
            conversations_by!(postgres_total, "strpos"),
        )
        .bind(search)
        .bind(most)
        .bind(skip)
        .bind(from_day);
        let summary = |row: &DatabaseRow| {
            Ok(ConversationSummary {
                conversation: ConversationKey::new(row.get::<String>("conversation")?),
                account: row.get("account")?,
                payload: row.get("payload")?,
                state: row.get("state")?,
                last_at: row.moment("received_at")?,
                messages: row.get("messages")?,
                open: row.get("open")?,
                tokens: row.get("tokens")?,
                nanodollars: row.get("nanodollars")?,
            })
        };
        let doing = "list the conversations";
        self.database.read(doing, query, summary).await
    }

    /// How many conversations there are.
    pub async fn count(&self) -> Result<i64, StoreError> {
        let query = SqlStatement::new(
            "WITH RECURSIVE keys (key) AS (
                 SELECT min(conversation) FROM inbox
                 UNION ALL
                 SELECT (SELECT min(conversation) FROM inbox WHERE conversation > key)
                 FROM keys WHERE key IS NOT NULL)
             SELECT count(key) AS many FROM keys",
        );
        let many = |row: &DatabaseRow| row.get("many");
        let doing = "count the conversations";
        self.database.read_only(doing, query, many).await
    }

    /// The last messages of a conversation before `before`, the latest first.
    pub async fn messages(
        &self,
        conversation: &ConversationKey,
        before: Option<MessageRow>,
        most: u32,
    ) -> Result<Vec<MessageActivity>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM inbox WHERE conversation = ? AND id < coalesce(?, 9223372036854775807)
             ORDER BY id DESC LIMIT ?",
        )
        .bind(conversation.as_str())
        .bind(before.map(|row| row.0))
        .bind(most);
        let doing = "read a conversation's messages";
        self.database.read(doing, query, message).await
    }

    /// The tool calls of a conversation's messages from `first` to `last`, as they were begun.
    pub async fn calls(
        &self,
        conversation: &ConversationKey,
        (first, last): (MessageRow, MessageRow),
    ) -> Result<Vec<CallActivity>, StoreError> {
        let query = SqlStatement::new(
            "SELECT message, tool, substr(arguments, 1, CAST(?1 AS INTEGER)) AS arguments,
                    substr(result, 1, CAST(?1 AS INTEGER)) AS result, coalesce(length(result), 0) AS result_chars,
                    begun_at, tool_calls.ended_at AS ended_at
             FROM inbox JOIN tool_calls ON tool_calls.message = inbox.id
             WHERE conversation = ?2 AND inbox.id BETWEEN ?3 AND ?4
             ORDER BY begun_at, tool_calls.rowid LIMIT 500",
        )
        .bind(SHOWN_CHARS)
        .bind(conversation.as_str())
        .bind(first.0)
        .bind(last.0);
        let doing = "read a conversation's tool calls";
        self.database.read(doing, query, call).await
    }

    /// The replies to a conversation's messages from `first` to `last`.
    pub async fn deliveries(
        &self,
        conversation: &ConversationKey,
        (first, last): (MessageRow, MessageRow),
    ) -> Result<Vec<DeliveryActivity>, StoreError> {
        let query = SqlStatement::new(
            "SELECT message, deliveries.account AS account, substr(text, 1, CAST(?1 AS INTEGER)) AS text,
                    deliveries.state AS state, deliveries.note AS note,
                    deliveries.attempts AS attempts, queued_at, sent_at
             FROM inbox JOIN deliveries ON deliveries.message = inbox.id
             WHERE conversation = ?2 AND inbox.id BETWEEN ?3 AND ?4
             ORDER BY deliveries.id LIMIT 500",
        )
        .bind(SHOWN_CHARS)
        .bind(conversation.as_str())
        .bind(first.0)
        .bind(last.0);
        let doing = "read a conversation's replies";
        self.database.read(doing, query, delivery).await
    }

    /// Replies that were not sent, the latest first: those that wait and those that were given up.
    pub async fn unsent(&self, most: u32) -> Result<Vec<DeliveryActivity>, StoreError> {
        let query = SqlStatement::new(
            "SELECT message, account, substr(text, 1, CAST(?1 AS INTEGER)) AS text, state, note, attempts, queued_at,
                    sent_at
             FROM deliveries WHERE state IN ('pending', 'sending') ORDER BY id DESC LIMIT ?2",
        )
        .bind(SHOWN_CHARS)
        .bind(most);
        let doing = "read the replies that wait";
        self.database.read(doing, query, delivery).await
    }

    /// Questions about a conversation, or about all, the latest first.
    pub async fn questions(
        &self,
        conversation: Option<&ConversationKey>,
        most: u32,
    ) -> Result<Vec<ApprovalRequest>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM approvals WHERE conversation = coalesce(?, conversation)
             ORDER BY asked_at DESC, rowid DESC LIMIT ?",
        )
        .bind(conversation.map(ConversationKey::as_str))
        .bind(most);
        let doing = "read the questions that were asked";
        self.database.read(doing, query, request).await
    }

    /// What this owner's turns are doing, the longest at work first.
    pub async fn running(
        &self,
        owner: RowOwner,
        most: u32,
    ) -> Result<Vec<RunningTurn>, StoreError> {
        let query = SqlStatement::new(
            "SELECT inbox.*, tool, substr(arguments, 1, CAST(?1 AS INTEGER)) AS arguments, NULL AS result,
                    0 AS result_chars, begun_at, tool_calls.message AS message,
                    tool_calls.ended_at AS call_ended_at
             FROM inbox LEFT JOIN tool_calls ON tool_calls.rowid = (
                 SELECT rowid FROM tool_calls WHERE message = inbox.id AND ended_at IS NULL
                 ORDER BY begun_at DESC, rowid DESC LIMIT 1)
             WHERE state IN ('accepted', 'working') AND owner = coalesce(?2, owner)
             ORDER BY id LIMIT ?3",
        )
        .bind(SHOWN_CHARS)
        .bind(owner.filter(&self.database))
        .bind(most);
        let turn = |row: &DatabaseRow| {
            let called: Option<String> = row.get("tool")?;
            let call = called.map(|tool| {
                Ok::<_, DatabaseError>(CallActivity {
                    message: MessageRow(row.get("message")?),
                    tool,
                    arguments: row.get("arguments")?,
                    result: None,
                    result_chars: 0,
                    begun_at: row.moment("begun_at")?,
                    ended_at: None,
                })
            });
            Ok(RunningTurn {
                message: message(row)?,
                call: call.transpose()?,
            })
        };
        let doing = "read what is worked on";
        self.database.read(doing, query, turn).await
    }

    /// Messages that failed, the latest first.
    pub async fn failures(&self, most: u32) -> Result<Vec<MessageActivity>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM inbox WHERE state = 'failed' ORDER BY ended_at DESC LIMIT ?",
        )
        .bind(most);
        self.database.read("read what failed", query, message).await
    }

    /// The hours since then in which messages came, the earliest first.
    pub async fn hours(&self, since: Timestamp) -> Result<Vec<HourActivity>, StoreError> {
        let query = SqlStatement::new(
            "SELECT received_at / 3600000 AS hour, count(*) AS messages,
                    count(*) FILTER (WHERE state = 'failed') AS failed,
                    CAST(coalesce(avg(ended_at - received_at), 0) AS BIGINT) AS mean_ms
             FROM inbox WHERE received_at >= ? GROUP BY 1 ORDER BY 1",
        )
        .bind(since.millis());
        let hour = |row: &DatabaseRow| {
            Ok(HourActivity {
                hour: row.get("hour")?,
                messages: row.get("messages")?,
                failed: row.get("failed")?,
                mean_ms: row.get("mean_ms")?,
            })
        };
        let doing = "count messages by the hour";
        self.database.read(doing, query, hour).await
    }

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

fn message(row: &DatabaseRow) -> Result<MessageActivity, DatabaseError> {
    Ok(MessageActivity {
        row: MessageRow(row.get("id")?),
        conversation: ConversationKey::new(row.get::<String>("conversation")?),
        account: row.get("account")?,
        payload: row.get("payload")?,
        state: row.get("state")?,
        note: row.get("note")?,
        attempts: row.get("attempts")?,
        received_at: row.moment("received_at")?,
        ended_at: row.maybe_moment("ended_at")?,
    })
}

fn call(row: &DatabaseRow) -> Result<CallActivity, DatabaseError> {
    Ok(CallActivity {
        message: MessageRow(row.get("message")?),
        tool: row.get("tool")?,
        arguments: row.get("arguments")?,
        result: row.get("result")?,
        result_chars: row.get("result_chars")?,
        begun_at: row.moment("begun_at")?,
        ended_at: row.maybe_moment("ended_at")?,
    })
}

fn delivery(row: &DatabaseRow) -> Result<DeliveryActivity, DatabaseError> {
    Ok(DeliveryActivity {
        message: row.get::<Option<i64>>("message")?.map(MessageRow),
        account: row.get("account")?,
        text: row.get("text")?,
        state: row.get("state")?,
        note: row.get("note")?,
        attempts: row.get("attempts")?,
        queued_at: row.moment("queued_at")?,
        sent_at: row.maybe_moment("sent_at")?,
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;
    use crate::{MessageEnd, SpendingScope};

    #[tokio::test]
    async fn what_goes_on_is_seen_conversation_by_conversation() {
        for database in TestDatabase::each().await {
            let store = database.open().await.unwrap();
            let mut changes = store.changes();
            let at = |millis| Timestamp::from_millis(millis);
            let (a, b) = (ConversationKey::new("a"), ConversationKey::new("b"));
            let inbox = store.inbox();
            let mut rows = Vec::new();
            for (key, update, time) in [(&a, "1", 10), (&b, "2", 20), (&a, "3", 30)] {
                let accepted = inbox.accept("telegram", update, key, "{\"text\":\"Hi\"}", at(time));
                rows.push(accepted.await.unwrap().unwrap());
            }
            changes.changed().await.unwrap();
            inbox.begin(rows[0]).await.unwrap();
            let (calls, activity) = (store.tool_calls(), store.activity());
            calls
                .begin(rows[0], "c", "terminal", "{}", at(11))
                .await
                .unwrap();
            let running = activity.running(RowOwner::ThisGateway, 9).await.unwrap();
            assert_eq!(running.len(), 3);
            assert_eq!(running[0].call.as_ref().unwrap().tool, "terminal");
            assert_eq!(running[1].call, None);
            calls.end(rows[0], "c", "done", at(12)).await.unwrap();
            let failed = inbox.end(rows[0], MessageEnd::Failed, Some("why"), at(40));
            failed.await.unwrap();
            assert_eq!(activity.failures(5).await.unwrap()[0].row, rows[0]);
            let listed = activity
                .conversations("", "2026-01-01", (9, 0))
                .await
                .unwrap();
            let keys: Vec<_> = listed
                .iter()
                .map(|one| (one.conversation.as_str(), one.messages, one.open))
                .collect();
            assert_eq!(keys, [("a", 2, 1), ("b", 1, 1)]);
            let found = async |words| {
                let listed = activity.conversations(words, "2026-01-01", (9, 0)).await;
                listed.unwrap().len()
            };
            assert_eq!(found("hI").await, 2);
            assert_eq!(found("nobody").await, 0);
            assert_eq!(activity.count().await.unwrap(), 2);
            let messages = activity.messages(&a, None, 9).await.unwrap();
            assert_eq!(messages.len(), 2);
            let before = activity.messages(&a, Some(rows[2]), 9).await.unwrap();
            assert_eq!(before[0].row, rows[0]);
            let span = (rows[0], rows[2]);
            let called = activity.calls(&a, span).await.unwrap();
            assert_eq!(called[0].result.as_deref(), Some("done"));
            assert_eq!(activity.calls(&b, span).await.unwrap(), []);
            let hours = activity.hours(at(0)).await.unwrap();
            assert_eq!((hours[0].messages, hours[0].failed), (3, 1));
            assert_eq!(hours[0].mean_ms, 30);
        }
    }
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
