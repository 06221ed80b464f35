//! `/cron`: a person's jobs, in the chat.

use hermetic_redact::Redacted;
use hermetic_store::StoreError;

use super::{JobOrder, JobRefused, listed_job, shown_moment};
use crate::Gateway;
use crate::message::AcceptedMessage;

const USAGE: &str = "/cron - your jobs\n/cron add \"every 2h\" \"what to do\" - a new one; --name, --repeat, \
    --deliver, --skill and --model may follow\n/cron show, pause, resume, run or remove and its id or name";

/// Runs that are shown of one job.
const SHOWN_RUNS: u32 = 5;

impl Gateway {
    pub(crate) async fn cron(
        &self,
        message: &AcceptedMessage,
        text: &str,
    ) -> Result<Redacted<String>, StoreError> {
        let said = match self.obey_cron(message, text).await {
            Ok(said) => said,
            Err(JobRefused::Store(error)) => return Err(error),
            Err(refused) => format!("Not done: {refused}."),
        };
        Ok(self.redactor.redact(said))
    }

    async fn obey_cron(&self, message: &AcceptedMessage, text: &str) -> Result<String, JobRefused> {
        let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let zone = &self.settings.schedules.zone;
        let verb = verb.to_ascii_lowercase();
        match verb.as_str() {
            "" | "list" => return self.list_jobs(message).await,
            "add" | "create" => {
                let job = self.create_job(message, &read_order(rest)?).await?;
                return Ok(format!("Made: {}", listed_job(&job, zone)));
            }
            "help" => return Ok(USAGE.to_owned()),
            "show" | "pause" | "resume" | "run" | "remove" => {}
            _ => return Ok(format!("There is no /cron {verb:?}.\n{USAGE}")),
        }
        let job = self.own_job(message, rest).await?;
        Ok(match verb.as_str() {
            "show" => {
                let mut text = format!("{}\n\n{}", listed_job(&job, zone), job.prompt);
                for run in self.jobs.runs(&job.id, SHOWN_RUNS).await? {
                    let end = run.end.map_or("running", |end| end.name());
                    text.push_str(&format!("\n{} {end}", shown_moment(run.tick, zone)));
                }
                text
            }
            "pause" => {
                self.pause_job(&job).await?;
                format!(
                    "Paused: {:?}. /cron resume {} has it go on.",
                    job.name, job.id
                )
            }
            "resume" => {
                let job = self.resume_job(&job).await?;
                format!("Resumed: {}", listed_job(&job, zone))
            }
            "run" => {
                self.run_job_now(&job).await?;
                format!(
                    "{:?} runs now; what it says comes where it always goes.",
                    job.name
                )
            }
            _ => {
                self.remove_job(&job).await?;
                format!("Removed: {:?}, with its sandbox.", job.name)
            }
        })
    }

    async fn list_jobs(&self, message: &AcceptedMessage) -> Result<String, JobRefused> {
        let own = self.own_jobs(message).await?;
        if own.is_empty() {
            return Ok(format!("You have no jobs.\n{USAGE}"));
        }
        let zone = &self.settings.schedules.zone;
        let lines: Vec<_> = own.iter().map(|job| listed_job(job, zone)).collect();
        Ok(lines.join("\n"))
    }
}

/// `"every 2h" "what to do" --name n --repeat 3 --deliver local`.
fn read_order(text: &str) -> Result<JobOrder, JobRefused> {
    let usage = || JobRefused::words("write it as: /cron add \"every 2h\" \"what to do\"");
    let mut words = quoted_words(text).into_iter();
    let mut order = JobOrder {
        schedule: words.next().ok_or_else(usage)?,
        prompt: words.next().ok_or_else(usage)?,
        ..JobOrder::default()
    };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(usage)?;
        match word.as_str() {
            "--name" => order.name = Some(value),
            "--deliver" => order.deliver = Some(value),
            "--skill" => order.skills.push(value),
            "--model" => order.model = Some(value),
            "--repeat" => order.repeat = Some(value.parse().map_err(|_| usage())?),
            _ => return Err(usage()),
        }
    }
    Ok(order)
}

/// Words, those in quotation marks as one. Phones write marks of several kinds.
fn quoted_words(text: &str) -> Vec<String> {
    let is_mark = |c: char| matches!(c, '"' | '“' | '”' | '„' | '«' | '»');
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut is_quoted, mut is_word) = (false, false);
    for c in text.chars() {
        if is_mark(c) {
            is_quoted = !is_quoted;
            is_word = true;
        } else if c.is_whitespace() && !is_quoted {
            if is_word {
                words.push(std::mem::take(&mut word));
            }
            is_word = false;
        } else {
            is_word = true;
            word.push(c);
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_people_write_it() {
        let order = read_order(
            "“every 2h” \"look at\nthe build\" --repeat 3 --name ci --skill a --skill b",
        )
        .unwrap();
        assert_eq!(order.skills, ["a", "b"]);
        assert_eq!(
            (order.schedule.as_str(), order.prompt.as_str()),
            ("every 2h", "look at\nthe build")
        );
        assert_eq!((order.repeat, order.name.as_deref()), (Some(3), Some("ci")));
        for wrong in [
            "",
            "\"every 2h\"",
            "30m go --repeat x",
            "30m go --what 1",
            "30m go --name",
        ] {
            assert!(read_order(wrong).is_err(), "{wrong:?}");
        }
    }
}
