//! The process tool: what becomes of commands in the background.

mod order;

use std::sync::Arc;
use std::time::Duration;

use hermetic_redact::Redactor;
use hermetic_types::Boundary;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::order::{ProcessInput, ProcessOrder};
use crate::background::{BackgroundProcess, ProcessEnd};
use crate::toolbox::RawAnswer;
use crate::{BlockedCommand, CommandRequest, ConversationTools, ProcessTell};

pub(crate) const NAME: &str = "process";

pub(crate) const DESCRIPTION: &str = "Follows and steers background processes that the terminal \
    started. Actions: list (all of them), poll (state and latest output), log (output by lines), wait \
    (until it ends or the timeout), kill (it and everything it started), write (data to its stdin), \
    submit (data and a newline), close (end of its stdin).";

/// How much of the output poll and wait show.
const PREVIEW: usize = 1000;
const AFTER_WAIT: usize = 2000;
const IN_LIST: usize = 200;
/// A process that does not read its stdin for so long does not want it.
const UNREAD: Duration = Duration::from_secs(10);

pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": order::ACTIONS},
            "session_id": {
                "type": "string",
                "description": "as the terminal gave it; for everything but list",
            },
            "data": {"type": "string", "description": "for write and submit"},
            "timeout": {"type": "integer", "minimum": 1, "description": "seconds, for wait"},
            "offset": {
                "type": "integer", "minimum": 0,
                "description": "first line, for log; without it the last lines are shown",
            },
            "limit": {"type": "integer", "minimum": 1, "description": "lines, for log (200)"},
        },
        "required": ["action"],
    })
}

impl ConversationTools<'_> {
    pub(crate) async fn call_process(
        &self,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> RawAnswer {
        let answer = match ProcessOrder::read(arguments) {
            Ok(order) => self.obey(order, stop).await,
            Err(wrong) => Err(json!({"status": "error", "error": wrong.to_string()})),
        };
        match answer {
            Ok(json) => RawAnswer {
                json,
                failed: false,
            },
            Err(json) => RawAnswer { json, failed: true },
        }
    }

    async fn obey(&self, order: ProcessOrder, stop: &CancellationToken) -> Result<Value, Value> {
        let redactor = self.kit.terminal.redactor();
        match order {
            ProcessOrder::List => {
                let all = self.kit.background.of(self.conversation());
                let listed: Vec<_> = all.iter().map(|each| listed(each, redactor)).collect();
                Ok(json!({"processes": listed}))
            }
            ProcessOrder::Poll(id) => Ok(polled(&*self.known(&id)?, redactor)),
            ProcessOrder::Log { id, offset, limit } => {
                Ok(logged(&*self.known(&id)?, redactor, offset, limit))
            }
            ProcessOrder::Wait { id, seconds } => {
                let process = self.known(&id)?;
                Ok(self.wait_for(&process, seconds, stop).await)
            }
            ProcessOrder::Kill(id) => {
                let process = self.known(&id)?;
                self.kill(&process).await
            }
            ProcessOrder::Write { id, input } => {
                let process = self.known(&id)?;
                self.write_to(&process, input, stop).await
            }
        }
    }

    fn known(&self, session_id: &str) -> Result<Arc<BackgroundProcess>, Value> {
        let found = self.kit.background.find(self.conversation(), session_id);
        found.ok_or_else(|| {
            json!({
                "status": "not_found",
                "error": format!("no process with the id {session_id:?} in this conversation; process list shows them"),
            })
        })
    }

    async fn wait_for(
        &self,
        process: &BackgroundProcess,
        asked: Option<u64>,
        stop: &CancellationToken,
    ) -> Value {
        let redactor = self.kit.terminal.redactor();
        let longest = self.kit.terminal.timeout();
        let asked = asked.map_or(longest, Duration::from_secs);
        let span = asked.min(longest);
        let clamped = (asked > longest).then(|| {
            let (asked, longest) = (asked.as_secs(), longest.as_secs());
            format!("A wait is at most {longest} s here; {asked} were asked for.")
        });
        let over = tokio::select! {
            waited = timeout(span, process.over()) => waited.is_ok(),
            () = stop.cancelled() => {
                let output = last(process, redactor, PREVIEW);
                return json!({
                    "status": "interrupted",
                    "command": command(process, redactor),
                    "output": output,
                    "note": "The wait was interrupted; the process goes on.",
                });
            }
        };
        if over {
            let mut json = polled(process, redactor);
            if let Some(fields) = json.as_object_mut() {
                fields.remove("output_preview");
            }
            json["output"] = last(process, redactor, AFTER_WAIT).into();
            if let Some(note) = clamped {
                json["timeout_note"] = note.into();
            }
            return json;
        }
        let waited = format!(
            "Waited {} s; it goes on. Wait again or poll.",
            span.as_secs()
        );
        let note = clamped.map_or(waited.clone(), |clamped| format!("{clamped} {waited}"));
        json!({
            "status": "timeout",
            "command": command(process, redactor),
            "output": last(process, redactor, PREVIEW),
            "timeout_note": note,
        })
    }

    async fn kill(&self, process: &BackgroundProcess) -> Result<Value, Value> {
        let id = process.session_id();
        let redactor = self.kit.terminal.redactor();
        if let Some(end) = process.end() {
            let mut json = json!({
                "status": "already_exited",
                "session_id": id,
                "command": command(process, redactor),
                "output": last(process, redactor, AFTER_WAIT),
            });
            tell_end(&mut json, process, end);
            return Ok(json);
        }
        match self.kit.background.kill(process).await {
            Ok(()) => {
                let mut json = json!({
                    "status": "killed",
                    "session_id": id,
                    "output": last(process, redactor, AFTER_WAIT),
                });
                if let Some(end) = process.end() {
                    tell_end(&mut json, process, end);
                }
                Ok(json)
            }
            Err(error) => Err(failed(self.kit.terminal.redactor(), &error.to_string())),
        }
    }

    async fn write_to(
        &self,
        process: &BackgroundProcess,
        input: ProcessInput,
        stop: &CancellationToken,
    ) -> Result<Value, Value> {
        let redactor = self.kit.terminal.redactor();
        if let Some(end) = process.end() {
            return Err(json!({
                "status": "already_exited",
                "error": "the process has ended",
                "exit_code": code(end),
            }));
        }
        let Some(stdin) = process.stdin() else {
            return Err(failed(
                redactor,
                "the process cannot be reached at the moment",
            ));
        };
        let data = match input {
            ProcessInput::Close => {
                let closed = stdin.end().await;
                closed.map_err(|error| failed(redactor, &error.to_string()))?;
                return Ok(json!({"status": "ok", "message": "stdin closed"}));
            }
            ProcessInput::Data(data) => data,
        };
        self.clear_input(&data, stop).await?;
        let written = tokio::select! {
            written = timeout(UNREAD, stdin.write(data.as_bytes())) => written,
            () = stop.cancelled() => return Err(failed(redactor, "interrupted while writing")),
        };
        match written {
            Ok(Ok(())) => Ok(json!({"status": "ok", "bytes_written": data.len()})),
            Ok(Err(error)) => Err(failed(redactor, &error.to_string())),
            Err(_) => Err(failed(
                redactor,
                "the process does not read its stdin; part of the data may wait there",
            )),
        }
    }

    /// Where commands are judged, what is typed into one that runs is judged as well: it may be a
    /// shell. It may also be an interpreter of something that nobody here can read, so only plain
    /// answers get through; code goes in a command of its own, where it is looked at.
    async fn clear_input(&self, data: &str, stop: &CancellationToken) -> Result<(), Value> {
        let terminal = &self.kit.terminal;
        if terminal.boundary() == Boundary::Sealed || data.trim().is_empty() {
            return Ok(());
        }
        if !order::is_plain(data) {
            let why = "On a machine without a sandbox only plain words can be typed into a running \
                process. Nothing was written. Put code into a command or a file, so that it can be judged.";
            return Err(BlockedCommand::because(why).to_json());
        }
        let cleared = terminal
            .clear(CommandRequest::shell(data), self.ask, stop)
            .await;
        cleared.map(drop).map_err(|blocked| blocked.to_json())
    }
}

fn listed(process: &BackgroundProcess, redactor: &Redactor) -> Value {
    let mut json = described(process, redactor);
    let shortened: String = command(process, redactor).chars().take(IN_LIST).collect();
    json["command"] = shortened.into();
    match &process.terms.tell {
        ProcessTell::Nothing => {}
        ProcessTell::End => json["notify_on_complete"] = true.into(),
        ProcessTell::Matches(patterns) => json["watch_patterns"] = json!(patterns),
    }
    json["output_preview"] = last(process, redactor, IN_LIST).into();
    json
}

fn polled(process: &BackgroundProcess, redactor: &Redactor) -> Value {
    let mut json = described(process, redactor);
    json["output_preview"] = last(process, redactor, PREVIEW).into();
    json
}

fn described(process: &BackgroundProcess, redactor: &Redactor) -> Value {
    let end = process.end();
    let mut json = json!({
        "session_id": process.session_id(),
        "command": command(process, redactor),
        "status": if end.is_some() { "exited" } else { "running" },
        "pid": process.pid(),
        "uptime_seconds": process.age().as_secs(),
    });
    if let Some(end) = end {
        tell_end(&mut json, process, end);
    }
    if let Some(ProcessEnd::Lost(why)) = end {
        json["note"] = format!("Nobody knows how it ended: {why}.").into();
    }
    json
}

fn logged(
    process: &BackgroundProcess,
    redactor: &Redactor,
    offset: Option<usize>,
    limit: usize,
) -> Value {
    let output = process.output(redactor);
    let lines: Vec<&str> = output.as_str().lines().collect();
    let from = offset.unwrap_or_else(|| lines.len().saturating_sub(limit));
    let shown: Vec<&str> = lines.iter().skip(from).take(limit).copied().collect();
    let text = crate::output::cut(&shown.join("\n"), order::MOST_LOG_CHARS);
    json!({
        "session_id": process.session_id(),
        "command": command(process, redactor),
        "status": if process.end().is_some() { "exited" } else { "running" },
        // Cut out of text that is redacted already.
        "output": redactor.redact(text).as_str(),
        "total_lines": lines.len(),
        "showing": format!("{} lines", shown.len()),
    })
}

fn last(process: &BackgroundProcess, redactor: &Redactor, chars: usize) -> String {
    let output = process.output(redactor);
    let text = output.as_str().trim_end();
    let count = text.chars().count();
    text.chars().skip(count.saturating_sub(chars)).collect()
}

fn command(process: &BackgroundProcess, redactor: &Redactor) -> String {
    redactor.redact(&process.terms.command).into_inner()
}

/// How it ended, and on whose account.
fn tell_end(json: &mut Value, process: &BackgroundProcess, end: ProcessEnd) {
    let (reason, source) = match end {
        _ if process.was_killed() => ("killed", "process.kill"),
        ProcessEnd::Exited(_) => ("exited", ""),
        ProcessEnd::Lost(_) => ("lost", "backend_lost"),
    };
    json["exit_code"] = code(end).into();
    json["completion_reason"] = reason.into();
    json["termination_source"] = source.into();
}

/// -1 where nobody knows.
fn code(end: ProcessEnd) -> i32 {
    end.code().unwrap_or(-1)
}

fn failed(redactor: &Redactor, error: &str) -> Value {
    json!({"status": "error", "error": redactor.redact(error).as_str()})
}
