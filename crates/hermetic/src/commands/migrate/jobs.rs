//! Jobs that Hermes keeps, and which of them become ours.
//!
//! A job needs a person whose rights it has and a chat that it speaks in. Hermes writes down the chat alone, so
//! only where a chat is a person, in private on Telegram, is it known whose job it is.

use hermetic_app as app;
use hermetic_config::ConfigInputs;
use hermetic_gateway::{JobDraft, JobOrder, ScheduleSettings};
use hermetic_schedule::{HermesJob, HermesJobs};
use hermetic_store::{JobState, ScheduledJob};
use hermetic_types::{
    ChatId, ChatKind, ChatPlace, Clock as _, IncomingMessage, JobId, MessageId, Platform, Sender,
    SystemClock, UpdateId, UserId,
};

use super::finding::MigrationFinding;
use super::finding::MigrationVerdict::{Copied, Lost};
use super::hermes_home::HermesHome;
use crate::by_hand;
use crate::commands::cron;
use crate::failure::CommandFailure;
use crate::log;

/// More names are counted instead of written.
const MOST_NAMED: usize = 5;

pub(super) fn read(hermes: &HermesHome) -> HermesJobs {
    let text = hermes.text("cron/jobs.json").unwrap_or_default();
    HermesJobs::read(&text).unwrap_or_default()
}

pub(super) fn findings(jobs: &HermesJobs) -> Vec<MigrationFinding> {
    let mut findings = Vec::new();
    let taken: Vec<_> = jobs.jobs.iter().filter(|job| fits(job).is_ok()).collect();
    if !taken.is_empty() {
        let names = taken.iter().take(MOST_NAMED).map(|job| job.name.as_str());
        let names: Vec<_> = names.collect();
        let more = if taken.len() > names.len() {
            ", …"
        } else {
            ""
        };
        let what = format!(
            "jobs on a schedule: {} ({}{more})",
            taken.len(),
            names.join(", ")
        );
        findings.push(MigrationFinding::new(Copied, "cron", what));
    }
    for job in &jobs.jobs {
        if let Err(why) = fits(job) {
            let what = format!("the job {:?} is not taken over: {why}", job.name);
            let found = MigrationFinding::new(Lost, "cron", what);
            findings.push(
                found.remedy("make it anew in its chat: /cron add \"every 2h\" \"what to do\""),
            );
        }
    }
    if jobs.unreadable > 0 {
        let what = format!("entries that are no job: {}", jobs.unreadable);
        findings.push(MigrationFinding::new(Lost, "cron", what));
    }
    findings
}

/// Writes those down that are missing. Where a gateway of Hermes runs they are paused: both would run them.
pub(super) async fn take_over(
    ours: &ConfigInputs,
    jobs: &HermesJobs,
    hermes_runs: bool,
) -> Result<(), CommandFailure> {
    if !jobs.jobs.iter().any(|job| fits(job).is_ok()) {
        return Ok(());
    }
    let config = hermetic_config::load(ours)?;
    by_hand::or_refuse(&config)?;
    app::installation(config.home())?;
    log::hide(&app::redactor(&config));
    let settings = app::schedules(&config)?;
    let rows = app::store(&config).await?.scheduled_jobs();
    for job in &jobs.jobs {
        let Ok(mut made) = translated(job, &settings) else {
            continue;
        };
        if rows.find(&made.id).await?.is_some() {
            continue;
        }
        if hermes_runs {
            made.state = JobState::Paused;
            made.next_at = None;
            made.why = Some("a gateway of Hermes ran when it was taken over".to_owned());
        }
        if rows.add(&made, settings.bounds).await? == hermetic_store::AddOutcome::Added {
            cron::note(&config, &made, "taken over")?;
        }
    }
    Ok(())
}

/// How many could be taken over and are not here.
pub(super) async fn missing(
    jobs: &HermesJobs,
    rows: &hermetic_store::ScheduledJobs,
) -> Result<usize, CommandFailure> {
    let mut missing = 0;
    for job in &jobs.jobs {
        let Ok(made) = translated(job, &ScheduleSettings::default()) else {
            continue;
        };
        missing += usize::from(rows.find(&made.id).await?.is_none());
    }
    Ok(missing)
}

fn fits(job: &HermesJob) -> Result<(), String> {
    translated(job, &ScheduleSettings::default()).map(drop)
}

fn translated(job: &HermesJob, settings: &ScheduleSettings) -> Result<ScheduledJob, String> {
    if let Some(lack) = job.lacks.first() {
        return Err(format!("it uses {lack}, which jobs have not here"));
    }
    let user = person(job).ok_or("whose it is is not written down")?;
    let order = JobOrder {
        schedule: job.schedule.clone(),
        prompt: job.prompt.clone(),
        name: Some(job.name.clone()),
        deliver: Some(job.deliver.clone()),
        repeat: job.runs_left,
        skills: job.skills.clone(),
        model: job.model.clone(),
    };
    let draft = JobDraft::read(&order, SystemClock.now(), settings);
    let draft = draft.map_err(|refused| refused.to_string())?;
    let id: JobId = format!("hermes-{}", job.id)
        .parse()
        .map_err(|_| "its id is none".to_owned())?;
    let origin = origin(&user).ok_or("its chat is none")?;
    Ok(ScheduledJob {
        id,
        person: format!("telegram:{user}"),
        name: draft.name,
        prompt: draft.prompt,
        terms: draft.terms,
        schedule: draft.schedule.to_row(),
        origin,
        deliver: draft.deliver.name().to_owned(),
        runs_left: draft.runs_left,
        state: if job.is_paused {
            JobState::Paused
        } else {
            JobState::Scheduled
        },
        why: None,
        next_at: (!job.is_paused).then_some(draft.next_at),
        requested: None,
        failures: 0,
        made_at: draft.made_at,
    })
}

/// A private chat on Telegram has the number of its person; a group has a negative one.
fn person(job: &HermesJob) -> Option<String> {
    let chat = job.chat.as_deref()?;
    let is_number = !chat.is_empty() && chat.bytes().all(|byte| byte.is_ascii_digit());
    let is_private =
        job.platform.as_deref() == Some("telegram") && is_number && job.thread.is_none();
    is_private.then(|| chat.to_owned())
}

fn origin(user: &str) -> Option<String> {
    let message = IncomingMessage {
        account: Platform::Telegram.into(),
        update: UpdateId::new("hermes").ok()?,
        message: MessageId::new("0").ok()?,
        place: ChatPlace {
            chat: ChatId::new(user).ok()?,
            kind: ChatKind::Dm,
            thread: None,
        },
        sender: Sender {
            id: UserId::new(user).ok()?,
            display: String::new(),
            is_bot: false,
            roles: Vec::new(),
        },
        text: String::new(),
        reply_to: None,
        mentions_us: true,
        attachments: Vec::new(),
        received_at: SystemClock.now(),
    };
    hermetic_gateway::job_origin(&message)
}
