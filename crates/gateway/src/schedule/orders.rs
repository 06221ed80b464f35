//! What people and their agents do with their own jobs.
//!
//! Everybody has their own: a job of another person is not found, whatever name is guessed.

use hermetic_access::SenderRole;
use hermetic_audit::AuditEvent;
use hermetic_chat::ReplyRule;
use hermetic_schedule::{Schedule, scan_prompt};
use hermetic_store::{JobEdit, JobState, JobTerms, RowOwner, ScheduledJob, StoreError};
use hermetic_types::{ChatKind, ConversationKey, IncomingMessage, JobId};

use super::draft::terms;
use super::job_message::job_origin;
use super::{JobDelivery, JobDraft, JobOrder, JobRefused, listed_job};
use crate::Gateway;
use crate::approvals::person_name;
use crate::message::AcceptedMessage;

/// What to change of a job; what is not written stays.
#[derive(Clone, Debug, Default)]
pub(super) struct JobChange {
    pub(super) schedule: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) name: Option<String>,
    pub(super) deliver: Option<String>,
    pub(super) repeat: Option<u32>,
    pub(super) skills: Option<Vec<String>>,
    pub(super) model: Option<String>,
}

impl Gateway {
    pub(super) async fn create_job(
        &self,
        message: &AcceptedMessage,
        order: &JobOrder,
    ) -> Result<ScheduledJob, JobRefused> {
        may_schedule(message)?;
        let settings = &self.settings.schedules;
        let draft = JobDraft::read(order, self.now(), settings)?;
        self.check_delivery(message, draft.deliver)?;
        self.check_terms(message, &draft.terms).await?;
        let origin = job_origin(message.said());
        let origin = origin.ok_or_else(|| JobRefused::words("where you write cannot be kept"))?;
        let id = JobId::random();
        // By the rules that each run will be let in by: who is known by a role alone is not.
        // Asked now, although every run asks again: better told while somebody is there than to a
        // log at three in the morning.
        let admitted = self.access.admit_job(message.said().clone(), &id).await;
        if admitted.is_err() {
            return Err(JobRefused::words(
                "a job could not run in your name: you are let in here only as long as you speak (by a role \
                 or as a bot); the operator can name you in an allowlist",
            ));
        }
        let job = ScheduledJob {
            id,
            person: person(message),
            name: draft.name,
            prompt: draft.prompt,
            terms: draft.terms,
            schedule: draft.schedule.to_row(),
            origin,
            deliver: draft.deliver.name().to_owned(),
            runs_left: draft.runs_left,
            state: JobState::Scheduled,
            why: None,
            next_at: Some(draft.next_at),
            requested: None,
            failures: 0,
            made_at: draft.made_at,
        };
        let added = self.jobs.add(&job, settings.bounds).await?;
        if let Some(refused) = JobRefused::full(added, settings) {
            return Err(refused);
        }
        self.note_job(&job, "made");
        self.schedule_wake.notify_one();
        Ok(job)
    }

    /// The jobs of whoever says this. Where others read along, only those that were made there.
    pub(super) async fn own_jobs(
        &self,
        message: &AcceptedMessage,
    ) -> Result<Vec<ScheduledJob>, StoreError> {
        let mut own = self.jobs.of_person(&person(message)).await?;
        let said = message.said();
        if said.place.kind != ChatKind::Dm {
            own.retain(|job| {
                let origin = serde_json::from_str::<IncomingMessage>(&job.origin);
                origin.is_ok_and(|origin| {
                    origin.account == said.account && origin.place.chat == said.place.chat
                })
            });
        }
        Ok(own)
    }

    /// One of their jobs, by its id or by a name that only one has.
    pub(super) async fn own_job(
        &self,
        message: &AcceptedMessage,
        wanted: &str,
    ) -> Result<ScheduledJob, JobRefused> {
        let mut own = self.own_jobs(message).await?;
        let wanted = wanted.trim();
        if let Some(place) = own.iter().position(|job| job.id.as_str() == wanted) {
            return Ok(own.swap_remove(place));
        }
        own.retain(|job| job.name.to_lowercase() == wanted.to_lowercase());
        match own.len() {
            0 => Err(JobRefused::words(
                "you have no job of that id or name; list shows those you have",
            )),
            1 => Ok(own.remove(0)),
            _ => {
                let ids: Vec<_> = own.iter().map(|job| job.id.as_str()).collect();
                let ids = ids.join(", ");
                Err(JobRefused::Words(format!(
                    "several of your jobs have that name; say which: {ids}"
                )))
            }
        }
    }

    pub(super) async fn change_job(
        &self,
        message: &AcceptedMessage,
        job: &ScheduledJob,
        change: JobChange,
    ) -> Result<ScheduledJob, JobRefused> {
        may_schedule(message)?;
        let edit = self.edited(message, job, change)?;
        if edit.terms != job.terms {
            self.check_terms(message, &edit.terms).await?;
        }
        if !self.jobs.edit(&job.id, &edit).await? {
            return Err(JobRefused::words("it has ended or is gone; make a new one"));
        }
        self.note_job(job, "changed");
        self.schedule_wake.notify_one();
        self.again(job).await
    }

    fn edited(
        &self,
        message: &AcceptedMessage,
        job: &ScheduledJob,
        change: JobChange,
    ) -> Result<JobEdit, JobRefused> {
        let settings = &self.settings.schedules;
        let mut edit = JobEdit {
            name: job.name.clone(),
            prompt: job.prompt.clone(),
            terms: job.terms.clone(),
            schedule: job.schedule.clone(),
            deliver: job.deliver.clone(),
            runs_left: job.runs_left,
            next_at: job.next_at,
            made_at: job.made_at,
        };
        if let Some(schedule) = change.schedule {
            let order = JobOrder {
                schedule,
                prompt: change.prompt.clone().unwrap_or_else(|| job.prompt.clone()),
                repeat: change.repeat,
                ..JobOrder::default()
            };
            let draft = JobDraft::read(&order, self.now(), settings)?;
            edit.schedule = draft.schedule.to_row();
            edit.next_at = Some(draft.next_at);
            edit.made_at = draft.made_at;
            edit.runs_left = draft.runs_left;
        } else if let Some(times) = change.repeat {
            edit.runs_left = (times > 0).then_some(times);
        }
        if let Some(prompt) = change.prompt {
            scan_prompt(&prompt)?;
            edit.prompt = prompt;
        }
        if change.skills.is_some() || change.model.is_some() {
            let skills = change.skills.as_ref().unwrap_or(&job.terms.skills);
            let model = change.model.as_ref().or(job.terms.model.as_ref());
            edit.terms = terms(skills, model.map(String::as_str))?;
        }
        if let Some(name) = change.name.filter(|name| !name.trim().is_empty()) {
            edit.name = name.chars().filter(|c| !c.is_control()).take(80).collect();
        }
        if let Some(deliver) = change.deliver {
            let deliver = JobDelivery::read(&deliver)?;
            self.check_delivery(message, deliver)?;
            deliver.name().clone_into(&mut edit.deliver);
        }
        Ok(edit)
    }

    pub(super) async fn pause_job(&self, job: &ScheduledJob) -> Result<(), JobRefused> {
        match self.jobs.pause(&job.id, None).await? {
            true => self.note_job(job, "paused"),
            false => return Err(JobRefused::words("it is not scheduled")),
        }
        Ok(())
    }

    pub(super) async fn resume_job(&self, job: &ScheduledJob) -> Result<ScheduledJob, JobRefused> {
        let schedule = Schedule::of_row(&job.schedule);
        let zone = &self.settings.schedules.zone;
        let next = schedule.and_then(|schedule| schedule.next_after(self.now(), job.made_at, zone));
        let next =
            next.ok_or_else(|| JobRefused::words("its time is over; give it a new schedule"))?;
        if !self.jobs.resume(&job.id, next).await? {
            return Err(JobRefused::words("it is not paused"));
        }
        self.note_job(job, "resumed");
        self.schedule_wake.notify_one();
        self.again(job).await
    }

    pub(super) async fn run_job_now(&self, job: &ScheduledJob) -> Result<(), JobRefused> {
        if !self.jobs.request_run(&job.id, self.now()).await? {
            return Err(JobRefused::words(
                "it is paused or has ended; resume it first",
            ));
        }
        self.note_job(job, "run asked for");
        self.schedule_wake.notify_one();
        Ok(())
    }

    /// Strikes it out, ends a run of it that is under way, and destroys its sandbox.
    pub(super) async fn remove_job(&self, job: &ScheduledJob) -> Result<(), JobRefused> {
        // Withdrawn first: what cannot be destroyed now is tried again with every look at the schedules.
        self.jobs.withdraw(&job.id).await?;
        self.note_job(job, "removed");
        // Where it is another gateway's, that has the run and the sandbox, and clears them away at its next look.
        let own = self.jobs.withdrawn().await?;
        if own.iter().any(|own| own.id == job.id) {
            self.clear_withdrawn(job).await?;
        }
        Ok(())
    }

    /// Jobs that the operator removed at the command line, or that were too many, leave no sandbox behind either.
    pub(super) async fn clear_withdrawn_jobs(&self) -> Result<(), StoreError> {
        for job in self.jobs.withdrawn().await? {
            self.clear_withdrawn(&job).await?;
        }
        Ok(())
    }

    async fn clear_withdrawn(&self, job: &ScheduledJob) -> Result<(), StoreError> {
        if let Some(conversation) = self.job_conversation(job) {
            self.conversations.stop(&conversation).await;
            if let Err(error) = self.erase(&conversation).await {
                tracing::warn!(job = %job.id, %error, "the sandbox of a job that was removed");
                return Ok(());
            }
        }
        self.jobs.remove(&job.id).await.map(drop)
    }

    /// The key of a job's own conversation; `None` if the row cannot be read.
    fn job_conversation(&self, job: &ScheduledJob) -> Option<ConversationKey> {
        let origin: IncomingMessage = serde_json::from_str(&job.origin).ok()?;
        Some(self.access.job_conversation(&origin.account, &job.id))
    }

    /// Jobs that have ended leave no sandbox behind. Not at once: a file that is on its way is read from it.
    pub(crate) async fn clear_ended_jobs(&self) -> Result<(), StoreError> {
        for job in self.jobs.all(RowOwner::ThisGateway).await? {
            // The state of a job says that no moment follows; its last run may still be at work in
            // this sandbox.
            if job.state != JobState::Ended || self.jobs.is_running(&job.id).await? {
                continue;
            }
            if let Some(conversation) = self.job_conversation(&job)
                && let Err(error) = self.erase(&conversation).await
            {
                tracing::warn!(job = %job.id, %error, "the sandbox of a job that has ended");
            }
        }
        Ok(())
    }

    /// Whoever the agent works for sees what was scheduled in their name, whatever the agent says of it: a page
    /// that it read may have asked for it.
    pub(super) async fn tell_of_job(&self, message: &AcceptedMessage, job: &ScheduledJob) {
        let said = message.said();
        if self.outbox.replies(&said.account) == ReplyRule::OneForEach {
            return;
        }
        let text = format!(
            "⏰ Scheduled in your name: {}. /cron remove {} takes it back.",
            listed_job(job, &self.settings.schedules.zone),
            job.id
        );
        self.tell_place(&said.account, said.place.clone(), text)
            .await;
    }

    async fn again(&self, job: &ScheduledJob) -> Result<ScheduledJob, JobRefused> {
        let found = self.jobs.find(&job.id).await?;
        found.ok_or_else(|| JobRefused::words("it is gone"))
    }

    /// Whether what the job says can get there.
    fn check_delivery(
        &self,
        message: &AcceptedMessage,
        deliver: JobDelivery,
    ) -> Result<(), JobRefused> {
        match deliver {
            JobDelivery::Local => Ok(()),
            JobDelivery::Origin => {
                let replies = self.outbox.replies(&message.said().account);
                match replies == ReplyRule::OneForEach {
                    true => Err(JobRefused::words(
                        "here each message gets one answer and nothing can be sent later; say deliver local, \
                         and `hermetic cron show` has what the job says",
                    )),
                    false => Ok(()),
                }
            }
            JobDelivery::Home(platform) => {
                if !message.may_answer() {
                    return Err(JobRefused::words(
                        "only somebody who may approve has a job speak in a home channel; deliver origin \
                         sends it here",
                    ));
                }
                let home = self.settings.schedules.home_channels.get(&platform);
                let home = home.and_then(|home| self.outbox.chat(&home.account));
                match home.is_some() {
                    true => Ok(()),
                    false => Err(JobRefused::Words(format!(
                        "{platform} has no home channel here, or is not connected; the operator sets \
                         platforms.{platform}.home_channel"
                    ))),
                }
            }
        }
    }

    /// Whether its skills are there, and its model may be chosen by whoever says this.
    async fn check_terms(
        &self,
        message: &AcceptedMessage,
        terms: &JobTerms,
    ) -> Result<(), JobRefused> {
        if let Some(missing) = self.memory.missing_skill(&terms.skills).await {
            return Err(JobRefused::Words(format!(
                "there is no skill {missing:?}; /skills lists those there are"
            )));
        }
        let Some(model) = &terms.model else {
            return Ok(());
        };
        // It may be dearer, and whoever pays chose the first.
        if !message.may_answer() {
            return Err(JobRefused::words(
                "only somebody who may approve chooses the model of a job; without one the usual model answers",
            ));
        }
        match *model == self.agent.model_name() || self.models.contains_key(model) {
            true => Ok(()),
            false => {
                let known: Vec<_> = self.models.keys().map(String::as_str).collect();
                Err(JobRefused::Words(format!(
                    "{model:?} is not among the models of this gateway ({}, {}); the operator names others \
                     under fallback_model in config.yaml",
                    self.agent.model_name(),
                    known.join(", ")
                )))
            }
        }
    }

    /// What happens to jobs is written down.
    pub(super) fn note_job(&self, job: &ScheduledJob, act: &'static str) {
        let words = |text: &str| self.approvals.questions.words(text);
        self.approvals.note(&AuditEvent::Schedule {
            act: hermetic_audit::AuditText::constant(act),
            job: words(job.id.as_str()),
            name: words(&job.name),
            person: words(&job.person),
        });
    }
}

/// Whose jobs count as whose.
pub(super) fn person(message: &AcceptedMessage) -> String {
    let said = message.said();
    person_name(said.platform(), &said.sender.id)
}

/// A guest is anybody: they could keep the gateway at work for ever, and fill the table with new names.
fn may_schedule(message: &AcceptedMessage) -> Result<(), JobRefused> {
    let is_guest = message.admitted().role() == SenderRole::Guest;
    match is_guest || message.said().sender.is_bot {
        true => Err(JobRefused::words(
            "who is let in with everybody else has no jobs here; the operator can name you in an allowlist",
        )),
        false => Ok(()),
    }
}
