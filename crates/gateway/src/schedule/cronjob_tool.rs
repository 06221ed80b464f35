//! The tool `cronjob`, with the actions and parameters that Hermes has.

use std::sync::{Arc, LazyLock};

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{ToolResult, ToolSpec};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::orders::JobChange;
use super::{JobOrder, JobRefused, described_job};
use crate::Gateway;
use crate::conversation::OwnTool;
use crate::message::AcceptedMessage;

/// Makes and changes the jobs of whoever speaks.
#[derive(Debug)]
pub(crate) struct CronjobTool<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) message: &'a AcceptedMessage,
}

const NAME: &str = "cronjob";

const DESCRIPTION: &str = "Schedule work for later or again and again. Each run is a fresh agent in a sandbox of the \
    job's own that knows nothing of this conversation: put everything it needs into the prompt, and name the \
    skills that it is to follow. Nobody is \
    there during a run, so what needs a person's yes is refused. What the run answers is sent to this chat; \
    it answers [SILENT] if there is nothing to report. Actions: create (schedule, prompt), list, update \
    (job_id), pause, resume, run, remove. A schedule is '30m' or 'in 2h' (once), 'every 2h', 'every monday \
    9am', a cron expression '0 9 * * 1-5', or an ISO time '2026-02-03T14:00'.";

/// Parameters of Hermes that mean something which is not here.
const NOT_HERE: [(&str, &str); 3] = [
    (
        "script",
        "scripts of the host are not run here; put the command into the prompt",
    ),
    ("no_agent", "a job is always an agent here"),
    (
        "context_from",
        "a run does not see what another job said here",
    ),
];

/// The same for every turn.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(spec);

fn spec() -> ToolSpec {
    let text = |about: &str| json!({"type": "string", "description": about});
    ToolSpec {
        name: NAME.into(),
        description: DESCRIPTION.into(),
        schema: Arc::new(json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["create", "list", "update", "pause", "resume", "remove", "run"],
                },
                "job_id": text("The id or the name of a job, for all but create and list"),
                "schedule": text("When it is due"),
                "prompt": text("What is to be done, complete in itself"),
                "name": text("A short name"),
                "repeat": {"type": "integer", "description": "How often; for ever if left out"},
                "deliver": text("origin (this chat), local (kept, not sent), or a platform's name for its home channel"),
                "skills": {
                    "type": "array", "items": {"type": "string"},
                    "description": "Skills that each run follows, as skills_list names them; [] for none",
                },
                "model": text("The model that answers its runs, of those this gateway has; default for the usual one"),
                "include_disabled": {"type": "boolean", "description": "list: paused and ended ones, too"},
            },
            "required": ["action"],
        })),
    }
}

impl OwnTool for CronjobTool<'_> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn spec(&self) -> ToolSpec {
        SPEC.clone()
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        _: CancellationToken,
    ) -> BoxFuture<'a, ToolResult> {
        async move {
            let (answer, failed) = match self.act(arguments).await {
                Ok(answer) => (answer, false),
                Err(refused) => {
                    if let JobRefused::Store(error) = &refused {
                        tracing::error!(%error, "a job could not be written or read");
                    }
                    (
                        json!({"success": false, "error": refused.to_string()}),
                        true,
                    )
                }
            };
            let text = self.gateway.redactor.redact_json(answer).to_text();
            let mut result = ToolResult::new(text);
            result.failed = failed;
            result
        }
        .boxed()
    }
}

impl CronjobTool<'_> {
    async fn act(&self, arguments: &Map<String, Value>) -> Result<Value, JobRefused> {
        // Refused and not passed over: without its script or skill the job would run and do
        // something else than was meant.
        if let Some((_, why)) = NOT_HERE.iter().find(|(name, _)| is_given(arguments, name)) {
            return Err(JobRefused::words(*why));
        }
        let (gateway, message) = (self.gateway, self.message);
        let action = text(arguments, "action").unwrap_or_default();
        match action.as_str() {
            "create" => {
                let order = JobOrder {
                    schedule: text(arguments, "schedule").unwrap_or_default(),
                    prompt: text(arguments, "prompt").unwrap_or_default(),
                    name: text(arguments, "name"),
                    deliver: text(arguments, "deliver"),
                    repeat: repeat(arguments)?,
                    skills: skills(arguments).unwrap_or_default(),
                    model: model(arguments),
                };
                let job = gateway.create_job(message, &order).await?;
                gateway.tell_of_job(message, &job).await;
                let shown = described_job(&job, None, &gateway.settings.schedules.zone);
                Ok(json!({"success": true, "job": shown}))
            }
            "list" => self.list(arguments).await,
            "update" | "pause" | "resume" | "remove" | "run" => {
                let wanted = text(arguments, "job_id").unwrap_or_default();
                let job = gateway.own_job(message, &wanted).await?;
                let job = match action.as_str() {
                    "update" => {
                        let change = change(arguments)?;
                        let job = gateway.change_job(message, &job, change).await?;
                        gateway.tell_of_job(message, &job).await;
                        job
                    }
                    "resume" => gateway.resume_job(&job).await?,
                    "pause" => {
                        gateway.pause_job(&job).await?;
                        gateway.own_job(message, job.id.as_str()).await?
                    }
                    "run" => {
                        gateway.run_job_now(&job).await?;
                        job
                    }
                    _ => {
                        gateway.remove_job(&job).await?;
                        return Ok(json!({"success": true, "removed": job.id}));
                    }
                };
                let shown = described_job(&job, None, &gateway.settings.schedules.zone);
                Ok(json!({"success": true, "job": shown}))
            }
            _ => Err(JobRefused::words("there is no such action")),
        }
    }

    async fn list(&self, arguments: &Map<String, Value>) -> Result<Value, JobRefused> {
        let all = arguments.get("include_disabled") == Some(&Value::Bool(true));
        let mut shown = Vec::new();
        for job in self.gateway.own_jobs(self.message).await? {
            if !all && job.state != hermetic_store::JobState::Scheduled {
                continue;
            }
            let last = self.gateway.jobs.runs(&job.id, 1).await?;
            let zone = &self.gateway.settings.schedules.zone;
            shown.push(described_job(&job, last.first(), zone));
        }
        Ok(json!({"success": true, "count": shown.len(), "jobs": shown}))
    }
}

fn change(arguments: &Map<String, Value>) -> Result<JobChange, JobRefused> {
    Ok(JobChange {
        schedule: text(arguments, "schedule"),
        prompt: text(arguments, "prompt"),
        name: text(arguments, "name"),
        deliver: text(arguments, "deliver"),
        repeat: repeat(arguments)?,
        skills: skills(arguments),
        model: model(arguments),
    })
}

/// One name or several; `skill` is an older word for it.
fn skills(arguments: &Map<String, Value>) -> Option<Vec<String>> {
    match arguments.get("skills").or_else(|| arguments.get("skill"))? {
        Value::String(name) if !name.trim().is_empty() => Some(vec![name.clone()]),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            Some(names.map(str::to_owned).collect())
        }
        _ => None,
    }
}

/// Its name, or the record that Hermes writes it as.
fn model(arguments: &Map<String, Value>) -> Option<String> {
    text(arguments, "model").or_else(|| text(arguments.get("model")?.as_object()?, "model"))
}

fn text(arguments: &Map<String, Value>, name: &str) -> Option<String> {
    let text = arguments.get(name)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A number, or the words that Hermes takes for one.
fn repeat(arguments: &Map<String, Value>) -> Result<Option<u32>, JobRefused> {
    let wrong = || JobRefused::words("repeat is a whole number, once or forever");
    Ok(match arguments.get("repeat") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "" | "forever" => None,
            "once" => Some(1),
            text => Some(text.parse().map_err(|_| wrong())?),
        },
        Some(number) => {
            let number = number.as_i64().ok_or_else(wrong)?;
            u32::try_from(number).ok().filter(|number| *number > 0)
        }
    })
}

fn is_given(arguments: &Map<String, Value>, name: &str) -> bool {
    match arguments.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    }
}
