//! One run of a job, and what becomes of what it says.

use std::time::Duration;

use hermetic_agent::{Agent, SilentObserver};
use hermetic_redact::Redacted;
use hermetic_store::{MessageEnd, RunEnd, ScheduledJob, StoreError};
use hermetic_types::{AccountId, ChatPlace};
use tokio::time::sleep;

use super::JobDelivery;
use super::job_message::tick_of;
use super::overview::shown_moment;
use crate::Gateway;
use crate::conversation::{Answerer, TurnControl};
use crate::delivery::ParsedAnswer;
use crate::life::HandleError;
use crate::message::AcceptedMessage;

/// What a job says that has nothing to say.
const SILENT: &str = "[SILENT]";
/// Of what a run said, for `hermetic cron show`.
const MOST_KEPT: usize = 16_000;
/// Characters of one skill that a run is told at once.
const MOST_OF_SKILL: usize = 50_000;
/// A run that was claimed so much later than it was due says so.
const LATE: Duration = Duration::from_secs(60);

impl Gateway {
    /// Takes one turn for a job, from nothing said to a reply on its way or kept.
    pub(crate) async fn answer_job(
        &self,
        message: &AcceptedMessage,
        control: &TurnControl,
    ) -> Result<(), HandleError> {
        let Some(job) = self.job_of(message).await? else {
            return self
                .end_job(message, MessageEnd::Refused, "the job was removed")
                .await;
        };
        if !message.was_begun() {
            // Each run knows nothing of those before it.
            self.put_away(message.conversation()).await?;
        }
        let session = self.open_session(message, control).await?;
        let agent = self.agent_of_job(message, &job);
        // Nobody could answer the permissions that an agent of others asks for.
        let turn = session.take_turn(Answerer::Own(agent), control, &SilentObserver);
        tokio::pin!(turn);
        let longest = self.settings.schedules.longest_run;
        let mut was_ended = false;
        let answered = tokio::select! {
            // First, as of any other turn.
            biased;
            () = self.left_to_others(message) => return Err(HandleError::LeftToOthers),
            answered = &mut turn => answered,
            () = sleep(longest) => {
                was_ended = true;
                // Told to stop and awaited, not dropped: the turn still writes how its tools ended,
                // and says what it had found.
                control.stop.cancel();
                turn.await
            }
        };
        self.note_model(answered.as_ref().err());
        let mut answer = answered?;
        if was_ended {
            answer.push_str(&format!(
                "\n\n[This run took more than {} minutes and was ended.]",
                longest.as_secs() / 60
            ));
        }
        let end = match was_ended {
            true => MessageEnd::Failed,
            false => MessageEnd::Answered,
        };
        // The operator may have removed it meanwhile, to have it say nothing more.
        if self.job_of(message).await?.is_none() {
            let removed = "the job was removed";
            return self.end_job(message, MessageEnd::Refused, removed).await;
        }
        self.deliver_job(message, &job, (&answer, end)).await
    }

    async fn deliver_job(
        &self,
        message: &AcceptedMessage,
        job: &ScheduledJob,
        (answer, end): (&str, MessageEnd),
    ) -> Result<(), HandleError> {
        let workspace = self.toolsets.workspace(message.said().platform());
        let answer = ParsedAnswer::read(answer, workspace);
        let refused = self.refused_hosts(message);
        let said = self.redactor.redact(format!("{}{refused}", answer.text));
        // Kept also where nobody is told of it: `hermetic cron show` has what a silent run said.
        self.keep_answer(job, &said).await;
        if end == MessageEnd::Answered && is_silent(&answer.text) {
            let note = RunEnd::SILENT_NOTE;
            return self.end_job(message, MessageEnd::Answered, note).await;
        }
        let reply = self.headed(message, job, said);
        let Some((account, place)) = self.job_destination(message, job) else {
            return self.end_job(message, end, "kept").await;
        };
        let delivered =
            self.outbox
                .deliver_elsewhere(message, (&account, place), &reply, (answer.files, end));
        let _ = delivered.await?;
        Ok(())
    }

    /// Tells of a run that failed: never silent, but for a job that is kept to itself.
    pub(crate) async fn report_failed_job(
        &self,
        message: &AcceptedMessage,
        why: &'static str,
    ) -> Result<(), HandleError> {
        let Some(job) = self.job_of(message).await? else {
            return self
                .end_job(message, MessageEnd::Failed, "the job was removed")
                .await;
        };
        let said = Redacted::constant("This run failed: ").then(&Redacted::constant(why));
        self.keep_answer(&job, &said).await;
        let Some((account, place)) = self.job_destination(message, &job) else {
            return self.end_job(message, MessageEnd::Failed, why).await;
        };
        let reply = self.headed(message, &job, said);
        let end = (Vec::new(), MessageEnd::Failed);
        let delivered = self
            .outbox
            .deliver_elsewhere(message, (&account, place), &reply, end);
        let _ = delivered.await?;
        Ok(())
    }

    /// Its own model, as long as whoever made it may still choose one and the configuration names it.
    fn agent_of_job(&self, message: &AcceptedMessage, job: &ScheduledJob) -> &Agent {
        let chosen = job.terms.model.as_ref().filter(|_| message.may_answer());
        let chosen = chosen.and_then(|name| self.models.get(name));
        chosen.unwrap_or(&self.agent)
    }

    /// What a run is told besides its prompt: the skills that it is to follow.
    pub(crate) async fn words_of_skills(
        &self,
        message: &AcceptedMessage,
    ) -> Result<String, StoreError> {
        let Some(job) = self.job_of(message).await? else {
            return Ok(String::new());
        };
        let names = job.terms.skills;
        let skills = self.memory.skills().clone();
        // Folders are read aside.
        let read = tokio::task::spawn_blocking(move || {
            let each = names.into_iter().map(|name| match skills.text_of(&name) {
                Some(text) => {
                    let text: String = text.chars().take(MOST_OF_SKILL).collect();
                    format!(
                        "\n\n[The job uses the skill {name}. It says:]\n\n{text}\n\n[End of the skill {name}; \
                         skill_view shows its files.]"
                    )
                }
                None => format!(
                    "\n\n[The job was to use the skill {name:?}, which is not there any more. Say so in your answer.]"
                ),
            });
            each.collect::<String>()
        });
        Ok(read.await.unwrap_or_default())
    }

    pub(crate) async fn job_of(
        &self,
        message: &AcceptedMessage,
    ) -> Result<Option<ScheduledJob>, StoreError> {
        match message.conversation().job() {
            Some(job) => Ok(self.jobs.find(&job).await?),
            None => Ok(None),
        }
    }

    /// Where it goes; nowhere for a job that is kept to itself, or whose home channel is gone.
    fn job_destination(
        &self,
        message: &AcceptedMessage,
        job: &ScheduledJob,
    ) -> Option<(AccountId, ChatPlace)> {
        let said = message.said();
        match JobDelivery::read(&job.deliver).unwrap_or(JobDelivery::Local) {
            JobDelivery::Local => None,
            JobDelivery::Origin => Some((said.account.clone(), said.place.clone())),
            JobDelivery::Home(platform) => {
                let home = self.settings.schedules.home_channels.get(&platform)?;
                // Still only for somebody who may have a job speak there.
                message
                    .may_answer()
                    .then(|| (home.account.clone(), home.place.clone()))
            }
        }
    }

    fn headed(
        &self,
        message: &AcceptedMessage,
        job: &ScheduledJob,
        said: Redacted<String>,
    ) -> Redacted<String> {
        let settings = &self.settings.schedules;
        let tick = tick_of(&message.said().update);
        let claimed = message.said().received_at;
        let late = tick.filter(|tick| claimed.since(*tick) > LATE);
        let late =
            late.map(|tick| format!(" (late: due at {})", shown_moment(tick, &settings.zone)));
        if !settings.wrap_response && late.is_none() {
            return said;
        }
        let head = format!("⏰ {}{}\n\n", job.name, late.unwrap_or_default());
        self.redactor.redact(head).then(&said)
    }

    async fn keep_answer(&self, job: &ScheduledJob, said: &Redacted<String>) {
        let kept: String = said.as_str().chars().take(MOST_KEPT).collect();
        if let Err(error) = self.jobs.note_answer(&job.id, &kept).await {
            tracing::warn!(job = %job.id, %error, "what a job said is not kept");
        }
    }

    async fn end_job(
        &self,
        message: &AcceptedMessage,
        end: MessageEnd,
        note: &str,
    ) -> Result<(), HandleError> {
        let row = message.row();
        self.inbox.end(row, end, Some(note), self.now()).await?;
        Ok(())
    }
}

/// Whether the first or the last line says so, and nothing else. One somewhere in the text is a quotation: a page
/// that a job reads does not silence it by holding the word.
fn is_silent(answer: &str) -> bool {
    let mut lines = answer
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let first = lines.next();
    let last = lines.next_back().or(first);
    first == Some(SILENT) || last == Some(SILENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_a_line_of_its_own() {
        for silent in [
            "[SILENT]",
            " [SILENT]\n",
            "[SILENT]\nall is well",
            "all is well\n\n[SILENT]",
        ] {
            assert!(is_silent(silent), "{silent:?}");
        }
        for said in [
            "",
            "the page says [SILENT]",
            "one\n[SILENT]\ntwo",
            "[silent]",
        ] {
            assert!(!is_silent(said), "{said:?}");
        }
    }
}
