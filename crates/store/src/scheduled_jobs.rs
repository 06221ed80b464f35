//! Work that is due at a time, and each moment at which it was.
//!
//! A moment is claimed before anything runs: in one commit its row is written, the job is told its next
//! moment, and the message that it becomes is put into the inbox. Whatever kills the gateway, the moment was
//! not claimed and is still due, or its message is found by the next start like any other.

mod claim;
mod runs;

use hermetic_types::{JobId, Timestamp};

pub use claim::{SkippedTick, TickClaim};
pub use runs::{EndedRun, RunEnd, RunKind, RunRow};

use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement};
use crate::{RowOwner, StoreError};

#[derive(Clone, Debug)]
pub struct ScheduledJobs {
    database: Database,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledJob {
    pub id: JobId,
    /// `platform:user`, whose rights and budgets count.
    pub person: String,
    pub name: String,
    pub prompt: String,
    /// What each run is given besides.
    pub terms: JobTerms,
    /// As its crate writes it; the store does not look inside.
    pub schedule: String,
    /// The message it was made by, without its words.
    pub origin: String,
    pub deliver: String,
    /// Runs that are left; forever if `None`.
    pub runs_left: Option<u32>,
    pub state: JobState,
    /// Why it is paused or ended.
    pub why: Option<String>,
    pub next_at: Option<Timestamp>,
    /// Somebody asked for a run now.
    pub requested: Option<Timestamp>,
    /// Runs in a row that failed.
    pub failures: u32,
    pub made_at: Timestamp,
}

/// What each run of a job is given besides its prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobTerms {
    /// Names of skills, which the run is told to follow.
    pub skills: Vec<String>,
    /// The model that answers; the usual one if `None`.
    pub model: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    Scheduled,
    Paused,
    /// It has no next moment.
    Ended,
}

/// How many jobs there may be that are not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobBounds {
    pub of_person: u32,
    pub of_all: u32,
}

/// Ended jobs that are kept of one person, to be looked at. Older ones are withdrawn when a new job is made.
const ENDED_KEPT: u32 = 50;

/// Written as the reason of a job that is gone for everybody, and whose sandbox may still be there.
const WITHDRAWN: &str = "withdrawn";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddOutcome {
    Added,
    TooManyOfPerson,
    TooManyOfAll,
}

/// What a job shall be from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEdit {
    pub name: String,
    pub prompt: String,
    pub terms: JobTerms,
    pub schedule: String,
    pub deliver: String,
    pub runs_left: Option<u32>,
    /// Its next moment, where it is not paused.
    pub next_at: Option<Timestamp>,
    pub made_at: Timestamp,
}

impl ScheduledJobs {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Writes a new job down, if there is room for it. Counted and written in one statement, so that many at
    /// once do not exceed a bound.
    pub async fn add(
        &self,
        job: &ScheduledJob,
        bounds: JobBounds,
    ) -> Result<AddOutcome, StoreError> {
        let insert = SqlStatement::new(
            "INSERT INTO scheduled_jobs (id, owner, person, name, prompt, skills, model, schedule, origin, deliver,
                                         runs_left, state, why, next_at, made_at)
             SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
             WHERE (SELECT count(*) FROM scheduled_jobs WHERE person = ? AND state <> 'ended') < ?
               AND (SELECT count(*) FROM scheduled_jobs WHERE state <> 'ended') < ?",
        )
        .bind(job.id.as_str())
        .bind(self.database.gateway())
        .bind(&job.person)
        .bind(&job.name)
        .bind(&job.prompt)
        .bind(job.terms.skills_row().as_deref())
        .bind(job.terms.model.as_ref())
        .bind(&job.schedule)
        .bind(&job.origin)
        .bind(&job.deliver)
        .bind(job.runs_left)
        .bind(job.state.name())
        .bind(job.why.as_ref())
        .bind(job.next_at.map(Timestamp::millis))
        .bind(job.made_at.millis())
        .bind(&job.person)
        .bind(bounds.of_person)
        .bind(bounds.of_all)
        .alone_in("scheduled_jobs");
        let doing = "write a job down";
        if self.database.change(doing, (OnDisk, Fail), insert).await? > 0 {
            // Behind the new one and in a write of its own: if it fails, some old jobs stay until
            // the next is made.
            self.withdraw_old(&job.person).await?;
            return Ok(AddOutcome::Added);
        }
        let own = self.of_person(&job.person).await?;
        let open = own.iter().filter(|job| job.state != JobState::Ended);
        Ok(match open.count() >= bounds.of_person as usize {
            true => AddOutcome::TooManyOfPerson,
            false => AddOutcome::TooManyOfAll,
        })
    }

    pub async fn find(&self, id: &JobId) -> Result<Option<ScheduledJob>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM scheduled_jobs WHERE id = ? AND coalesce(why, '') <> ?",
        );
        let query = query.bind(id.as_str()).bind(WITHDRAWN);
        self.database.read_first("read a job", query, job).await
    }

    /// The jobs of one person, the oldest first.
    pub async fn of_person(&self, person: &str) -> Result<Vec<ScheduledJob>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM scheduled_jobs WHERE person = ? AND coalesce(why, '') <> ?
             ORDER BY made_at, id",
        );
        let query = query.bind(person).bind(WITHDRAWN);
        let doing = "read a person's jobs";
        self.database.read(doing, query, job).await
    }

    /// All of this owner's, the oldest first.
    pub async fn all(&self, owner: RowOwner) -> Result<Vec<ScheduledJob>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM scheduled_jobs
             WHERE owner = coalesce(?, owner) AND coalesce(why, '') <> ? ORDER BY made_at, id",
        )
        .bind(owner.filter(&self.database))
        .bind(WITHDRAWN);
        self.database.read("read the jobs", query, job).await
    }

    /// This gateway's jobs that are due, those that wait longest first, at most `most`.
    pub async fn due(&self, now: Timestamp, most: u32) -> Result<Vec<ScheduledJob>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM scheduled_jobs
             WHERE owner = ? AND state = 'scheduled' AND (next_at <= ? OR requested IS NOT NULL)
             ORDER BY coalesce(requested, next_at), id LIMIT ?",
        )
        .bind(self.database.gateway())
        .bind(now.millis())
        .bind(most);
        self.database.read("read the jobs due", query, job).await
    }

    /// The next moment of any job of this gateway.
    pub async fn next_moment(&self) -> Result<Option<Timestamp>, StoreError> {
        let query = SqlStatement::new(
            "SELECT min(next_at) AS next_at FROM scheduled_jobs WHERE owner = ? AND state = 'scheduled'",
        )
        .bind(self.database.gateway());
        let next = |row: &DatabaseRow| row.maybe_moment("next_at");
        self.database
            .read_only("read the next moment", query, next)
            .await
    }

    /// Gives a job other terms; whether there is one that has not ended. A paused one stays paused.
    pub async fn edit(&self, id: &JobId, edit: &JobEdit) -> Result<bool, StoreError> {
        let update = SqlStatement::new(
            "UPDATE scheduled_jobs
             SET name = ?, prompt = ?, skills = ?, model = ?, schedule = ?, deliver = ?, runs_left = ?, made_at = ?, failures = 0,
                 next_at = CASE state WHEN 'scheduled' THEN ? END
             WHERE id = ? AND state <> 'ended'",
        )
        .bind(&edit.name)
        .bind(&edit.prompt)
        .bind(edit.terms.skills_row().as_deref())
        .bind(edit.terms.model.as_ref())
        .bind(&edit.schedule)
        .bind(&edit.deliver)
        .bind(edit.runs_left)
        .bind(edit.made_at.millis())
        .bind(edit.next_at.map(Timestamp::millis))
        .bind(id.as_str());
        self.changes("change a job", update).await
    }

    /// It is not run until it is resumed; whether it was scheduled.
    pub async fn pause(&self, id: &JobId, why: Option<&str>) -> Result<bool, StoreError> {
        let update = SqlStatement::new(
            "UPDATE scheduled_jobs SET state = 'paused', why = ?, next_at = NULL, requested = NULL
             WHERE id = ? AND state = 'scheduled'",
        );
        self.changes("pause a job", update.bind(why).bind(id.as_str()))
            .await
    }

    /// It is run again, next at that moment; whether it was paused.
    pub async fn resume(&self, id: &JobId, next_at: Timestamp) -> Result<bool, StoreError> {
        let update = SqlStatement::new(
            "UPDATE scheduled_jobs SET state = 'scheduled', why = NULL, next_at = ?, failures = 0
             WHERE id = ? AND state = 'paused'",
        );
        let update = update.bind(next_at.millis()).bind(id.as_str());
        self.changes("resume a job", update).await
    }

    /// Asks for a run now; whether the job is scheduled. Two such wishes at once are one run.
    pub async fn request_run(&self, id: &JobId, now: Timestamp) -> Result<bool, StoreError> {
        let update = SqlStatement::new(
            "UPDATE scheduled_jobs SET requested = coalesce(requested, ?)
             WHERE id = ? AND state = 'scheduled'",
        );
        let update = update.bind(now.millis()).bind(id.as_str());
        self.changes("ask for a run of a job", update).await
    }

    /// Moves the next moment of a job whose clock was set back; whether it stood at `from`.
    pub async fn reschedule(
        &self,
        id: &JobId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = SqlStatement::new(
            // Only where it was when it was looked at: whoever claimed or changed the job meanwhile
            // knows better.
            "UPDATE scheduled_jobs SET next_at = ? WHERE id = ? AND state = 'scheduled' AND next_at = ?",
        );
        let update = update
            .bind(to.millis())
            .bind(id.as_str())
            .bind(from.millis());
        self.changes("move a job's next moment", update).await
    }

    /// Strikes a job out with all that is known of its runs; whether there was one.
    pub async fn remove(&self, id: &JobId) -> Result<bool, StoreError> {
        let delete = SqlStatement::new("DELETE FROM scheduled_jobs WHERE id = ?").bind(id.as_str());
        self.changes("strike a job out", delete).await
    }

    /// Ends a job for everybody, at once; whether there was one. Its row stays until the gateway that has its
    /// sandbox has destroyed that ([`Self::withdrawn`]): a row that is gone would leave the sandbox to nobody.
    pub async fn withdraw(&self, id: &JobId) -> Result<bool, StoreError> {
        let update = SqlStatement::new(
            "UPDATE scheduled_jobs SET state = 'ended', why = ?, next_at = NULL, requested = NULL
             WHERE id = ? AND coalesce(why, '') <> ?",
        );
        let update = update.bind(WITHDRAWN).bind(id.as_str()).bind(WITHDRAWN);
        self.changes("withdraw a job", update).await
    }

    /// This gateway's jobs that were withdrawn and are not struck out yet.
    pub async fn withdrawn(&self) -> Result<Vec<ScheduledJob>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM scheduled_jobs WHERE owner = ? AND why = ? ORDER BY made_at, id",
        )
        .bind(self.database.gateway())
        .bind(WITHDRAWN);
        let doing = "read the withdrawn jobs";
        self.database.read(doing, query, job).await
    }

    /// Time alone is no bound: whoever makes jobs that run once would fill the store in a day.
    async fn withdraw_old(&self, person: &str) -> Result<(), StoreError> {
        let update = SqlStatement::new(
            "UPDATE scheduled_jobs SET why = ?
             WHERE person = ? AND state = 'ended' AND coalesce(why, '') <> ?
               AND NOT EXISTS (SELECT 1 FROM scheduled_runs
                               WHERE job = scheduled_jobs.id AND ended_at IS NULL)
               AND id NOT IN (SELECT id FROM scheduled_jobs
                              WHERE person = ? AND state = 'ended' AND coalesce(why, '') <> ?
                              ORDER BY made_at DESC, id DESC LIMIT ?)",
        )
        .bind(WITHDRAWN)
        .bind(person)
        .bind(WITHDRAWN)
        .bind(person)
        .bind(WITHDRAWN)
        .bind(ENDED_KEPT);
        self.changes("withdraw old jobs", update).await.map(drop)
    }

    /// Strikes out jobs that ended before `before`, and all but the last `kept` runs of each.
    pub async fn prune(&self, before: Timestamp, kept: u32) -> Result<(), StoreError> {
        let statements = vec![
            SqlStatement::new(
                "DELETE FROM scheduled_jobs WHERE state = 'ended' AND coalesce(why, '') <> ? AND NOT EXISTS
                   (SELECT 1 FROM scheduled_runs
                    WHERE job = scheduled_jobs.id AND coalesce(ended_at, claimed_at) >= ?)",
            )
            .bind(WITHDRAWN)
            .bind(before.millis()),
            SqlStatement::new(
                "DELETE FROM scheduled_runs WHERE ended_at IS NOT NULL AND rowid NOT IN
                   (SELECT rowid FROM scheduled_runs AS kept
                    WHERE kept.job = scheduled_runs.job ORDER BY claimed_at DESC, tick DESC LIMIT ?)",
            )
            .bind(kept),
        ];
        self.database
            .write("strike out old runs", (Soon, Fail), statements)
            .await
            .map(drop)
    }

    async fn changes(&self, doing: &'static str, change: SqlStatement) -> Result<bool, StoreError> {
        let changed = self.database.change(doing, (OnDisk, Fail), change).await?;
        Ok(changed > 0)
    }
}

impl JobState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Paused => "paused",
            Self::Ended => "ended",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        let all = [Self::Scheduled, Self::Paused, Self::Ended];
        all.into_iter().find(|state| state.name() == name)
    }
}

impl JobTerms {
    fn skills_row(&self) -> Option<String> {
        let written = serde_json::to_string(&self.skills);
        written.ok().filter(|_| !self.skills.is_empty())
    }
}

fn skills(row: &DatabaseRow) -> Result<Vec<String>, DatabaseError> {
    let written: Option<String> = row.get("skills")?;
    let read = written.and_then(|written| serde_json::from_str(&written).ok());
    Ok(read.unwrap_or_default())
}

fn job(row: &DatabaseRow) -> Result<ScheduledJob, DatabaseError> {
    Ok(ScheduledJob {
        id: row.parsed("id", |text| text.parse().ok())?,
        person: row.get("person")?,
        name: row.get("name")?,
        prompt: row.get("prompt")?,
        terms: JobTerms {
            skills: skills(row)?,
            model: row.get("model")?,
        },
        schedule: row.get("schedule")?,
        origin: row.get("origin")?,
        deliver: row.get("deliver")?,
        runs_left: row.get("runs_left")?,
        state: row.parsed("state", JobState::of_name)?,
        why: row.get("why")?,
        next_at: row.maybe_moment("next_at")?,
        requested: row.maybe_moment("requested")?,
        failures: row.get("failures")?,
        made_at: row.moment("made_at")?,
    })
}

#[cfg(test)]
mod tests;
