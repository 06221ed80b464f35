//! `hermetic cron …`: work on a schedule, for whoever runs the gateway.
//!
//! Works on the store, whether a gateway runs or not; a running one looks there every few seconds.

use std::fmt::Write as _;

use clap::Subcommand;
use hermetic_app as app;
use hermetic_config::Config;
use hermetic_gateway::{
    JobDraft, JobOrder, JobRefused, ScheduleSettings, described_job, job_origin, listed_job,
    shown_moment,
};
use hermetic_schedule::Schedule;
use hermetic_store::{JobState, RowOwner, RunRow, ScheduledJob, ScheduledJobs, Store};
use hermetic_types::{ChatKind, Clock as _, IncomingMessage, JobId, SystemClock};
use serde_json::json;

use super::{load, on_this_thread};
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::log;
use crate::output::{self, printable};
use crate::ownership::refuse_root_for_another;

#[derive(Debug, clap::Args)]
pub(crate) struct CronArgs {
    #[command(subcommand)]
    command: CronCommand,
}

#[derive(Debug, Subcommand)]
enum CronCommand {
    /// List everybody's jobs
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a job in the name of a person, with their rights and budgets
    #[command(after_help = "\
The person has to have written to the bot: what the job says goes to that chat.

A schedule is '30m' or 'in 2h' (once), 'every 2h', 'every monday 9am', '0 9 * * 1-5', or '2026-02-03T14:00'.

Example:
  hermetic cron create --for telegram:42 'every 2h' 'Check the build and report what failed'")]
    Create {
        /// When it is due
        schedule: String,
        /// What is to be done
        prompt: String,
        /// Run in the name of this person, as platform:user
        #[arg(long = "for", value_name = "PERSON")]
        person: String,
        /// Give it this name
        #[arg(long)]
        name: Option<String>,
        /// Send what it says to: origin, local, or the name of a platform
        #[arg(long)]
        deliver: Option<String>,
        /// Run it so often; for ever if not said
        #[arg(long)]
        repeat: Option<u32>,
        /// Have each run follow this skill; may be said several times
        #[arg(long = "skill", value_name = "NAME")]
        skills: Vec<String>,
        /// Let this model of the configuration answer, if the person may approve
        #[arg(long)]
        model: Option<String>,
    },
    /// Show a job, its last runs and what the last one said
    Show { job: String },
    /// Keep a job from running
    Pause { job: String },
    /// Let a paused job run again
    Resume { job: String },
    /// Run a job now, by the running gateway
    Run { job: String },
    /// Remove a job; the gateway destroys its sandbox
    #[command(visible_alias = "rm")]
    Remove { job: String },
}

/// Runs that are shown of a job.
const SHOWN_RUNS: u32 = 10;
/// Conversations that are looked through for a person's chat.
const MOST_LOOKED_AT: u32 = 5000;

pub(crate) fn run(cli: &CommandLine, args: &CronArgs) -> Result<ExitReason, CommandFailure> {
    on_this_thread(act(cli, &args.command))
}

async fn act(cli: &CommandLine, command: &CronCommand) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    let only_looks = matches!(command, CronCommand::List { .. } | CronCommand::Show { .. });
    if !only_looks {
        by_hand::or_refuse(&config)?;
    }
    refuse_root_for_another(config.home())?;
    app::installation(config.home())?;
    log::hide(&app::redactor(&config));
    let store = app::store(&config).await?;
    let desk = JobDesk {
        settings: app::schedules(&config)?,
        jobs: store.scheduled_jobs(),
        store,
        config: &config,
    };
    match command {
        CronCommand::List { json } => desk.list(*json).await?,
        CronCommand::Create {
            schedule,
            prompt,
            person,
            name,
            deliver,
            repeat,
            skills,
            model,
        } => {
            let order = JobOrder {
                schedule: schedule.clone(),
                prompt: prompt.clone(),
                name: name.clone(),
                deliver: deliver.clone(),
                repeat: *repeat,
                skills: skills.clone(),
                model: model.clone(),
            };
            desk.create(person, &order).await?;
        }
        CronCommand::Show { job } => desk.show(&desk.find(job).await?).await?,
        CronCommand::Pause { job } => {
            let job = desk.find(job).await?;
            let done = desk.jobs.pause(&job.id, Some("by the operator")).await?;
            desk.done(&job, done, "paused", "is not scheduled")?;
        }
        CronCommand::Resume { job } => desk.resume(&desk.find(job).await?).await?,
        CronCommand::Run { job } => {
            let job = desk.find(job).await?;
            let done = desk.jobs.request_run(&job.id, SystemClock.now()).await?;
            desk.done(&job, done, "run asked for", "is paused or has ended")?;
        }
        CronCommand::Remove { job } => {
            let job = desk.find(job).await?;
            let done = desk.jobs.withdraw(&job.id).await?;
            desk.done(&job, done, "removed", "is gone already")?;
            output::print("its sandbox goes as soon as a gateway runs, within seconds of that\n")?;
        }
    }
    Ok(ExitReason::Ok)
}

/// The jobs of one home.
struct JobDesk<'a> {
    config: &'a Config,
    settings: ScheduleSettings,
    store: Store,
    jobs: ScheduledJobs,
}

impl JobDesk<'_> {
    async fn list(&self, as_json: bool) -> Result<(), CommandFailure> {
        let all = self.jobs.all(RowOwner::AnyGateway).await?;
        if as_json {
            let mut shown = Vec::new();
            for job in &all {
                let last = self.jobs.runs(&job.id, 1).await?;
                let mut described = described_job(job, last.first(), &self.settings.zone);
                described["person"] = json!(job.person);
                shown.push(described);
            }
            return output::print_json(&json!({"jobs": shown}));
        }
        let mut text = String::new();
        for job in &all {
            let line = listed_job(job, &self.settings.zone);
            let _ = writeln!(text, "{:20} {}", printable(&job.person), printable(&line));
        }
        if text.is_empty() {
            text.push_str("nobody has a job\n");
        }
        output::print(&text)
    }

    async fn create(&self, person: &str, order: &JobOrder) -> Result<(), CommandFailure> {
        let refused = |refused: JobRefused| {
            CommandFailure::new(
                refused.to_string(),
                "`hermetic cron create --help` shows how",
            )
        };
        let draft = JobDraft::read(order, SystemClock.now(), &self.settings).map_err(refused)?;
        let (skills, _) = app::skills(self.config, &self.store, &app::redactor(self.config));
        let mut named = draft.terms.skills.iter();
        if let Some(missing) = named.find(|name| skills.find(name).is_none()) {
            return Err(CommandFailure::new(
                format!("there is no skill {:?}", printable(missing).to_string()),
                "a skill is a folder with a SKILL.md, in skills/ of the home",
            ));
        }
        let job = ScheduledJob {
            id: JobId::random(),
            person: person.to_owned(),
            origin: self.origin(person).await?,
            name: draft.name,
            prompt: draft.prompt,
            terms: draft.terms,
            schedule: draft.schedule.to_row(),
            deliver: draft.deliver.name().to_owned(),
            runs_left: draft.runs_left,
            state: JobState::Scheduled,
            why: None,
            next_at: Some(draft.next_at),
            requested: None,
            failures: 0,
            made_at: draft.made_at,
        };
        let added = self.jobs.add(&job, self.settings.bounds).await?;
        if let Some(full) = JobRefused::full(added, &self.settings) {
            return Err(refused(full));
        }
        note(self.config, &job, "made")?;
        let line = listed_job(&job, &self.settings.zone);
        output::print(&format!("{}\n", printable(&line)))
    }

    /// Where this person wrote last, in private if they did.
    async fn origin(&self, person: &str) -> Result<String, CommandFailure> {
        let activity = self.store.activity();
        let last = activity.conversations("9999-12-31", (MOST_LOOKED_AT, 0));
        let last = last.await?;
        let said = last.iter().filter_map(|last| {
            let message: IncomingMessage = serde_json::from_str(&last.payload).ok()?;
            let by = format!("{}:{}", message.platform(), message.sender.id);
            (by == person && !message.sender.is_bot).then_some(message)
        });
        let said: Vec<_> = said.collect();
        let private = said
            .iter()
            .find(|message| message.place.kind == ChatKind::Dm);
        let origin = private.or(said.first()).and_then(job_origin);
        origin.ok_or_else(|| {
            CommandFailure::new(
                format!("{} has not written to this gateway", printable(person)),
                "name them as platform:user, as in telegram:42, and have them write to the bot once",
            )
        })
    }

    async fn find(&self, wanted: &str) -> Result<ScheduledJob, CommandFailure> {
        let mut all = self.jobs.all(RowOwner::AnyGateway).await?;
        // The id first, as a job may have been given the id of another for its name.
        if let Some(place) = all.iter().position(|job| job.id.as_str() == wanted) {
            return Ok(all.swap_remove(place));
        }
        let by_name = |job: &ScheduledJob| job.name.to_lowercase() == wanted.to_lowercase();
        // A name before the beginning of an id, for the same reason.
        match all.iter().any(by_name) {
            true => all.retain(by_name),
            false => all.retain(|job| !wanted.is_empty() && job.id.as_str().starts_with(wanted)),
        }
        match all.len() {
            1 => Ok(all.remove(0)),
            0 => Err(CommandFailure::new(
                format!("there is no job {:?}", printable(wanted)),
                "`hermetic cron list` names them",
            )),
            _ => {
                let ids: Vec<_> = all.iter().map(|job| job.id.as_str()).collect();
                Err(CommandFailure::new(
                    format!("{:?} could be {}", printable(wanted), ids.join(" or ")),
                    "say the id of the one you mean",
                ))
            }
        }
    }

    async fn show(&self, job: &ScheduledJob) -> Result<(), CommandFailure> {
        let zone = &self.settings.zone;
        let mut text = format!(
            "{}\nof {}, sent to {}\n\n{}\n\n",
            listed_job(job, zone),
            job.person,
            job.deliver,
            job.prompt
        );
        let runs = self.jobs.runs(&job.id, SHOWN_RUNS).await?;
        for run in &runs {
            let end = run.end.map_or("running", |end| end.name());
            let note = run.note.as_deref().unwrap_or_default();
            let _ = writeln!(text, "{}  {end}  {note}", shown_moment(run.tick, zone));
        }
        let said = |run: &RunRow| run.answer.clone();
        if let Some(answer) = runs.iter().find_map(said) {
            let _ = writeln!(text, "\nIt said last:\n{answer}");
        }
        let lines: Vec<_> = text
            .lines()
            .map(|line| printable(line).to_string())
            .collect();
        output::print(&format!("{}\n", lines.join("\n")))
    }

    async fn resume(&self, job: &ScheduledJob) -> Result<(), CommandFailure> {
        let now = SystemClock.now();
        let schedule = Schedule::of_row(&job.schedule);
        let next = schedule.and_then(|each| each.next_after(now, job.made_at, &self.settings.zone));
        let next = next.ok_or_else(|| {
            CommandFailure::new("its time is over", "make a new one: hermetic cron create")
        })?;
        let done = self.jobs.resume(&job.id, next).await?;
        self.done(job, done, "resumed", "is not paused")
    }

    fn done(
        &self,
        job: &ScheduledJob,
        done: bool,
        act: &'static str,
        instead: &str,
    ) -> Result<(), CommandFailure> {
        let name = printable(&job.name).to_string();
        if !done {
            return Err(CommandFailure::new(
                format!("{name:?} {instead}"),
                "`hermetic cron list` shows how each job stands",
            ));
        }
        note(self.config, job, act)?;
        output::print(&format!("{name:?}: {act}\n"))
    }
}

/// In the record of this home.
pub(super) fn note(
    config: &Config,
    job: &ScheduledJob,
    act: &'static str,
) -> Result<(), CommandFailure> {
    let redactor = app::redactor(config);
    let words = |text: &str| redactor.redact(text).into();
    let event = hermetic_audit::AuditEvent::Schedule {
        act: hermetic_audit::AuditText::constant(act),
        job: words(job.id.as_str()),
        name: words(&job.name),
        person: words(&job.person),
    };
    app::audit(config)?.append(&event, SystemClock.now())?;
    Ok(())
}
