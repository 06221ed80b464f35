//! A moment of a job as a message.

use hermetic_store::{RunKind, ScheduledJob};
use hermetic_types::{IncomingMessage, Timestamp, UpdateId};

use super::ScheduleSettings;
use super::overview::shown_moment;

/// The name of a moment in the inbox. One of these is one message.
const PREFIX: &str = "cron:";

/// The message that a job was made by, without its words: where it was said and by whom. Roles go with the
/// words, because a platform says them of somebody who speaks.
pub fn job_origin(message: &IncomingMessage) -> Option<String> {
    let mut origin = message.clone();
    origin.text.clear();
    origin.attachments.clear();
    origin.reply_to = None;
    origin.sender.roles.clear();
    serde_json::to_string(&origin).ok()
}

/// When the moment of this name was due.
pub(super) fn tick_of(update: &UpdateId) -> Option<Timestamp> {
    let mut parts = update.as_str().strip_prefix(PREFIX)?.split(':');
    let (_, tick) = (parts.next()?, parts.next()?);
    tick.parse().ok().map(Timestamp::from_millis)
}

/// What is said at this moment, in the name of whoever made the job. `None` if the row cannot be read.
pub(super) fn job_message(
    job: &ScheduledJob,
    (tick, how): (Timestamp, RunKind),
    now: Timestamp,
    settings: &ScheduleSettings,
) -> Option<IncomingMessage> {
    let mut incoming: IncomingMessage = serde_json::from_str(&job.origin).ok()?;
    let name = format!("{PREFIX}{}:{}:{}", job.id, tick.millis(), how.name());
    incoming.update = UpdateId::new(name).ok()?;
    incoming.mentions_us = true;
    incoming.received_at = now;
    incoming.text = words(job, &shown_moment(now, &settings.zone));
    Some(incoming)
}

fn words(job: &ScheduledJob, now: &str) -> String {
    format!(
        "[This is a run of the scheduled job {:?} ({}), which this person made; it is {now} now. Nobody is \
         there to answer you: do not ask, and expect a no wherever a yes is needed. What you answer at the \
         end is sent to them as it is. If there is nothing to report, answer [SILENT] and nothing else.]\n\n{}",
        job.name, job.id, job.prompt
    )
}
