//! Questions to people, and what came of them.
//!
//! Of several answers the first wins, in one statement, whichever process it comes from. A yes is
//! spent in one statement as well: what it allows runs once.

mod grants;
mod notices;
mod request;

use hermetic_types::{ConversationKey, RequestId, Timestamp};

pub use notices::PromptNotice;
pub use request::{
    ApprovalRequest, ApprovalScope, GivenAnswer, NewRequest, RequestReply, RequestState,
    StoredSubject,
};

use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement, StatementResult};
use crate::{MessageRow, RowOwner, StoreError};
pub(crate) use request::request;

#[derive(Clone, Debug)]
pub struct ApprovalRows {
    database: Database,
}

/// What became of an answer.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum AnswerOutcome {
    /// It counts.
    First(ApprovalRequest),
    /// Somebody was faster, or time ran out.
    TooLate(ApprovalRequest),
    Unknown,
}

/// More than this many fresh names in a row are never taken.
const MOST_TRIES: usize = 16;

impl ApprovalRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Writes a question down and gives it a name.
    pub async fn open(&self, new: &NewRequest<'_>) -> Result<ApprovalRequest, StoreError> {
        let reasons = serde_json::to_string(new.reasons).unwrap_or_default();
        for _ in 0..MOST_TRIES {
            let insert = SqlStatement::new(
                "INSERT INTO approvals (id, subject, conversation, message, what, fingerprint,
                                        reasons, longest, asker, asked_at, expires_at, owner,
                                        about, state)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')
                 ON CONFLICT (id) DO NOTHING RETURNING *",
            )
            // Random and short, because a person types it. One that is taken is not inserted, and
            // the next is tried.
            .bind(RequestId::random().as_str())
            .bind(new.subject.column())
            .bind(new.conversation.as_str())
            .bind(new.message.map(|row| row.0))
            .bind(new.what)
            .bind(new.fingerprint)
            .bind(&reasons)
            .bind(new.longest.name())
            .bind(new.asker)
            .bind(new.asked_at.millis())
            .bind(new.expires_at.millis())
            .bind(self.database.gateway())
            .bind(new.subject.about());
            let doing = "write a question down";
            let terms = (OnDisk, Fail);
            let opened = self
                .database
                .returning(doing, terms, insert, request)
                .await?;
            if let Some(opened) = opened {
                return Ok(opened);
            }
        }
        Err(StoreError::while_doing("name a question")(
            DatabaseError::no_row(),
        ))
    }

    pub async fn find(&self, id: &RequestId) -> Result<Option<ApprovalRequest>, StoreError> {
        let query = SqlStatement::new("SELECT * FROM approvals WHERE id = ?").bind(id.as_str());
        self.database
            .read_first("read a question", query, request)
            .await
    }

    /// Questions of this owner that can still be answered, in the order they were asked.
    pub async fn pending(
        &self,
        owner: RowOwner,
        now: Timestamp,
    ) -> Result<Vec<ApprovalRequest>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM approvals
             WHERE state = 'pending' AND owner = coalesce(?, owner) AND expires_at > ?
             ORDER BY asked_at, rowid",
        )
        .bind(owner.filter(&self.database))
        .bind(now.millis());
        let doing = "read the questions that wait";
        self.database.read(doing, query, request).await
    }

    /// Questions about exactly this by the same person that wait, or that were answered with a yes
    /// since `answered_since` which nobody has used.
    pub async fn standing(
        &self,
        like: &NewRequest<'_>,
        answered_since: Timestamp,
    ) -> Result<Vec<ApprovalRequest>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM approvals
             WHERE conversation = ? AND subject = ? AND fingerprint = ? AND asker = ?
               AND (state = 'pending' AND expires_at > ?
                    OR state = 'approved' AND spent_at IS NULL AND answered_at >= ?)
             ORDER BY asked_at, rowid",
        )
        .bind(like.conversation.as_str())
        .bind(like.subject.column())
        .bind(like.fingerprint)
        .bind(like.asker)
        .bind(like.asked_at.millis())
        .bind(answered_since.millis());
        self.database
            .read("look for a standing question", query, request)
            .await
    }

    /// The last question that was asked while this message was worked on.
    pub async fn last_of(
        &self,
        message: MessageRow,
    ) -> Result<Option<ApprovalRequest>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM approvals WHERE message = ? ORDER BY asked_at DESC, rowid DESC LIMIT 1",
        )
        .bind(message.0);
        self.database
            .read_first("read a message's question", query, request)
            .await
    }

    /// The first answer wins; a yes for longer than once becomes a grant in the same moment. No yes is
    /// for longer than its question can take.
    pub async fn answer(
        &self,
        id: &RequestId,
        reply: RequestReply<'_>,
        now: Timestamp,
    ) -> Result<AnswerOutcome, StoreError> {
        let Some(asked) = self.find(id).await? else {
            return Ok(AnswerOutcome::Unknown);
        };
        let reply = RequestReply {
            // Cut here, below every way by which an answer comes: a button, a command in a chat and
            // the command line cannot differ in it.
            given: reply.given.at_most(asked.longest),
            ..reply
        };
        if let Some(won) = self.try_to_answer(id, reply, now).await? {
            return Ok(AnswerOutcome::First(won));
        }
        // If it was out of time the row says so from now on: whoever waits for it reads the same as
        // whoever answered. A question that was answered stays as it is.
        self.close(id, RequestState::Expired, now).await?;
        let found = self.find(id).await?;
        Ok(found.map_or(AnswerOutcome::Unknown, AnswerOutcome::TooLate))
    }

    async fn try_to_answer(
        &self,
        id: &RequestId,
        reply: RequestReply<'_>,
        now: Timestamp,
    ) -> Result<Option<ApprovalRequest>, StoreError> {
        let doing = "write an answer down";
        let answer = SqlStatement::new(
            "UPDATE approvals
             SET state = ?, scope = ?, answered_by = ?, via = ?, reason = ?, answered_at = ?
             WHERE id = ? AND state = 'pending' AND expires_at > ? RETURNING *",
        )
        .bind(reply.given.state().name())
        .bind(reply.given.scope().map(ApprovalScope::name))
        .bind(reply.by)
        .bind(reply.via)
        .bind(reply.reason)
        .bind(now.millis())
        .bind(id.as_str())
        .bind(now.millis());
        let grant = reply
            .given
            .scope()
            .and_then(|scope| grants::insert_if_won(id, scope, now));
        // In this order and with nothing between: the grant looks at whether the statement right
        // before it changed a row.
        let both = std::iter::once(answer).chain(grant).collect();
        let written = self.database.write(doing, (OnDisk, Fail), both).await?;
        written
            .first()
            .and_then(StatementResult::first_row)
            .map(request)
            .transpose()
            .map_err(StoreError::while_doing(doing))
    }

    /// Nobody answered in time, or nobody waits any more. `Expired` holds only once time is up.
    pub async fn close(
        &self,
        id: &RequestId,
        as_what: RequestState,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.database
            .change(
                "close a question",
                (OnDisk, Fail),
                SqlStatement::new(
                    "UPDATE approvals SET state = ?1, answered_at = ?2
             WHERE id = ?3 AND state = 'pending' AND (?1 <> 'expired' OR expires_at <= ?2)",
                )
                .bind(as_what.name())
                .bind(now.millis())
                .bind(id.as_str()),
            )
            .await
            .map(drop)
    }

    /// Closes every question of this gateway whose time is up: when it was asked was told by the same clock. Mostly
    /// there is none, and then nothing is written.
    pub async fn expire(&self, now: Timestamp) -> Result<(), StoreError> {
        let over = SqlStatement::new(
            "SELECT 1 FROM approvals WHERE state = 'pending' AND expires_at <= ? AND owner = ? LIMIT 1",
        )
        .bind(now.millis())
        .bind(self.database.gateway());
        let looking = "look for questions that are over";
        let over = self.database.read_first(looking, over, |_| Ok(()));
        if over.await?.is_none() {
            return Ok(());
        }
        self.database
            .change(
                "close questions",
                (Soon, Fail),
                SqlStatement::new(
                    "UPDATE approvals SET state = 'expired', answered_at = ?1
             WHERE state = 'pending' AND expires_at <= ?1 AND owner = ?2",
                )
                .bind(now.millis())
                .bind(self.database.gateway()),
            )
            .await
            .map(drop)
    }

    /// Uses a yes up, on the disk. Whoever gets `true` may run it, and nobody else does, ever.
    pub async fn spend(&self, id: &RequestId, now: Timestamp) -> Result<bool, StoreError> {
        let spend = SqlStatement::new(
            "UPDATE approvals SET spent_at = ?
             WHERE id = ? AND state = 'approved' AND spent_at IS NULL",
        )
        .bind(now.millis())
        .bind(id.as_str());
        // On the disk and not merely committed: after a power cut the same yes would allow the same
        // thing once more.
        let spent = self
            .database
            .change("use an answer", (OnDisk, Fail), spend)
            .await?;
        Ok(spent == 1)
    }

    /// Notes that the answer is in the audit record.
    pub async fn recorded(&self, id: &RequestId) -> Result<(), StoreError> {
        self.database
            .change(
                "note a recorded answer",
                (Soon, Fail),
                SqlStatement::new("UPDATE approvals SET recorded = 1 WHERE id = ?")
                    .bind(id.as_str()),
            )
            .await
            .map(drop)
    }

    /// Answers to this owner's questions that a crash kept out of the audit record.
    pub async fn unrecorded(&self, owner: RowOwner) -> Result<Vec<ApprovalRequest>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM approvals
             WHERE state <> 'pending' AND recorded = 0 AND owner = coalesce(?, owner)
             ORDER BY answered_at, rowid",
        )
        .bind(owner.filter(&self.database));
        let doing = "read unrecorded answers";
        self.database.read(doing, query, request).await
    }

    /// Forgets what was settled before that.
    pub async fn prune(&self, before: Timestamp) -> Result<(), StoreError> {
        self.database.change("forget old questions", (Soon, Fail), SqlStatement::new("DELETE FROM approvals WHERE state <> 'pending' AND recorded = 1 AND asked_at < ?").bind(before.millis())).await.map(drop)
    }

    /// How many questions of this conversation wait.
    pub async fn waiting_in(
        &self,
        conversation: &ConversationKey,
        now: Timestamp,
    ) -> Result<u32, StoreError> {
        let query = SqlStatement::new(
            "SELECT count(*) AS waiting FROM approvals
             WHERE state = 'pending' AND expires_at > ? AND conversation = ?",
        )
        .bind(now.millis())
        .bind(conversation.as_str());
        let waiting = |row: &DatabaseRow| row.get("waiting");
        self.database
            .read_only("count questions", query, waiting)
            .await
    }
}

#[cfg(test)]
#[path = "approvals/tests.rs"]
mod tests;
