//! Messages as they came, and how each of them ended.

use hermetic_types::{ConversationKey, Timestamp};

use crate::database::WithoutRoom::{Fail, Wait};
use crate::database::WriteDurability::{self, OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement, StatementResult};
use crate::leases::{OWN_LEASE, postgres_now};
use crate::shared_work::{NOBODY, WORK, is_at_work, postgres_next_holder, sqlite_next_holder};
use crate::{RowOwner, StoreError};

#[derive(Clone, Debug)]
pub struct InboxRows {
    database: Database,
}

/// The row of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageRow(pub i64);

/// A message that has no end yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenMessage {
    pub row: MessageRow,
    pub account: String,
    pub conversation: ConversationKey,
    pub payload: String,
    /// How often a turn was begun for it.
    pub attempts: u32,
    /// The message of ours in which the answer had begun to show.
    pub draft: Option<String>,
    pub received_at: Timestamp,
}

/// What became of a message that was written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedRow {
    /// It is this gateway's.
    Here {
        row: MessageRow,
        /// Messages of the same conversation that came before it and have no end yet, where another gateway may
        /// have taken one of them.
        earlier: Vec<MessageRow>,
    },
    /// Its conversation is served by another gateway, which was told.
    Elsewhere,
    /// It was there already: the platform sent it twice.
    Before,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageEnd {
    Answered,
    Refused,
    Failed,
}

/// Nobody, `?4`, is picked where the holder stays: it lives, or there is work to adopt.
macro_rules! picked_holder {
    ($next_holder:expr) => {
        concat!(
            "INSERT INTO conversation_holders (conversation, gateway, epoch) VALUES (?1, CASE
                 WHEN EXISTS (SELECT 1 FROM conversation_holders AS held
                              JOIN leases ON leases.name = ?3 || held.gateway WHERE held.conversation = ?1)
                     THEN ?4
                 WHEN ",
            is_at_work!(),
            " THEN ?4
                 ELSE coalesce(",
            $next_holder,
            ", ?2) END, 1)
             ON CONFLICT (conversation) DO UPDATE SET
                 gateway = CASE WHEN excluded.gateway = ?4 THEN conversation_holders.gateway
                           ELSE excluded.gateway END,
                 epoch = CASE WHEN excluded.gateway = ?4 THEN conversation_holders.epoch
                         ELSE conversation_holders.epoch + 1 END"
        )
    };
}

impl InboxRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Writes a message down, on the disk: the platform is told next that we have it. `None` if it was
    /// there already: the platform sent it twice.
    pub async fn accept(
        &self,
        account: &str,
        update_id: &str,
        conversation: &ConversationKey,
        payload: &str,
        now: Timestamp,
    ) -> Result<Option<MessageRow>, StoreError> {
        let insert = SqlStatement::new(
            "INSERT INTO inbox (account, update_id, conversation, payload, state, received_at, owner)
             VALUES (?, ?, ?, ?, 'accepted', ?, ?)
             ON CONFLICT (account, update_id) DO NOTHING RETURNING id",
        )
        .bind(account)
        .bind(update_id)
        .bind(conversation.as_str())
        .bind(payload)
        .bind(now.millis())
        .bind(self.database.gateway())
        // Whoever takes them up goes by their numbers.
        .in_line(conversation.as_str());
        let row = |row: &DatabaseRow| row.get(0).map(MessageRow);
        self.database
            // Fails where there is no room, instead of waiting: the platform keeps the message for
            // as long as it is not acknowledged, and has more room than we.
            .returning("write a message down", (OnDisk, Fail), insert, row)
            .await
    }

    /// The same where other gateways may serve beside this one: the message is written in the name of whoever
    /// serves its conversation, which is decided with the first of them.
    pub async fn accept_for_holder(
        &self,
        account: &str,
        update_id: &str,
        conversation: &ConversationKey,
        payload: &str,
        now: Timestamp,
    ) -> Result<AcceptedRow, StoreError> {
        if !self.database.is_served_together() {
            let row = self.accept(account, update_id, conversation, payload, now);
            let here = |row| AcceptedRow::Here {
                row,
                earlier: Vec::new(),
            };
            return Ok(row.await?.map_or(AcceptedRow::Before, here));
        }
        let own = self.database.gateway();
        let insert = SqlStatement::new(
            "INSERT INTO inbox (account, update_id, conversation, payload, state, received_at, owner)
             VALUES (?1, ?2, ?3, ?4, 'accepted', ?5,
                     (SELECT gateway FROM conversation_holders WHERE conversation = ?3))
             ON CONFLICT (account, update_id) DO NOTHING RETURNING id, owner",
        )
        .bind(account)
        .bind(update_id)
        .bind(conversation.as_str())
        .bind(payload)
        .bind(now.millis());
        let earlier = SqlStatement::new(
            "SELECT id FROM inbox WHERE conversation = ?1 AND state IN ('accepted', 'working')
             AND id < (SELECT id FROM inbox WHERE account = ?2 AND update_id = ?3)",
        )
        .bind(conversation.as_str())
        .bind(account)
        .bind(update_id);
        let tell = SqlStatement::for_each(
            "SELECT ?1 WHERE ?2 <> ?3 AND ?4 <> ''",
            "SELECT pg_notify(?1, owner) FROM inbox WHERE account = ?2 AND update_id = ?3 AND owner <> ?4",
        )
        .bind(WORK)
        .bind(account)
        .bind(update_id)
        .bind(own);
        // In this order: the holder's row is locked until the message is there, so that it cannot pass to another
        // gateway in between, and messages of one conversation are numbered one after the other.
        let statements = vec![self.held(conversation), insert, earlier, tell];
        let doing = "write a message down";
        let written = self
            .database
            .write(doing, (OnDisk, Fail), statements)
            .await?;
        accepted(&written, own).map_err(StoreError::while_doing(doing))
    }

    /// Finds who serves the conversation, or names somebody: with its first message, and where its holder is gone.
    /// Not while it has work that is to be adopted: what comes then goes the same way, behind it.
    fn held(&self, conversation: &ConversationKey) -> SqlStatement {
        SqlStatement::for_each(
            picked_holder!(sqlite_next_holder!()),
            picked_holder!(postgres_next_holder!("?1")),
        )
        .bind(conversation.as_str())
        .bind(self.database.gateway())
        .bind(OWN_LEASE)
        .bind(NOBODY)
        .in_line(conversation.as_str())
    }

    /// Other words for a message whose turn has not come: who wrote it changed it. On the disk, because
    /// the platform is told next that we have them.
    pub async fn rewrite(&self, row: MessageRow, payload: &str) -> Result<(), StoreError> {
        let update =
            SqlStatement::new("UPDATE inbox SET payload = ? WHERE id = ? AND ended_at IS NULL")
                .bind(payload)
                .bind(row.0);
        self.database
            .change("write a change of a message down", (OnDisk, Fail), update)
            .await
            .map(drop)
    }

    /// Notes that a turn for it begins; the number of this attempt, from 1. Whatever the turn does
    /// outside is on the disk before, and this with it.
    pub async fn begin(&self, row: MessageRow) -> Result<u32, StoreError> {
        self.begin_within(row, Soon).await
    }

    /// The same for what must not happen twice and is written down nowhere else: on the disk before it
    /// happens.
    pub async fn begin_once(&self, row: MessageRow) -> Result<u32, StoreError> {
        self.begin_within(row, OnDisk).await
    }

    async fn begin_within(
        &self,
        row: MessageRow,
        durability: WriteDurability,
    ) -> Result<u32, StoreError> {
        let doing = "begin a message's turn";
        let update = SqlStatement::new(
            "UPDATE inbox SET state = 'working', attempts = attempts + 1 WHERE id = ?
             RETURNING attempts",
        )
        .bind(row.0);
        let terms = (durability, Wait);
        let attempts = |row: &DatabaseRow| row.get(0);
        let attempts = self.database.returning(doing, terms, update, attempts);
        let attempts = attempts.await?;
        attempts.ok_or_else(|| StoreError::while_doing(doing)(DatabaseError::no_row()))
    }

    /// Notes in which message of ours the answer grows.
    pub async fn note_draft(&self, row: MessageRow, draft: &str) -> Result<(), StoreError> {
        self.database
            .change(
                // The platform shows it already. The turn that goes on after a power cut has to
                // find it, or the person would see a second one beside it.
                "note a draft",
                (OnDisk, Fail),
                SqlStatement::new("UPDATE inbox SET draft = ? WHERE id = ?")
                    .bind(draft)
                    .bind(row.0),
            )
            .await
            .map(drop)
    }

    pub async fn end(
        &self,
        row: MessageRow,
        end: MessageEnd,
        note: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let ended = ended(row, end, note, now);
        self.database
            .change("note how a message ended", (Soon, Wait), ended)
            .await
            .map(drop)
    }

    /// This owner's messages without an end, in the order they came.
    pub async fn open(&self, owner: RowOwner) -> Result<Vec<OpenMessage>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM inbox
             WHERE state IN ('accepted', 'working') AND owner = coalesce(?, owner) ORDER BY id",
        )
        .bind(owner.filter(&self.database));
        let doing = "read the open messages";
        self.database.read(doing, query, open).await
    }

    /// Takes an attempt back: the turn was left waiting for a person, or to another gateway, and nothing went wrong
    /// with it. One stays, which says that the message was begun.
    pub async fn take_back_attempt(&self, row: MessageRow) -> Result<(), StoreError> {
        let statement = SqlStatement::new(
            "UPDATE inbox SET attempts = CASE WHEN attempts > 1 THEN attempts - 1 ELSE 1 END
             WHERE id = ? AND ended_at IS NULL",
        );
        self.database
            .change("take an attempt back", (Soon, Fail), statement.bind(row.0))
            .await
            .map(drop)
    }

    /// Strikes out messages that ended before `before`, with their deliveries and tool calls.
    pub async fn prune(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.database
            .change(
                "strike out old messages",
                (Soon, Fail),
                SqlStatement::new("DELETE FROM inbox WHERE ended_at < ?").bind(before.millis()),
            )
            .await
    }
}

impl MessageEnd {
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

pub(crate) fn ended(
    row: MessageRow,
    end: MessageEnd,
    note: Option<&str>,
    now: Timestamp,
) -> SqlStatement {
    SqlStatement::new("UPDATE inbox SET state = ?, note = ?, ended_at = ? WHERE id = ?")
        .bind(end.name())
        .bind(note)
        .bind(now.millis())
        .bind(row.0)
}

/// What the statements of [`InboxRows::accept_for_holder`] wrote.
fn accepted(written: &[StatementResult], own: &str) -> Result<AcceptedRow, DatabaseError> {
    let Some(row) = written.get(1).and_then(StatementResult::first_row) else {
        return Ok(AcceptedRow::Before);
    };
    if row.get::<String>("owner")? != own {
        return Ok(AcceptedRow::Elsewhere);
    }
    let earlier = written.get(2).map_or(&[][..], StatementResult::rows);
    let earlier = earlier.iter().map(|row| row.get(0).map(MessageRow));
    Ok(AcceptedRow::Here {
        row: MessageRow(row.get("id")?),
        earlier: earlier.collect::<Result<_, _>>()?,
    })
}

pub(crate) fn open(row: &DatabaseRow) -> Result<OpenMessage, DatabaseError> {
    Ok(OpenMessage {
        row: MessageRow(row.get("id")?),
        account: row.get("account")?,
        conversation: ConversationKey::new(row.get::<String>("conversation")?),
        payload: row.get("payload")?,
        attempts: row.get("attempts")?,
        draft: row.get("draft")?,
        received_at: row.moment("received_at")?,
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn a_message_sent_twice_is_one_and_open_until_it_ends() {
        for database in TestDatabase::each().await {
            let inbox = database.open().await.unwrap().inbox();
            let (key, now) = (ConversationKey::new("k"), Timestamp::from_millis(5));
            let row = inbox
                .accept("telegram", "7", &key, "{}", now)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(
                inbox
                    .accept("telegram", "7", &key, "{}", now)
                    .await
                    .unwrap(),
                None
            );
            assert_eq!(inbox.begin(row).await.unwrap(), 1);
            assert_eq!(inbox.begin(row).await.unwrap(), 2);
            inbox.note_draft(row, "118").await.unwrap();
            assert_eq!(
                inbox.open(RowOwner::ThisGateway).await.unwrap()[0]
                    .draft
                    .as_deref(),
                Some("118")
            );
            inbox
                .end(row, MessageEnd::Answered, None, now)
                .await
                .unwrap();
            assert_eq!(inbox.open(RowOwner::ThisGateway).await.unwrap(), []);
            assert_eq!(inbox.prune(Timestamp::from_millis(6)).await.unwrap(), 1);
        }
    }

    /// They are taken up by their numbers, so those of one conversation have to be in the order in which they came,
    /// however many connections write.
    #[tokio::test]
    async fn messages_of_a_conversation_are_numbered_as_they_came() {
        for database in TestDatabase::each().await {
            let inbox = database.open().await.unwrap().inbox();
            let (one, two) = (ConversationKey::new("one"), ConversationKey::new("two"));
            let now = Timestamp::from_millis(5);
            let updates: Vec<_> = (0..200).map(|update| update.to_string()).collect();
            let accepting = updates.iter().enumerate().map(|(count, update)| {
                let key = if count % 7 == 0 { &two } else { &one };
                inbox.accept("telegram", update, key, update, now)
            });
            for accepted in futures::future::join_all(accepting).await {
                assert!(accepted.unwrap().is_some());
            }
            let open = inbox.open(RowOwner::ThisGateway).await.unwrap();
            for key in [&one, &two] {
                let of_it = open.iter().filter(|message| message.conversation == *key);
                let came: Vec<u32> = of_it
                    .map(|message| message.payload.parse().unwrap())
                    .collect();
                assert!(came.is_sorted(), "{came:?}");
            }
        }
    }
}
