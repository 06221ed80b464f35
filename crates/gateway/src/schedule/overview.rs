//! Jobs in the words that people and models read.

use hermetic_schedule::Schedule;
use hermetic_store::{JobState, RunRow, ScheduledJob};
use hermetic_types::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

/// Of a prompt in a list.
const SHOWN_PROMPT: usize = 100;

/// A moment as a clock on the wall shows it.
pub fn shown_moment(at: Timestamp, zone: &TimeZone) -> String {
    let here = at.calendar().to_zoned(zone.clone());
    here.strftime("%Y-%m-%d %H:%M %Z").to_string()
}

/// One line of a list.
pub fn listed_job(job: &ScheduledJob, zone: &TimeZone) -> String {
    let when = match (job.state, job.next_at) {
        (JobState::Scheduled, Some(at)) => format!("next {}", shown_moment(at, zone)),
        (state, _) => match &job.why {
            Some(why) => format!("{}: {why}", state.name()),
            None => state.name().to_owned(),
        },
    };
    let failing = match job.failures {
        0 => String::new(),
        failures => format!(", failed {failures} times in a row"),
    };
    format!(
        "{} {:?}: {}, {when}{failing}{}",
        job.id,
        job.name,
        shown_schedule(job, zone),
        shown_terms(job)
    )
}

/// A job as the tool answers it, with the keys that models trained on Hermes know.
pub fn described_job(job: &ScheduledJob, last: Option<&RunRow>, zone: &TimeZone) -> Value {
    let preview: String = job.prompt.chars().take(SHOWN_PROMPT).collect();
    let next = job.next_at.map(|at| shown_moment(at, zone));
    json!({
        "job_id": job.id,
        "name": job.name,
        "prompt_preview": preview,
        "schedule": shown_schedule(job, zone),
        "repeat": job.runs_left.map_or_else(|| "forever".to_owned(), |left| format!("{left} left")),
        "deliver": job.deliver,
        "skills": job.terms.skills,
        "model": job.terms.model,
        "enabled": job.state == JobState::Scheduled,
        "state": job.state.name(),
        "paused_reason": job.why,
        "next_run_at": next,
        "last_run_at": last.map(|run| shown_moment(run.claimed_at, zone)),
        "last_status": last.map(|run| run.end.map_or("running", |end| end.name())),
        "failures_in_a_row": job.failures,
    })
}

fn shown_terms(job: &ScheduledJob) -> String {
    let mut text = String::new();
    if !job.terms.skills.is_empty() {
        text.push_str(&format!(", with {}", job.terms.skills.join(", ")));
    }
    if let Some(model) = &job.terms.model {
        text.push_str(&format!(", by {model}"));
    }
    text
}

fn shown_schedule(job: &ScheduledJob, zone: &TimeZone) -> String {
    match Schedule::of_row(&job.schedule) {
        Some(Schedule::Once(at)) => format!("once at {}", shown_moment(at, zone)),
        Some(schedule) => schedule.to_string(),
        None => "a schedule that cannot be read".to_owned(),
    }
}
