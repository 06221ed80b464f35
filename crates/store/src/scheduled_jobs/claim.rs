//! A moment of a job, claimed.

use hermetic_types::{ConversationKey, JobId, Timestamp};

use super::{RunKind, ScheduledJobs};
use crate::database::SqlStatement;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::OnDisk;
use crate::{MessageRow, StoreError};

/// A moment that is about to be run, and the message that it becomes.
#[derive(Clone, Copy, Debug)]
pub struct TickClaim<'a> {
    pub job: &'a JobId,
    /// When it was due, or asked for.
    pub tick: Timestamp,
    pub how: RunKind,
    /// The moment after it; none if this is the last.
    pub next_at: Option<Timestamp>,
    pub account: &'a str,
    pub update: &'a str,
    pub conversation: &'a ConversationKey,
    pub payload: &'a str,
    /// Runs that may be open at once, this one among them.
    pub most_open: u32,
}

/// A moment that is not run.
#[derive(Clone, Copy, Debug)]
pub struct SkippedTick<'a> {
    pub job: &'a JobId,
    pub tick: Timestamp,
    pub next_at: Option<Timestamp>,
    /// Why not.
    pub note: &'a str,
}

impl ScheduledJobs {
    /// Claims a moment. `None`, and nothing runs, if it was claimed before, if the job is not due then any
    /// more, if a run of it is still open, or if as many runs are open as may be: other gateways claim, too. On the disk when this returns: what is handed over next has
    /// happened.
    pub async fn claim(
        &self,
        claim: TickClaim<'_>,
        now: Timestamp,
    ) -> Result<Option<MessageRow>, StoreError> {
        // The row of the run first, because the other three look for it: where the moment is not
        // free no message is made, and `None` comes out.
        let statements = vec![
            claimed(claim, now),
            self.message(claim, now),
            noted(claim),
            moved_on(claim),
        ];
        let doing = "claim a job's moment";
        let written = self.database.write(doing, (OnDisk, Fail), statements);
        let written = written.await?;
        let message = written.get(1).and_then(|result| result.first_row());
        let row = message.map(|row| row.get(0).map(MessageRow)).transpose();
        row.map_err(StoreError::while_doing(doing))
    }

    /// Writes down that a moment is not run, and moves on; whether it was still due.
    pub async fn skip(&self, skipped: SkippedTick<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let run = SqlStatement::new(
            "INSERT INTO scheduled_runs (job, tick, how, state, note, claimed_at, ended_at)
             SELECT id, ?, 'schedule', 'missed', ?, ?, ? FROM scheduled_jobs
             WHERE id = ? AND state = 'scheduled' AND next_at = ? ON CONFLICT DO NOTHING",
        )
        .bind(skipped.tick.millis())
        .bind(skipped.note)
        .bind(now.millis())
        .bind(now.millis())
        .bind(skipped.job.as_str())
        .bind(skipped.tick.millis());
        let job = SqlStatement::new(
            "UPDATE scheduled_jobs
             SET next_at = ?, state = CASE WHEN ? IS NULL THEN 'ended' ELSE state END,
                 why = CASE WHEN ? IS NULL THEN 'missed' ELSE why END
             WHERE id = ? AND state = 'scheduled' AND next_at = ?",
        )
        .bind(skipped.next_at.map(Timestamp::millis))
        .bind(skipped.next_at.map(Timestamp::millis))
        .bind(skipped.next_at.map(Timestamp::millis))
        .bind(skipped.job.as_str())
        .bind(skipped.tick.millis());
        let doing = "write down that a job was missed";
        let written = self.database.write(doing, (OnDisk, Fail), vec![run, job]);
        let written = written.await?;
        Ok(written.get(1).is_some_and(|result| result.affected() > 0))
    }

    fn message(&self, claim: TickClaim<'_>, now: Timestamp) -> SqlStatement {
        SqlStatement::new(
            "INSERT INTO inbox (account, update_id, conversation, payload, state, received_at, owner)
             SELECT ?, ?, ?, ?, 'accepted', ?, ? FROM scheduled_runs
             WHERE job = ? AND tick = ? AND how = ? AND message IS NULL AND ended_at IS NULL
             ON CONFLICT (account, update_id) DO NOTHING RETURNING id",
        )
        .bind(claim.account)
        .bind(claim.update)
        .bind(claim.conversation.as_str())
        .bind(claim.payload)
        .bind(now.millis())
        .bind(self.database.gateway())
        .bind(claim.job.as_str())
        .bind(claim.tick.millis())
        .bind(claim.how.name())
    }
}

/// The row that keeps a moment from being run twice.
fn claimed(claim: TickClaim<'_>, now: Timestamp) -> SqlStatement {
    SqlStatement::new(
        "INSERT INTO scheduled_runs (job, tick, how, state, claimed_at)
         SELECT id, ?, ?, 'running', ? FROM scheduled_jobs
         WHERE id = ? AND state = 'scheduled'
           AND CASE ? WHEN 'asked' THEN requested ELSE next_at END = ?
           AND NOT EXISTS (SELECT 1 FROM scheduled_runs WHERE job = scheduled_jobs.id AND ended_at IS NULL)
           AND (SELECT count(*) FROM scheduled_runs WHERE ended_at IS NULL) < ?
         ON CONFLICT DO NOTHING",
    )
    .bind(claim.tick.millis())
    .bind(claim.how.name())
    .bind(now.millis())
    .bind(claim.job.as_str())
    .bind(claim.how.name())
    .bind(claim.tick.millis())
    .bind(claim.most_open)
    .alone_in("scheduled_runs")
}

fn noted(claim: TickClaim<'_>) -> SqlStatement {
    SqlStatement::new(
        "UPDATE scheduled_runs
         SET message = (SELECT id FROM inbox WHERE account = ? AND update_id = ?)
         WHERE job = ? AND tick = ? AND how = ? AND message IS NULL AND ended_at IS NULL",
    )
    .bind(claim.account)
    .bind(claim.update)
    .bind(claim.job.as_str())
    .bind(claim.tick.millis())
    .bind(claim.how.name())
}

/// A moment that was claimed before is left behind, too. One that a run before it keeps waiting is not.
fn moved_on(claim: TickClaim<'_>) -> SqlStatement {
    let next = claim.next_at.map(Timestamp::millis);
    let sql = match claim.how {
        RunKind::Asked => {
            "UPDATE scheduled_jobs SET requested = NULL
             WHERE id = ? AND requested = ?
               AND EXISTS (SELECT 1 FROM scheduled_runs WHERE job = ? AND tick = ? AND how = ?)"
        }
        RunKind::Schedule => {
            "UPDATE scheduled_jobs
             SET next_at = CASE WHEN runs_left = 1 THEN NULL ELSE ?6 END,
                 state = CASE WHEN runs_left = 1 OR ?6 IS NULL THEN 'ended' ELSE state END,
                 why = CASE WHEN runs_left = 1 OR ?6 IS NULL THEN 'done' ELSE why END,
                 runs_left = runs_left - 1
             WHERE id = ?1 AND state = 'scheduled' AND next_at = ?2
               AND EXISTS (SELECT 1 FROM scheduled_runs WHERE job = ?3 AND tick = ?4 AND how = ?5)"
        }
    };
    let statement = SqlStatement::new(sql)
        .bind(claim.job.as_str())
        .bind(claim.tick.millis())
        .bind(claim.job.as_str())
        .bind(claim.tick.millis())
        .bind(claim.how.name());
    match claim.how {
        RunKind::Asked => statement,
        RunKind::Schedule => statement.bind(next),
    }
}
