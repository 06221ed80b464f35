//! What became of each moment of a job.

use hermetic_types::{JobId, Timestamp};

use super::ScheduledJobs;
use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::Soon;
use crate::database::{DatabaseError, DatabaseRow, SqlStatement};

/// One moment of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    pub job: JobId,
    pub tick: Timestamp,
    pub how: RunKind,
    /// `None` while it runs.
    pub end: Option<RunEnd>,
    pub note: Option<String>,
    /// What the job said, redacted and cut.
    pub answer: Option<String>,
    pub claimed_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// Why a job ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// It was due.
    Schedule,
    /// Somebody asked for it.
    Asked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    Answered,
    /// There was nothing to report.
    Silent,
    Failed,
    /// Whoever made the job lost access before it ran.
    Refused,
    /// Nobody was there at its time.
    Missed,
    /// Its message is gone, so nobody knows.
    Lost,
}

/// A run that has come to its end, as it was told to the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRun {
    pub job: JobId,
    pub tick: Timestamp,
    pub end: RunEnd,
    pub note: Option<String>,
}

/// The note of a message that was answered by silence.
const SILENT: &str = "silent";

impl ScheduledJobs {
    /// How many runs of jobs are open, whosever they are: how many may be is a bound of all gateways together.
    pub async fn running(&self) -> Result<u32, StoreError> {
        let query = SqlStatement::new("SELECT count(*) FROM scheduled_runs WHERE ended_at IS NULL");
        let count = |row: &DatabaseRow| row.get(0);
        self.database
            .read_only("count the runs of jobs", query, count)
            .await
    }

    /// Whether a run of this job is open.
    pub async fn is_running(&self, job: &JobId) -> Result<bool, StoreError> {
        let query =
            SqlStatement::new("SELECT 1 FROM scheduled_runs WHERE job = ? AND ended_at IS NULL");
        let found =
            self.database
                .read_first("look for a run", query.bind(job.as_str()), |_| Ok(()));
        Ok(found.await?.is_some())
    }

    /// Whether this moment was claimed or skipped.
    pub async fn knows_tick(&self, job: &JobId, tick: Timestamp) -> Result<bool, StoreError> {
        let query = SqlStatement::new(
            "SELECT 1 FROM scheduled_runs WHERE job = ? AND tick = ? AND how = 'schedule'",
        )
        .bind(job.as_str())
        .bind(tick.millis());
        let found = self
            .database
            .read_first("look for a moment", query, |_| Ok(()));
        Ok(found.await?.is_some())
    }

    /// The last runs of a job, the latest first.
    pub async fn runs(&self, job: &JobId, most: u32) -> Result<Vec<RunRow>, StoreError> {
        let query = SqlStatement::new(
            "SELECT * FROM scheduled_runs WHERE job = ? ORDER BY claimed_at DESC, tick DESC LIMIT ?",
        )
        .bind(job.as_str())
        .bind(most);
        self.database
            .read("read the runs of a job", query, run)
            .await
    }

    /// Notes what the open run of a job said.
    pub async fn note_answer(&self, job: &JobId, answer: &str) -> Result<(), StoreError> {
        let update = SqlStatement::new(
            "UPDATE scheduled_runs SET answer = ? WHERE job = ? AND ended_at IS NULL",
        );
        self.database
            .change(
                "note what a job said",
                (Soon, Fail),
                update.bind(answer).bind(job.as_str()),
            )
            .await
            .map(drop)
    }

    /// Brings runs to their end whose message has come to its own, whoever ended that.
    pub async fn settle(&self, now: Timestamp) -> Result<Vec<EndedRun>, StoreError> {
        let query = SqlStatement::new(
            "SELECT job, tick, how, inbox.state AS end, inbox.note AS end_note
             FROM scheduled_runs JOIN scheduled_jobs ON scheduled_jobs.id = job
             LEFT JOIN inbox ON inbox.id = message
             WHERE scheduled_runs.ended_at IS NULL AND scheduled_jobs.owner = ?
               AND (inbox.id IS NULL OR inbox.ended_at IS NOT NULL)",
        )
        .bind(self.database.gateway());
        let doing = "read the runs that are over";
        let over = self.database.read(doing, query, over).await?;
        let mut ended = Vec::new();
        for (run, how) in over {
            // Each run in a write of its own: one that was settled by somebody else meanwhile
            // changes no row, and is not counted twice.
            let statements = ends(&run, how, now);
            let doing = "note how a run ended";
            let written = self.database.write(doing, (Soon, Fail), statements).await?;
            if written.first().is_some_and(|result| result.affected() > 0) {
                ended.push(run);
            }
        }
        Ok(ended)
    }
}

fn ends(run: &EndedRun, how: RunKind, now: Timestamp) -> Vec<SqlStatement> {
    // Behind the run: only a run that has ended just now counts.
    let job = SqlStatement::new(
        "UPDATE scheduled_jobs SET failures = CASE ? WHEN 'failed' THEN failures + 1 WHEN 'lost' THEN failures
                                               ELSE 0 END
         WHERE id = ? AND EXISTS (SELECT 1 FROM scheduled_runs
                                  WHERE job = ? AND tick = ? AND how = ? AND state <> 'running'
                                    AND ended_at = ?)",
    )
    .bind(run.end.name())
    .bind(run.job.as_str())
    .bind(run.job.as_str())
    .bind(run.tick.millis())
    .bind(how.name())
    .bind(now.millis());
    let end = SqlStatement::new(
        "UPDATE scheduled_runs SET state = ?, note = ?, ended_at = ?
         WHERE job = ? AND tick = ? AND how = ? AND ended_at IS NULL",
    )
    .bind(run.end.name())
    .bind(run.note.as_ref())
    .bind(now.millis())
    .bind(run.job.as_str())
    .bind(run.tick.millis())
    .bind(how.name());
    vec![end, job]
}

fn over(row: &DatabaseRow) -> Result<(EndedRun, RunKind), DatabaseError> {
    let note: Option<String> = row.get("end_note")?;
    let end: Option<String> = row.get("end")?;
    let end = match end.as_deref() {
        None => RunEnd::Lost,
        Some("answered") if note.as_deref() == Some(SILENT) => RunEnd::Silent,
        Some("answered") => RunEnd::Answered,
        Some("refused") => RunEnd::Refused,
        Some(_) => RunEnd::Failed,
    };
    let run = EndedRun {
        job: row.parsed("job", |text| text.parse().ok())?,
        tick: row.moment("tick")?,
        end,
        note,
    };
    Ok((run, row.parsed("how", RunKind::of_name)?))
}

fn run(row: &DatabaseRow) -> Result<RunRow, DatabaseError> {
    Ok(RunRow {
        job: row.parsed("job", |text| text.parse().ok())?,
        tick: row.moment("tick")?,
        how: row.parsed("how", RunKind::of_name)?,
        end: row.parsed("state", |name| match name {
            "running" => Some(None),
            name => RunEnd::of_name(name).map(Some),
        })?,
        note: row.get("note")?,
        answer: row.get("answer")?,
        claimed_at: row.moment("claimed_at")?,
        ended_at: row.maybe_moment("ended_at")?,
    })
}

impl RunKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Asked => "asked",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        [Self::Schedule, Self::Asked]
            .into_iter()
            .find(|how| how.name() == name)
    }
}

impl RunEnd {
    /// The note that a message is ended with to be counted as silent.
    pub const SILENT_NOTE: &'static str = SILENT;

    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Silent => "silent",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Missed => "missed",
            Self::Lost => "lost",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        let all = [
            Self::Answered,
            Self::Silent,
            Self::Failed,
            Self::Refused,
            Self::Missed,
            Self::Lost,
        ];
        all.into_iter().find(|end| end.name() == name)
    }
}
