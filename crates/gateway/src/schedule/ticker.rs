//! Looks which jobs are due, and claims their moments.
//!
//! The clock on the wall says what is due; the runtime's says when to look again. A clock that jumps ahead is
//! a gateway that was not there: each job is made up for once or said to be missed. One that jumps back
//! finds its moments claimed, and goes on with the first that is not.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hermetic_access::AdmissionRefusal;
use hermetic_schedule::{Lateness, Schedule, lateness, scan_prompt};
use hermetic_store::{
    JobState, RowOwner, RunEnd, RunKind, ScheduledJob, SkippedTick, StoreError, TickClaim,
};
use hermetic_types::{AccountId, ChatPlace, IncomingMessage, Timestamp};
use tokio::time::sleep;

use super::job_message::job_message;
use super::overview::shown_moment;
use super::{FAILS_AGAIN, PAUSED_AFTER};
use crate::life::NOT_ALLOWED;
use crate::message::AcceptedMessage;
use crate::{BusyMode, Gateway};

/// Another process may have changed a job: the command line does.
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// The clock on the wall is no reason to turn without a pause.
const SHORTEST_WAIT: Duration = Duration::from_millis(200);
/// Who made a job could not be looked up: what is wrong there does not pass at once, and each look says so.
const UNKNOWN_WAIT: Duration = Duration::from_secs(5);
/// Jobs that are looked at in one go.
const MOST_DUE: u32 = 200;
/// Moments that a clock which was set back may find claimed.
const MOST_CLAIMED: usize = 200;
/// Jobs that are named where some fail.
const MOST_NAMED: usize = 3;

const NOBODY_THERE: &str = "the gateway was not running at its time";
const STILL_AT_WORK: &str = "the run before it was still at work";

/// What became of a job that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DueJob {
    Runs,
    RunsNot,
    /// Nobody can tell at this moment whether it may run.
    StaysDue,
}

/// What was missed, by the chat that is told.
type MissedNotices = Vec<(AccountId, ChatPlace, String)>;

impl Gateway {
    /// Until it is dropped. A moment that was claimed by then is found by the next start.
    pub(crate) async fn keep_schedules(self: &Arc<Self>) -> Infallible {
        let mut last_look = None;
        loop {
            let wait = match self.look_at_schedules(&mut last_look).await {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::error!(%error, "the jobs could not be looked at");
                    LONGEST_WAIT
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = self.schedule_wake.notified() => {}
            }
        }
    }

    /// Claims what is due; how long there is nothing to do.
    async fn look_at_schedules(
        self: &Arc<Self>,
        last_look: &mut Option<Timestamp>,
    ) -> Result<Duration, StoreError> {
        let now = self.now();
        self.clear_withdrawn_jobs().await?;
        // Before the room is counted: a run that has ended since the last look gives its place to
        // one that is due.
        self.settle_runs(now, last_look.is_none()).await?;
        if last_look.is_none_or(|last| now < last) {
            self.go_back_with_the_clock(now).await?;
        }
        *last_look = Some(now);
        let most = self.settings.schedules.max_parallel_jobs;
        let mut room = most.saturating_sub(self.jobs.running().await?);
        let mut missed = MissedNotices::new();
        let mut shortest = SHORTEST_WAIT;
        for job in self.jobs.due(now, MOST_DUE).await? {
            if room == 0 {
                break;
            }
            match self.fire(&job, now, &mut missed).await? {
                DueJob::Runs => room -= 1,
                DueJob::RunsNot => {}
                DueJob::StaysDue => shortest = UNKNOWN_WAIT,
            }
        }
        // After all of them, although it delays the word: one message for a chat with twenty jobs.
        self.tell_missed(missed).await;
        let next = self.jobs.next_moment().await?;
        let wait = next.map_or(LONGEST_WAIT, |next| next.since(now));
        Ok(match room {
            // The end of a run wakes us.
            0 => LONGEST_WAIT,
            _ => wait.clamp(shortest, LONGEST_WAIT),
        })
    }

    /// Runs a job that is due, or says why not.
    async fn fire(
        self: &Arc<Self>,
        job: &ScheduledJob,
        now: Timestamp,
        missed: &mut MissedNotices,
    ) -> Result<DueJob, StoreError> {
        let settings = &self.settings.schedules;
        let Some(schedule) = Schedule::of_row(&job.schedule) else {
            self.stop_job(job, "its schedule cannot be read").await?;
            return Ok(DueJob::RunsNot);
        };
        let (tick, how) = match (job.requested, job.next_at) {
            (Some(at), _) => (at, RunKind::Asked),
            (None, Some(at)) => (at, RunKind::Schedule),
            (None, None) => return Ok(DueJob::RunsNot),
        };
        let next_at = schedule.next_after(now.max(tick), job.made_at, &settings.zone);
        // Before anything is said of it: who is not let in any more is told nothing.
        let Some(incoming) = job_message(job, (tick, how), now, settings) else {
            self.stop_job(job, "who made it cannot be read").await?;
            return Ok(DueJob::RunsNot);
        };
        let admitted = match self.access.admit_job(incoming, &job.id).await {
            Ok(admitted) => admitted,
            Err(AdmissionRefusal::CannotTell) => return Ok(DueJob::StaysDue),
            Err(_) => {
                self.stop_job(job, NOT_ALLOWED).await?;
                return Ok(DueJob::RunsNot);
            }
        };
        if how == RunKind::Schedule {
            let is_missed = lateness(&schedule, tick, now, job.made_at, &settings.zone);
            let is_missed = is_missed == Lateness::Missed;
            if is_missed || self.jobs.is_running(&job.id).await? {
                let note = if is_missed {
                    NOBODY_THERE
                } else {
                    STILL_AT_WORK
                };
                self.skip(job, (tick, next_at), (note, now), missed).await?;
                return Ok(DueJob::RunsNot);
            }
        }
        // It was looked over when it was made, perhaps by an older version that knew fewer tricks.
        if let Err(refused) = scan_prompt(&job.prompt) {
            self.stop_job(job, &refused.to_string()).await?;
            return Ok(DueJob::RunsNot);
        }
        let payload = serde_json::to_string(admitted.said()).unwrap_or_default();
        let claim = TickClaim {
            job: &job.id,
            tick,
            how,
            next_at,
            account: &admitted.said().account.to_string(),
            update: admitted.said().update.as_str(),
            conversation: admitted.conversation(),
            payload: &payload,
            most_open: settings.max_parallel_jobs,
        };
        // The claim and the message are one transaction: killed after it, the next start finds the
        // message and runs it once; killed before it, the moment is still due. `None` where
        // somebody changed the job meanwhile.
        let Some(row) = self.jobs.claim(claim, now).await? else {
            return Ok(DueJob::RunsNot);
        };
        self.note_job(job, "run");
        let message = AcceptedMessage::claimed(row, admitted);
        self.note_speaker(&message, message.conversation());
        self.hand_over(message, BusyMode::Queue);
        Ok(DueJob::Runs)
    }

    async fn skip(
        &self,
        job: &ScheduledJob,
        (tick, next_at): (Timestamp, Option<Timestamp>),
        (note, now): (&'static str, Timestamp),
        missed: &mut MissedNotices,
    ) -> Result<(), StoreError> {
        let skipped = SkippedTick {
            job: &job.id,
            tick,
            next_at,
            note,
        };
        if self.jobs.skip(skipped, now).await? && note == NOBODY_THERE {
            self.note_job(job, "missed");
            let zone = &self.settings.schedules.zone;
            let next = match next_at {
                Some(next) => format!("next at {}", shown_moment(next, zone)),
                None => "it does not come again; make it anew if it is still wanted".to_owned(),
            };
            let at = shown_moment(tick, zone);
            let line = format!("{:?}, due at {at} ({next})", job.name);
            if let Ok(origin) = serde_json::from_str::<IncomingMessage>(&job.origin)
                && job.deliver != "local"
            {
                missed.push((origin.account, origin.place, line));
            }
        }
        Ok(())
    }

    /// One message for each chat, however many jobs it has.
    async fn tell_missed(&self, missed: MissedNotices) {
        let mut told: Vec<(AccountId, ChatPlace, Vec<String>)> = Vec::new();
        for (account, place, line) in missed {
            let there = told
                .iter_mut()
                .find(|each| each.0 == account && each.1 == place);
            match there {
                Some(each) => each.2.push(line),
                None => told.push((account, place, vec![line])),
            }
        }
        for (account, place, lines) in told {
            let text = format!(
                "⏰ Not run, because I was not there at the time: {}. /cron run has one run now.",
                lines.join("; ")
            );
            self.tell_place(&account, place, text).await;
        }
    }

    pub(super) async fn tell_place(&self, account: &AccountId, place: ChatPlace, text: String) {
        if self.outbox.chat(account).is_none() {
            return;
        }
        let notice = self.redactor.redact(text);
        if let Err(error) = self.outbox.notify(account, place, &notice).await {
            tracing::error!(%account, %error, "what became of a job could not be told");
        }
    }

    /// A job that cannot run any more is paused, and the operator is told.
    pub(super) async fn stop_job(&self, job: &ScheduledJob, why: &str) -> Result<(), StoreError> {
        let why: String = why.chars().take(200).collect();
        // Whoever really paused it tells about it: a second look at the same job finds it paused
        // and is silent.
        if self.jobs.pause(&job.id, Some(&why)).await? {
            self.note_job(job, "stopped");
            tracing::warn!(job = %job.id, person = job.person, why, "a job was stopped");
            let text = format!(
                "⏰ The job {:?} ({}) of {} was stopped: {why}.",
                job.name, job.id, job.person
            );
            for (account, place) in self.approvals.prompts.approvers().await {
                self.tell_place(&account, place, text.clone()).await;
            }
        }
        Ok(())
    }

    /// Runs whose message has ended come to their own end.
    async fn settle_runs(&self, now: Timestamp, first: bool) -> Result<(), StoreError> {
        let ended = self.jobs.settle(now).await?;
        for run in &ended {
            let Some(job) = self.jobs.find(&run.job).await? else {
                continue;
            };
            if run.end == RunEnd::Refused && run.note.as_deref() == Some(NOT_ALLOWED) {
                self.stop_job(&job, NOT_ALLOWED).await?;
            } else if job.failures >= PAUSED_AFTER && job.state == JobState::Scheduled {
                self.pause_failing(&job).await?;
            }
        }
        if first || !ended.is_empty() {
            self.note_failing_jobs(now).await?;
        }
        Ok(())
    }

    async fn pause_failing(&self, job: &ScheduledJob) -> Result<(), StoreError> {
        let why = format!("it failed {} times in a row", job.failures);
        self.stop_job(job, &why).await?;
        if let Ok(origin) = serde_json::from_str::<IncomingMessage>(&job.origin) {
            let text = format!(
                "⏰ The job {:?} failed {} times in a row and is paused. /cron resume {} has it go on.",
                job.name, job.failures, job.id
            );
            self.tell_place(&origin.account, origin.place, text).await;
        }
        Ok(())
    }

    /// Whoever looks at the gateway sees which jobs fail again and again.
    async fn note_failing_jobs(&self, now: Timestamp) -> Result<(), StoreError> {
        let jobs = self.jobs.all(RowOwner::ThisGateway).await?;
        let failing: Vec<_> = jobs
            .iter()
            .filter(|job| job.failures >= FAILS_AGAIN && job.state != JobState::Ended)
            .collect();
        if failing.is_empty() {
            self.schedule_health.recovered();
            return Ok(());
        }
        let names = failing.iter().take(MOST_NAMED);
        let names: Vec<_> = names
            .map(|job| format!("{} ({} times)", job.id, job.failures))
            .collect();
        let more = match failing.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let why = format!("jobs fail again and again: {}{more}", names.join(", "));
        self.schedule_health.degraded(why, now);
        Ok(())
    }

    /// A clock that was set back leaves jobs whose next moment is far ahead: they go on with the first moment
    /// from now that nobody claimed.
    async fn go_back_with_the_clock(&self, now: Timestamp) -> Result<(), StoreError> {
        let zone = &self.settings.schedules.zone;
        for job in self.jobs.all(RowOwner::ThisGateway).await? {
            let (Some(at), JobState::Scheduled) = (job.next_at, job.state) else {
                continue;
            };
            let Some(schedule) = Schedule::of_row(&job.schedule).filter(|each| !each.is_once())
            else {
                continue;
            };
            let mut first = schedule.next_after(now, job.made_at, zone);
            for _ in 0..MOST_CLAIMED {
                match first {
                    Some(tick) if tick < at && self.jobs.knows_tick(&job.id, tick).await? => {
                        first = schedule.next_after(tick, job.made_at, zone);
                    }
                    _ => break,
                }
            }
            if let Some(first) = first.filter(|first| *first < at) {
                self.jobs.reschedule(&job.id, at, first).await?;
            }
        }
        Ok(())
    }
}
