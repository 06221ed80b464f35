//! What a script came to, in the keys that models know.

use std::time::Duration;

use hermetic_redact::Redactor;
use hermetic_sandbox::{DroppedLink, FinishedCommand, HeadTail};
use hermetic_warden::protocol::CutReason;
use serde_json::{Value, json};

use crate::output::shown;
use crate::toolbox::RawAnswer;
use crate::{TerminalOutcome, TerminalTool};

/// How much of what a script prints is shown.
pub(super) const STDOUT: usize = 50_000;
const STDERR: usize = 10_000;

pub(super) const NO_PYTHON: &str = "there is no python3 in this sandbox, so no script can run; use the \
    terminal, or ask the operator for an image with python3";

/// The same for somebody who has no tools to choose from.
pub(super) const NO_PYTHON_FOR_PEOPLE: &str =
    "there is no python3 in this sandbox; the operator can give it an image that has one";

pub(super) struct CodeAnswer {
    finished: FinishedCommand,
    made: u32,
    timeout: Duration,
}

impl CodeAnswer {
    pub(super) fn new(finished: FinishedCommand, made: u32, timeout: Duration) -> Self {
        Self {
            finished,
            made,
            timeout,
        }
    }

    pub(super) fn into_outcome(self, terminal: &TerminalTool) -> TerminalOutcome {
        terminal.finished(&self.finished, Some(self.timeout))
    }

    pub(super) fn into_raw(self, redactor: &Redactor, took: Duration) -> RawAnswer {
        let Self {
            finished,
            made,
            timeout,
        } = self;
        let nothing = HeadTail::new(0);
        let mut output = shown([&finished.stdout, &nothing], redactor, STDOUT).into_inner();
        let errors = shown([&finished.stderr, &nothing], redactor, STDERR).into_inner();
        let code = finished.code();
        let (status, error) = if finished.interrupted {
            output.push_str("\n[execution interrupted]");
            ("interrupted", None)
        } else if finished.ended.cut == Some(CutReason::TimedOut) {
            let text = format!(
                "The script was ended after {} seconds, with everything it had started.",
                timeout.as_secs()
            );
            ("timeout", Some(text))
        } else if finished.dropped == Some(DroppedLink::SandboxEnded) {
            let text = "The sandbox ended while the script ran: what it did after this output is not known.";
            ("error", Some(text.to_owned()))
        } else if code == 0 {
            ("success", None)
        } else if errors.is_empty() {
            (
                "error",
                Some(format!("The script exited with code {code}.")),
            )
        } else {
            ("error", Some(errors.clone()))
        };
        if code != 0 && !errors.is_empty() {
            output.push_str("\n--- stderr ---\n");
            output.push_str(&errors);
        }
        let total = finished.stdout.total();
        let captured = total.min(STDOUT as u64);
        let mut json = json!({
            "status": status,
            "output": output.trim_start_matches('\n'),
            "exit_code": code,
            "tool_calls_made": made,
            "duration_seconds": seconds(took),
            "stdout_truncated": total > captured,
            "stdout_bytes_captured": captured,
            "stdout_bytes_total": total,
            "stdout_bytes_omitted": total - captured,
        });
        if let Some(error) = error {
            json["error"] = error.into();
        }
        if finished.ended.killed_for_memory {
            json["warning"] = "The memory limit was reached and something was killed".into();
        }
        RawAnswer {
            json,
            failed: status != "success",
        }
    }
}

/// To the hundredth.
pub(super) fn seconds(span: Duration) -> Value {
    let hundredths = u32::try_from(span.as_millis() / 10).unwrap_or(u32::MAX);
    (f64::from(hundredths) / 100.0).into()
}
