//! The jobs that Hermes keeps in `cron/jobs.json`.
//!
//! Only read. The file is somebody's own and may have been edited by hand, so a job that cannot be read is
//! counted and the others are taken.

use hermetic_types::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{InvalidSchedule, Schedule};

/// What the file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HermesJobs {
    pub jobs: Vec<HermesJob>,
    /// Entries that are no job.
    pub unreadable: usize,
}

/// One job of Hermes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HermesJob {
    pub id: String,
    pub name: String,
    pub prompt: String,
    /// As somebody would write it.
    pub schedule: String,
    pub is_paused: bool,
    /// Runs that are left; forever if not written.
    pub runs_left: Option<u32>,
    pub deliver: String,
    /// Platform, chat and topic that it was made in.
    pub platform: Option<String>,
    pub chat: Option<String>,
    pub thread: Option<String>,
    pub user: Option<String>,
    pub skills: Vec<String>,
    /// A model of its own.
    pub model: Option<String>,
    /// What it uses that is not here: scripts, folders of the host, what another job said.
    pub lacks: Vec<&'static str>,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum UnreadableJobs {
    #[error("it is no JSON")]
    NoJson,
    #[error("it holds no list of jobs")]
    NoList,
}

/// More are not looked at.
const MOST_JOBS: usize = 1000;

impl HermesJobs {
    pub fn read(text: &str) -> Result<Self, UnreadableJobs> {
        let json: Value = serde_json::from_str(text).map_err(|_| UnreadableJobs::NoJson)?;
        let list = match &json {
            Value::Array(list) => list,
            Value::Object(map) => map
                .get("jobs")
                .and_then(Value::as_array)
                .ok_or(UnreadableJobs::NoList)?,
            _ => return Err(UnreadableJobs::NoList),
        };
        let mut read = Self::default();
        for entry in list.iter().take(MOST_JOBS) {
            match entry.as_object().and_then(HermesJob::read) {
                Some(job) => read.jobs.push(job),
                None => read.unreadable += 1,
            }
        }
        // Counted with what cannot be read, so that whoever imports is told that something was
        // left.
        read.unreadable += list.len().saturating_sub(MOST_JOBS);
        Ok(read)
    }
}

impl HermesJob {
    fn read(job: &Map<String, Value>) -> Option<Self> {
        let origin = job.get("origin").and_then(Value::as_object);
        let of_origin = |key| origin.and_then(|origin| word(origin, key));
        let id = word(job, "id")?;
        let prompt = word(job, "prompt").unwrap_or_default();
        let name = word(job, "name").unwrap_or_else(|| prompt.chars().take(50).collect());
        let is_enabled = job.get("enabled").and_then(Value::as_bool).unwrap_or(true);
        let is_paused = word(job, "state").as_deref() == Some("paused") || has(job, "paused_at");
        Some(Self {
            name: if name.trim().is_empty() {
                id.clone()
            } else {
                name
            },
            id,
            prompt,
            schedule: schedule(job.get("schedule")?)?,
            is_paused: is_paused || !is_enabled,
            runs_left: runs_left(job.get("repeat")),
            deliver: word(job, "deliver").unwrap_or_else(|| "local".to_owned()),
            platform: of_origin("platform"),
            chat: of_origin("chat_id"),
            thread: of_origin("thread_id"),
            user: of_origin("user_id"),
            skills: skills(job),
            model: word(job, "model").filter(|model| !model.trim().is_empty()),
            lacks: lacks(job),
        })
    }

    /// Its schedule, read as of now.
    pub fn read_schedule(
        &self,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Result<Schedule, InvalidSchedule> {
        Schedule::parse(&self.schedule, now, zone)
    }
}

/// A record of `kind` with what belongs to it, or the text that somebody wrote.
fn schedule(value: &Value) -> Option<String> {
    // Somebody who edits the file by hand writes the text itself.
    let Value::Object(record) = value else {
        return value.as_str().map(str::to_owned);
    };
    match word(record, "kind")?.as_str() {
        "cron" => word(record, "expr"),
        "interval" => {
            let minutes = record.get("minutes").and_then(Value::as_u64)?;
            Some(format!("every {minutes}m"))
        }
        "once" => word(record, "run_at"),
        _ => None,
    }
}

fn runs_left(repeat: Option<&Value>) -> Option<u32> {
    let (times, completed) = match repeat? {
        Value::Object(record) => (record.get("times")?.as_u64()?, record.get("completed")),
        other => (other.as_u64()?, None),
    };
    let completed = completed.and_then(Value::as_u64).unwrap_or(0);
    let left = u32::try_from(times.saturating_sub(completed)).ok()?;
    (times > 0).then_some(left)
}

/// A list, or one in the older way.
fn skills(job: &Map<String, Value>) -> Vec<String> {
    let one = || word(job, "skill").into_iter().collect();
    let names = match job.get("skills") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str),
        _ => return one(),
    };
    let names: Vec<_> = names.map(str::to_owned).collect();
    if names.is_empty() { one() } else { names }
}

fn lacks(job: &Map<String, Value>) -> Vec<&'static str> {
    let mut lacks = Vec::new();
    if has(job, "script") || job.get("no_agent") == Some(&Value::Bool(true)) {
        lacks.push("a script on the host");
    }
    if has(job, "workdir") {
        lacks.push("a folder of the host");
    }
    if has(job, "context_from") {
        lacks.push("what another job said");
    }
    lacks
}

/// Whether something is written there.
fn has(job: &Map<String, Value>, key: &str) -> bool {
    match job.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    }
}

/// A text or a number as text.
fn word(record: &Map<String, Value>, key: &str) -> Option<String> {
    match record.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"jobs": [
        {"id": "a1", "name": "Morning", "prompt": "news", "enabled": true, "state": "scheduled",
         "schedule": {"kind": "cron", "expr": "0 9 * * *", "display": "0 9 * * *"},
         "repeat": {"times": 5, "completed": 2}, "deliver": "origin",
         "origin": {"platform": "telegram", "chat_id": "42", "chat_name": "A", "thread_id": null}},
        {"id": "b2", "prompt": "watch", "schedule": {"kind": "interval", "minutes": 90},
         "enabled": false, "skills": ["x"], "script": "w.py", "model": "m", "deliver": "local"},
        {"id": "c3", "prompt": "later", "schedule": {"kind": "once", "run_at": "2027-01-01T00:00:00+01:00"},
         "repeat": {"times": null, "completed": 0}},
        {"id": "d4", "schedule": {"kind": "moon"}}, 7, {"prompt": "no id"}
    ]}"#;

    #[test]
    fn jobs_are_read_and_what_is_none_is_counted() {
        let read = HermesJobs::read(FILE).unwrap();
        assert_eq!((read.jobs.len(), read.unreadable), (3, 3));
        let [morning, watch, later] = &read.jobs[..] else {
            panic!("{read:?}");
        };
        assert_eq!(
            (morning.runs_left, morning.chat.as_deref()),
            (Some(3), Some("42"))
        );
        assert_eq!(watch.schedule, "every 90m");
        assert!(watch.is_paused && watch.lacks == ["a script on the host"]);
        assert_eq!(
            (watch.skills[0].as_str(), watch.model.as_deref()),
            ("x", Some("m"))
        );
        assert_eq!((later.runs_left, later.name.as_str()), (None, "later"));
        let now = Timestamp::UNIX_EPOCH;
        for job in &read.jobs {
            assert!(job.read_schedule(now, &TimeZone::UTC).is_ok(), "{job:?}");
        }
    }

    #[test]
    fn what_is_no_list_of_jobs_is_said_to_be_none() {
        assert_eq!(HermesJobs::read("{"), Err(UnreadableJobs::NoJson));
        assert_eq!(
            HermesJobs::read("{\"jobs\": 1}"),
            Err(UnreadableJobs::NoList)
        );
        assert_eq!(HermesJobs::read("[]"), Ok(HermesJobs::default()));
    }
}
