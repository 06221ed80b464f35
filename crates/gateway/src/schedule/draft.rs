//! A job as somebody wants it, read and bounded.

use std::time::Duration;

use hermetic_schedule::{InvalidSchedule, RefusedPrompt, Schedule, scan_prompt};
use hermetic_store::{AddOutcome, JobTerms, StoreError};
use hermetic_types::{Platform, Timestamp};
use thiserror::Error;

use super::ScheduleSettings;

/// What somebody wrote. Nothing in it is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobOrder {
    pub schedule: String,
    pub prompt: String,
    pub name: Option<String>,
    pub deliver: Option<String>,
    /// How often; once or for ever if not written, as the schedule has it.
    pub repeat: Option<u32>,
    /// Names of skills that each run follows.
    pub skills: Vec<String>,
    /// The model that answers its runs.
    pub model: Option<String>,
}

/// A job that may be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDraft {
    pub name: String,
    pub prompt: String,
    pub terms: JobTerms,
    pub schedule: Schedule,
    pub deliver: JobDelivery,
    pub runs_left: Option<u32>,
    /// Its first moment.
    pub next_at: Timestamp,
    /// From when on periods are counted.
    pub made_at: Timestamp,
}

/// Where what a job says goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobDelivery {
    /// Where it was made.
    Origin,
    /// Nowhere: it is kept, and `hermetic cron show` has it.
    Local,
    /// The home channel of a platform.
    Home(Platform),
}

/// Why there is no such job, in words for whoever wanted it.
#[derive(Debug, Error)]
pub enum JobRefused {
    #[error(transparent)]
    Schedule(#[from] InvalidSchedule),
    #[error(transparent)]
    Prompt(#[from] RefusedPrompt),
    #[error("{0}")]
    Words(String),
    #[error("it could not be written down; the operator has been told")]
    Store(#[from] StoreError),
}

const LONGEST_NAME: usize = 80;
/// Of a prompt whose job was given no name.
const NAME_OF_PROMPT: usize = 40;
const MOST_REPEATS: u32 = 100_000;
const MOST_SKILLS: usize = 5;
const LONGEST_TERM: usize = 200;

impl JobDraft {
    pub fn read(
        order: &JobOrder,
        now: Timestamp,
        settings: &ScheduleSettings,
    ) -> Result<Self, JobRefused> {
        scan_prompt(&order.prompt)?;
        let schedule = Schedule::parse(&order.schedule, now, &settings.zone)?;
        if let Some(gap) = schedule.shortest_gap(now, &settings.zone)
            && gap < settings.shortest_interval
        {
            return Err(too_often(gap, settings.shortest_interval));
        }
        let next_at = schedule.next_after(now, now, &settings.zone);
        let next_at = next_at.ok_or_else(|| JobRefused::words("it would never be due"))?;
        let runs_left = match (order.repeat, schedule.is_once()) {
            // Whatever `repeat` says: there is no second moment.
            (_, true) => Some(1),
            (None | Some(0), false) => None,
            (Some(times), false) => Some(times.min(MOST_REPEATS)),
        };
        Ok(Self {
            name: name(order),
            prompt: order.prompt.trim().to_owned(),
            terms: terms(&order.skills, order.model.as_deref())?,
            deliver: JobDelivery::read(order.deliver.as_deref().unwrap_or("origin"))?,
            schedule,
            runs_left,
            next_at,
            made_at: now,
        })
    }
}

impl JobDelivery {
    /// `origin`, `local` or the name of a platform, as Hermes writes them. Its other forms are refused.
    pub fn read(text: &str) -> Result<Self, JobRefused> {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "" | "origin" => return Ok(Self::Origin),
            "local" => return Ok(Self::Local),
            _ => {}
        }
        if let Ok(platform) = text.parse() {
            return Ok(Self::Home(platform));
        }
        let shown: String = text.chars().take(60).collect();
        Err(JobRefused::Words(format!(
            "{shown:?} cannot be delivered to: expected origin (the chat it is made in), local (kept, not \
             sent) or the name of a platform, whose home channel it is then; other chats, lists and \"all\" \
             are not there, so that nobody's words leave for a chat they did not come from"
        )))
    }

    /// Whether what is said goes to nobody but whoever made the job, where that is a private chat.
    pub(crate) fn is_private(self) -> bool {
        match self {
            Self::Origin | Self::Local => true,
            Self::Home(_) => false,
        }
    }

    /// As a row keeps it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::Local => "local",
            Self::Home(platform) => platform.name(),
        }
    }
}

impl JobRefused {
    pub(crate) fn words(text: impl Into<String>) -> Self {
        Self::Words(text.into())
    }

    /// What a full table of jobs says.
    pub fn full(outcome: AddOutcome, settings: &ScheduleSettings) -> Option<Self> {
        let bounds = settings.bounds;
        match outcome {
            AddOutcome::Added => None,
            AddOutcome::TooManyOfPerson => Some(Self::Words(format!(
                "one person has at most {} jobs; remove one first",
                bounds.of_person
            ))),
            AddOutcome::TooManyOfAll => Some(Self::Words(format!(
                "this gateway keeps at most {} jobs, and has them; the operator can remove some",
                bounds.of_all
            ))),
        }
    }
}

/// The same name twice is once; `default` is no model of its own.
pub(super) fn terms(skills: &[String], model: Option<&str>) -> Result<JobTerms, JobRefused> {
    let mut terms = JobTerms::default();
    for skill in skills.iter().map(|skill| skill.trim()) {
        if skill.is_empty() || skill.chars().count() > LONGEST_TERM {
            return Err(JobRefused::words("a skill is named as /skills lists it"));
        }
        if !terms.skills.iter().any(|known| known == skill) {
            terms.skills.push(skill.to_owned());
        }
    }
    if terms.skills.len() > MOST_SKILLS {
        return Err(JobRefused::Words(format!(
            "one job has at most {MOST_SKILLS} skills"
        )));
    }
    let model = model.map(str::trim);
    let model = model.filter(|model| !model.is_empty() && *model != "default");
    if model.is_some_and(|model| model.chars().count() > LONGEST_TERM) {
        return Err(JobRefused::words("there is no model of that name"));
    }
    terms.model = model.map(str::to_owned);
    Ok(terms)
}

fn name(order: &JobOrder) -> String {
    let plain = |text: &str, most: usize| -> String {
        let words: Vec<_> = text.split_whitespace().collect();
        let kept = words.join(" ");
        kept.chars()
            .filter(|c| !c.is_control())
            .take(most)
            .collect()
    };
    match order.name.as_deref().map(|name| plain(name, LONGEST_NAME)) {
        Some(name) if !name.is_empty() => name,
        _ => plain(&order.prompt, NAME_OF_PROMPT),
    }
}

fn too_often(gap: Duration, shortest: Duration) -> JobRefused {
    JobRefused::Words(format!(
        "it would run again after {} seconds, and {} are the least here",
        gap.as_secs(),
        shortest.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(schedule: &str, deliver: &str) -> Result<JobDraft, String> {
        let order = JobOrder {
            schedule: schedule.to_owned(),
            prompt: "  look\n at it ".to_owned(),
            deliver: Some(deliver.to_owned()),
            repeat: Some(3),
            ..JobOrder::default()
        };
        let settings = ScheduleSettings {
            shortest_interval: Duration::from_secs(600),
            ..ScheduleSettings::default()
        };
        let read = JobDraft::read(&order, Timestamp::UNIX_EPOCH, &settings);
        read.map_err(|refused| refused.to_string())
    }

    #[test]
    fn a_job_is_read_and_named_after_its_prompt() {
        let draft = read("every 10m", "origin").unwrap();
        assert_eq!(
            (draft.name.as_str(), draft.runs_left),
            ("look at it", Some(3))
        );
        assert_eq!(read("10m", "local").unwrap().runs_left, Some(1));
        assert_eq!(
            read("10m", "Telegram").unwrap().deliver,
            JobDelivery::Home(Platform::Telegram)
        );
    }

    #[test]
    fn skills_and_a_model_are_bounded() {
        let skills = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            terms(&names, Some(" big ")).map(|terms| (terms.skills, terms.model))
        };
        let read = skills(&["a", " b", "a"]).unwrap();
        assert_eq!(
            read,
            (vec!["a".to_owned(), "b".to_owned()], Some("big".to_owned()))
        );
        assert!(skills(&["a", "b", "c", "d", "e", "f"]).is_err());
        assert!(skills(&[""]).is_err());
        assert_eq!(terms(&[], Some("default")).unwrap(), JobTerms::default());
    }

    #[test]
    fn what_comes_too_often_or_goes_elsewhere_is_refused() {
        assert!(
            read("*/5 * * * *", "origin")
                .unwrap_err()
                .contains("600 are the least")
        );
        for elsewhere in [
            "telegram:-100123",
            "all",
            "origin,telegram",
            "email",
            "bot-chat",
        ] {
            assert!(
                read("1h", elsewhere)
                    .unwrap_err()
                    .contains("cannot be delivered to")
            );
        }
    }
}
