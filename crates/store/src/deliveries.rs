//! Replies on their way out. None is lost; one that may have been sent before is marked so.

use hermetic_types::Timestamp;

use crate::database::WithoutRoom::Wait;
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement, StatementResult};
use crate::inbox;
use crate::{MessageEnd, MessageRow, RowOwner, StoreError};

#[derive(Clone, Debug)]
pub struct DeliveryRows {
    database: Database,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryRow(pub i64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    pub row: DeliveryRow,
    /// What it answers.
    pub message: Option<MessageRow>,
    pub account: String,
    pub address: String,
    pub text: String,
    pub attempts: u32,
    /// An earlier attempt began and nobody knows how it ended.
    pub maybe_sent: bool,
    pub queued_at: Timestamp,
}

/// How the one before ended.
#[derive(Clone, Copy, Debug)]
pub enum PartOutcome<'a> {
    Sent,
    Failed(&'a str),
}

/// One that takes the place of another.
#[derive(Clone, Debug)]
pub struct NextDelivery<'a> {
    pub account: &'a str,
    pub address: String,
    pub text: &'a str,
    pub tried: PriorAttempt,
}

/// Whether it was tried already, as a part of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorAttempt {
    Never,
    NotSent,
    MaybeSent,
}

impl DeliveryRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Writes the reply to a message down and how the message ended, both or neither.
    pub async fn queue_and_end(
        &self,
        message: MessageRow,
        end: MessageEnd,
        (account, address, text): (&str, &str, &str),
        now: Timestamp,
    ) -> Result<DeliveryRow, StoreError> {
        let reply = self.insert(Some(message), (account, address, text), now);
        // Not on the disk by itself: `begin`, which comes before the first byte leaves, brings this
        // there as well.
        let both = vec![reply, inbox::ended(message, end, None, now)];
        let doing = "queue a reply";
        let written = self.database.write(doing, (Soon, Wait), both).await?;
        written
            .first()
            .ok_or_else(DatabaseError::no_row)
            .and_then(row_of)
            .map_err(StoreError::while_doing(doing))
    }

    /// Writes a notice down that answers no message.
    pub async fn queue(
        &self,
        (account, address, text): (&str, &str, &str),
        now: Timestamp,
    ) -> Result<DeliveryRow, StoreError> {
        let doing = "queue a notice";
        // On the disk at once, unlike a reply: nothing else would lead to it again.
        let notice = vec![self.insert(None, (account, address, text), now)];
        let written = self.database.write(doing, (OnDisk, Wait), notice).await?;
        written
            .first()
            .ok_or_else(DatabaseError::no_row)
            .and_then(row_of)
            .map_err(StoreError::while_doing(doing))
    }

    /// Ends one reply and writes down what takes its place, all or nothing: a restart in between would
    /// send both.
    pub async fn hand_over(
        &self,
        row: DeliveryRow,
        handed: &PartOutcome<'_>,
        next: &[NextDelivery<'_>],
        now: Timestamp,
    ) -> Result<Vec<DeliveryRow>, StoreError> {
        let doing = "hand a reply over";
        let end = match handed {
            PartOutcome::Sent => {
                SqlStatement::new("UPDATE deliveries SET state = 'sent', sent_at = ? WHERE id = ?")
                    .bind(now.millis())
                    .bind(row.0)
            }
            PartOutcome::Failed(note) => {
                SqlStatement::new("UPDATE deliveries SET state = 'failed', note = ? WHERE id = ?")
                    .bind(*note)
                    .bind(row.0)
            }
        };
        let mut all = vec![end];
        all.extend(next.iter().map(|next| self.insert_next(row, next, now)));
        let written = self.database.write(doing, (OnDisk, Wait), all).await?;
        written
            .iter()
            .skip(1)
            .map(row_of)
            .collect::<Result<_, _>>()
            .map_err(StoreError::while_doing(doing))
    }

    /// On the disk before anything is sent: found so after a crash or a power cut, it is sent again and
    /// marked. Everything that led to the reply is on the disk with it.
    pub async fn begin(&self, row: DeliveryRow) -> Result<(), StoreError> {
        self.database
            .change(
                "begin a delivery",
                (OnDisk, Wait),
                SqlStatement::new(
                    "UPDATE deliveries SET state = 'sending', attempts = attempts + 1 WHERE id = ?",
                )
                .bind(row.0),
            )
            .await
            .map(drop)
    }

    pub async fn sent(&self, row: DeliveryRow, now: Timestamp) -> Result<(), StoreError> {
        self.database
            .change(
                // Not on the disk at once: what a power cut takes of it is sent again, marked as
                // perhaps sent before.
                "note a delivery",
                (Soon, Wait),
                SqlStatement::new("UPDATE deliveries SET state = 'sent', sent_at = ? WHERE id = ?")
                    .bind(now.millis())
                    .bind(row.0),
            )
            .await
            .map(drop)
    }

    /// The platform took nothing: it may be tried again without being a duplicate.
    pub async fn put_back(&self, row: DeliveryRow, note: &str) -> Result<(), StoreError> {
        self.note(row, "pending", note).await
    }

    pub async fn failed(&self, row: DeliveryRow, note: &str) -> Result<(), StoreError> {
        self.note(row, "failed", note).await
    }

    /// The platform had taken it, and says later that it did not arrive. Whether it was one of this
    /// account that was taken for sent.
    pub async fn lost(
        &self,
        row: DeliveryRow,
        account: &str,
        note: &str,
    ) -> Result<bool, StoreError> {
        let update = SqlStatement::new(
            // Told from outside and late: of another account's row, or of one that is on its way
            // anew, it says nothing.
            "UPDATE deliveries SET state = 'failed', note = ?
             WHERE id = ? AND account = ? AND state = 'sent'",
        )
        .bind(note)
        .bind(row.0)
        .bind(account);
        let doing = "note a lost delivery";
        let changed = self.database.change(doing, (OnDisk, Wait), update).await?;
        Ok(changed > 0)
    }

    /// This owner's replies that were not seen to arrive, in the order they were written.
    pub async fn due(&self, owner: RowOwner) -> Result<Vec<DueDelivery>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM deliveries
             WHERE state IN ('pending', 'sending') AND owner = coalesce(?, owner) ORDER BY id",
        )
        .bind(owner.filter(&self.database));
        let doing = "read the replies that are due";
        self.database.read(doing, query, due).await
    }

    /// Whether a reply to this message was ever written.
    pub async fn any_for(&self, message: MessageRow) -> Result<bool, StoreError> {
        let query = SqlStatement::new("SELECT EXISTS (SELECT 1 FROM deliveries WHERE message = ?)")
            .bind(message.0);
        let exists = |row: &DatabaseRow| row.get(0);
        self.database
            .read_only("look for a reply", query, exists)
            .await
    }

    fn insert(
        &self,
        message: Option<MessageRow>,
        (account, address, text): (&str, &str, &str),
        now: Timestamp,
    ) -> SqlStatement {
        SqlStatement::new(
            "INSERT INTO deliveries (message, account, address, text, state, queued_at, owner)
             VALUES (?, ?, ?, ?, 'pending', ?, ?) RETURNING id",
        )
        .bind(message.map(|message| message.0))
        .bind(account)
        .bind(address)
        .bind(text)
        .bind(now.millis())
        .bind(self.database.gateway())
    }

    /// To the same message as the one before it.
    fn insert_next(
        &self,
        before: DeliveryRow,
        next: &NextDelivery<'_>,
        now: Timestamp,
    ) -> SqlStatement {
        let (state, attempts) = match next.tried {
            PriorAttempt::Never => ("pending", 0_u32),
            PriorAttempt::NotSent => ("pending", 1),
            PriorAttempt::MaybeSent => ("sending", 1),
        };
        SqlStatement::new(
            "INSERT INTO deliveries
                 (message, account, address, text, state, attempts, queued_at, owner)
             VALUES ((SELECT message FROM deliveries WHERE id = ?), ?, ?, ?, ?, ?, ?, ?)
             RETURNING id",
        )
        .bind(before.0)
        .bind(next.account)
        .bind(next.address.as_str())
        .bind(next.text)
        .bind(state)
        .bind(attempts)
        .bind(now.millis())
        .bind(self.database.gateway())
    }

    async fn note(&self, row: DeliveryRow, state: &str, note: &str) -> Result<(), StoreError> {
        self.database
            .change(
                "note a failed delivery",
                (Soon, Wait),
                SqlStatement::new("UPDATE deliveries SET state = ?, note = ? WHERE id = ?")
                    .bind(state)
                    .bind(note)
                    .bind(row.0),
            )
            .await
            .map(drop)
    }
}

/// The row that an insert has made.
fn row_of(insert: &StatementResult) -> Result<DeliveryRow, DatabaseError> {
    let row = insert.first_row().ok_or_else(DatabaseError::no_row)?;
    row.get(0).map(DeliveryRow)
}

pub(crate) fn due(row: &DatabaseRow) -> Result<DueDelivery, DatabaseError> {
    let state: String = row.get("state")?;
    Ok(DueDelivery {
        row: DeliveryRow(row.get("id")?),
        message: row.get::<Option<i64>>("message")?.map(MessageRow),
        account: row.get("account")?,
        address: row.get("address")?,
        text: row.get("text")?,
        attempts: row.get("attempts")?,
        maybe_sent: state == "sending",
        queued_at: row.moment("queued_at")?,
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn a_reply_cut_off_while_sending_comes_back_marked() {
        for database in TestDatabase::each().await {
            let store = database.open().await.unwrap();
            let deliveries = store.deliveries();
            let now = Timestamp::from_millis(1);
            let key = hermetic_types::ConversationKey::new("k");
            let accepted = store.inbox().accept("telegram", "1", &key, "{}", now).await;
            let message = accepted.unwrap().unwrap();
            let reply = ("telegram", "{}", "hi");
            let queued = deliveries.queue_and_end(message, MessageEnd::Answered, reply, now);
            let row = queued.await.unwrap();
            assert_eq!(store.inbox().open(RowOwner::ThisGateway).await.unwrap(), []);
            assert!(!deliveries.due(RowOwner::ThisGateway).await.unwrap()[0].maybe_sent);
            deliveries.begin(row).await.unwrap();
            assert!(deliveries.due(RowOwner::ThisGateway).await.unwrap()[0].maybe_sent);
            deliveries.put_back(row, "refused").await.unwrap();
            assert!(!deliveries.due(RowOwner::ThisGateway).await.unwrap()[0].maybe_sent);
            assert!(!deliveries.lost(row, "telegram", "gone").await.unwrap());
            deliveries.sent(row, now).await.unwrap();
            assert_eq!(deliveries.due(RowOwner::ThisGateway).await.unwrap(), []);
            // Told later, by the account that sent it, and once.
            assert!(!deliveries.lost(row, "discord", "gone").await.unwrap());
            assert!(deliveries.lost(row, "telegram", "gone").await.unwrap());
            assert!(!deliveries.lost(row, "telegram", "gone").await.unwrap());
            assert_eq!(deliveries.due(RowOwner::ThisGateway).await.unwrap(), []);
        }
    }
}
