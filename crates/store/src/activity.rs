//! What goes on in conversations, for whoever looks on. Nothing is written here.
//!
//! Every answer is bounded: by a number of rows, and by how much of a long text is read.

mod spending;
mod totals;

use hermetic_types::{ConversationKey, Timestamp};
use serde::Serialize;

use crate::approvals::request;
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement};
use crate::{ApprovalRequest, DeliveryRow, MessageRow, RowOwner, StoreError};
use totals::{postgres_total, sqlite_total};

pub use spending::{SpendingGroup, SpentSum};

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
    /// Its name among the calls of its message.
    pub call: String,
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
    pub row: DeliveryRow,
    pub message: Option<MessageRow>,
    /// Of the message that it answers.
    pub conversation: Option<ConversationKey>,
    pub account: String,
    /// As the gateway wrote it: where to, and with which files.
    pub address: String,
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

/// How much of a text is read, in characters.
const SHOWN_CHARS: u32 = 4000;

/// The conversations, the one that spoke last first.
macro_rules! conversations_by {
    ($total:ident) => {
        concat!(
            "SELECT inbox.conversation, account, payload, state, received_at, messages, open,
                    (SELECT ",
            $total!("tokens"),
            " FROM spending
                     WHERE scope = 'conversation' AND name = inbox.conversation AND day >= ?3)
                        AS tokens,
                    (SELECT ",
            $total!("nanodollars"),
            " FROM spending
                     WHERE scope = 'conversation' AND name = inbox.conversation AND day >= ?3)
                        AS nanodollars
             FROM (SELECT max(id) AS last, count(*) AS messages,
                          count(*) FILTER (WHERE state IN ('accepted', 'working')) AS open
                   FROM inbox GROUP BY conversation) AS each_one
             JOIN inbox ON inbox.id = last
             ORDER BY last DESC LIMIT ?1 OFFSET ?2",
        )
    };
}

/// Replies in these states, the latest first, with the conversations of what they answer.
macro_rules! deliveries_in {
    ($which:literal) => {
        SqlStatement::new(concat!(
            "SELECT deliveries.id AS id, message, conversation, deliveries.account AS account, address,
                    substr(text, 1, CAST(?1 AS INTEGER)) AS text, deliveries.state AS state,
                    deliveries.note AS note, deliveries.attempts AS attempts, queued_at, sent_at
             FROM deliveries LEFT JOIN inbox ON inbox.id = deliveries.message
             WHERE deliveries.state ",
            $which,
            " ORDER BY deliveries.id DESC LIMIT ?2",
        ))
    };
}

impl ActivityRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// The conversations, the latest first, with what they spent from a day on.
    ///
    /// They cannot be searched here: what is here is not redacted, and whoever may search it reads a secret
    /// letter by letter.
    pub async fn conversations(
        &self,
        from_day: &str,
        (most, skip): (u32, u32),
    ) -> Result<Vec<ConversationSummary>, StoreError> {
        let query = SqlStatement::for_each(
            conversations_by!(sqlite_total),
            conversations_by!(postgres_total),
        )
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
            "SELECT message, call, tool, substr(arguments, 1, CAST(?1 AS INTEGER)) AS arguments,
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
            "SELECT deliveries.id AS id, message, conversation, deliveries.account AS account, address,
                    substr(text, 1, CAST(?1 AS INTEGER)) AS text, deliveries.state AS state, deliveries.note AS note,
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

    /// Replies that wait to be sent, the latest first.
    pub async fn unsent(&self, most: u32) -> Result<Vec<DeliveryActivity>, StoreError> {
        let query = deliveries_in!("IN ('pending', 'sending')");
        let query = query.bind(SHOWN_CHARS).bind(most);
        let doing = "read the replies that wait";
        self.database.read(doing, query, delivery).await
    }

    /// Replies that were given up, the latest first.
    pub async fn given_up(&self, most: u32) -> Result<Vec<DeliveryActivity>, StoreError> {
        let query = deliveries_in!("= 'failed'").bind(SHOWN_CHARS).bind(most);
        let doing = "read the replies that were given up";
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
            "SELECT inbox.*, call, tool, substr(arguments, 1, CAST(?1 AS INTEGER)) AS arguments, NULL AS result,
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
                    call: row.get("call")?,
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
        call: row.get("call")?,
        tool: row.get("tool")?,
        arguments: row.get("arguments")?,
        result: row.get("result")?,
        result_chars: row.get("result_chars")?,
        begun_at: row.moment("begun_at")?,
        ended_at: row.maybe_moment("ended_at")?,
    })
}

fn delivery(row: &DatabaseRow) -> Result<DeliveryActivity, DatabaseError> {
    let conversation = row.get::<Option<String>>("conversation")?;
    Ok(DeliveryActivity {
        row: DeliveryRow(row.get("id")?),
        conversation: conversation.map(ConversationKey::new),
        address: row.get("address")?,
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
    use crate::MessageEnd;
    use crate::test_databases::TestDatabase;

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
            let ended = calls.end((rows[0], "c"), "done", (&a, "a line"), at(12));
            ended.await.unwrap();
            let failed = inbox.end(rows[0], MessageEnd::Failed, Some("why"), at(40));
            failed.await.unwrap();
            assert_eq!(activity.failures(5).await.unwrap()[0].row, rows[0]);
            let listed = activity.conversations("2026-01-01", (9, 0)).await.unwrap();
            let keys: Vec<_> = listed
                .iter()
                .map(|one| (one.conversation.as_str(), one.messages, one.open))
                .collect();
            assert_eq!(keys, [("a", 2, 1), ("b", 1, 1)]);
            let second = activity.conversations("2026-01-01", (9, 1)).await.unwrap();
            assert_eq!(second.len(), 1);
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
}
