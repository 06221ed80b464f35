//! execute_code: Python in the sandbox, with the conversation's tools at hand.
//!
//! The script runs inside like any other command. What it imports as `hermes_tools` speaks to a Unix
//! socket inside the sandbox, whose connections the warden relays to us ([`calls`]); there is no mount,
//! no network and no polling. Each call then goes the way of every other: judged, asked, redacted.

mod answer;
mod calls;
mod script_folder;
mod script_folders;
mod stub;

use std::sync::Arc;
use std::time::Duration;

use hermetic_policy::Cleared;
use hermetic_sandbox::{
    CommandBond, FinishedCommand, OutputListener, OutputTerms, RunError, Sandbox, gather,
};
use hermetic_types::{Command, CommandInput, RunId, SharedClock};
use hermetic_warden::client::WardenCallError;
use hermetic_warden::protocol::{FailureKind, KillRequest};
use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::answer::{CodeAnswer, NO_PYTHON};
use self::calls::ScriptCalls;
use self::script_folder::ScriptFolder;
use self::script_folders::ScriptFolders;
use crate::output::gathered;
use crate::terminal::in_full;
use crate::toolbox::RawAnswer;
use crate::{BlockedCommand, ConversationTools, TerminalOutcome, toolbox};

pub(crate) use self::stub::CALLABLE;

#[derive(Clone, Debug)]
pub struct CodeTool {
    settings: CodeSettings,
    script_folders: Arc<ScriptFolders>,
    clock: SharedClock,
}

#[derive(Clone, Copy, Debug)]
pub struct CodeSettings {
    pub timeout: Duration,
    /// Tools one script may call.
    pub most_calls: u32,
    pub directory: ScriptDirectory,
}

/// Where a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptDirectory {
    /// Where the conversation's shell is.
    Project,
    /// In an empty folder of its own.
    Strict,
}

#[derive(Debug, Error)]
enum CodeError {
    #[error("code must be a string that is not empty")]
    NoCode,
    #[error("the script holds a NUL byte")]
    NulByte,
    #[error(transparent)]
    Blocked(#[from] BlockedCommand),
    #[error("{0}")]
    NoSandbox(String),
    #[error("the script could not be put into the sandbox")]
    Prepare(#[source] WardenCallError),
    #[error("the script was not judged as a script")]
    NotAScript,
    #[error("{NO_PYTHON}")]
    NoPython,
    #[error(transparent)]
    Run(#[from] RunError),
}

impl CodeTool {
    pub const NAME: &'static str = "execute_code";

    /// The clock tells which folders of earlier scripts are old.
    pub fn new(settings: CodeSettings, clock: SharedClock) -> Self {
        Self {
            settings,
            script_folders: Arc::default(),
            clock,
        }
    }

    pub(crate) fn description(&self, tools: &[&str]) -> String {
        format!(
            "Runs a Python script in this conversation's workspace and returns what it prints. Tools can \
             be called from it: from hermes_tools import {}. Each returns what the tool returns, parsed. \
             Helpers there: json_parse, shell_quote, retry. Use it to loop over calls, to filter long \
             results and to compute; print what you want to see. It is ended after {} seconds and may \
             call tools {} times. terminal has no background and no pty there.",
            tools.join(", "),
            self.settings.timeout.as_secs(),
            self.settings.most_calls
        )
    }

    pub(crate) fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {"code": {"type": "string", "description": "the Python script"}},
            "required": ["code"],
        })
    }
}

impl ConversationTools<'_> {
    /// A Python script to its end, with every tool it calls.
    pub(crate) async fn call_code(
        &self,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> RawAnswer {
        let redactor = self.kit.terminal.redactor();
        let begun = Instant::now();
        // What is no text is as good as no script.
        let code = arguments.get("code").and_then(Value::as_str);
        match self.run_code(code.unwrap_or_default(), stop).await {
            Ok(answer) => answer.into_raw(redactor, begun.elapsed()),
            Err(CodeError::Blocked(blocked)) => RawAnswer {
                json: blocked.to_json(),
                failed: true,
            },
            Err(error) => {
                let error = redactor.redact(in_full(&error));
                RawAnswer {
                    json: json!({
                        "status": "error",
                        "error": error.as_str(),
                        "output": "",
                        "tool_calls_made": 0,
                        "duration_seconds": answer::seconds(begun.elapsed()),
                    }),
                    failed: true,
                }
            }
        }
    }

    /// The same for a person, who reads an outcome.
    pub(crate) async fn run_python(
        &self,
        code: &str,
        stop: &CancellationToken,
    ) -> Result<TerminalOutcome, BlockedCommand> {
        let terminal = &self.kit.terminal;
        match self.run_code(code, stop).await {
            Ok(answer) => Ok(answer.into_outcome(terminal)),
            Err(CodeError::Blocked(blocked)) => Err(blocked),
            Err(CodeError::Run(error)) => Ok(terminal.not_run(&error)),
            Err(CodeError::NoPython) => Ok(terminal.failed(answer::NO_PYTHON_FOR_PEOPLE)),
            Err(error) => Ok(terminal.failed(&in_full(&error))),
        }
    }

    async fn run_code(
        &self,
        code: &str,
        stop: &CancellationToken,
    ) -> Result<CodeAnswer, CodeError> {
        let settings = &self.kit.code.settings;
        if code.trim().is_empty() {
            return Err(CodeError::NoCode);
        }
        if code.contains('\0') {
            return Err(CodeError::NulByte);
        }
        let held = self.sandbox(stop).await.map_err(CodeError::NoSandbox)?;
        let script_folders = &self.kit.code.script_folders;
        script_folders.tidy(&held, self.kit.code.clock.now()).await;
        let taken = script_folders.take();
        let place = &taken.place;
        let folder = match settings.directory {
            ScriptDirectory::Project => toolbox::place(&held).await,
            ScriptDirectory::Strict => Some(place.folder().to_owned()),
        };
        // Judged before anything is written: of a script that is refused nothing is left inside.
        let (script, cleared) = self.clear_code(code, place, folder, stop).await?;
        let warden = held.warden();
        let tools = self.script_tools();
        let mut listener = match place.prepare(warden, &script, &stub::module(&tools)).await {
            Ok(listener) => listener,
            Err(error) => {
                place.clear(warden).await;
                return Err(CodeError::Prepare(error));
            }
        };
        // A token of the calls' own: they end with the script, and not only when somebody
        // interrupts it.
        let ended = stop.child_token();
        let calls = ScriptCalls::new(self, place, &tools, settings.most_calls, &ended);
        let ran = tokio::select! {
            ran = run(&held, cleared, self.listener, stop) => ran,
            never = calls.serve(&mut listener) => match never {},
        };
        // Calls that the script did not wait for end here, and the socket goes.
        ended.cancel();
        let made = calls.made();
        drop(listener);
        place.clear(warden).await;
        match ran {
            Ok(finished) => Ok(CodeAnswer::new(finished, made, settings.timeout)),
            Err(error) if is_missing(&error) => Err(CodeError::NoPython),
            Err(error) => Err(error.into()),
        }
    }

    /// The script is judged as what Python reads, and comes back as the file that Python will read.
    async fn clear_code(
        &self,
        code: &str,
        place: &ScriptFolder,
        folder: Option<String>,
        stop: &CancellationToken,
    ) -> Result<(Vec<u8>, Cleared), CodeError> {
        let mut command = Command::words(["python3", "-"]);
        command.stdin = CommandInput::Bytes(code.as_bytes().to_vec());
        command.timeout = Some(self.kit.code.settings.timeout);
        command.env = place.environment();
        command.workdir = folder;
        let terminal = &self.kit.terminal;
        let cleared = terminal.clear_command(command, self.ask, stop).await?;
        cleared
            .script_in_file(&place.script())
            .map_err(|_| CodeError::NotAScript)
    }
}

/// To the end of everything the script started, whoever brings it about.
async fn run(
    sandbox: &Sandbox,
    cleared: Cleared,
    listener: Option<&dyn OutputListener>,
    stop: &CancellationToken,
) -> Result<FinishedCommand, RunError> {
    let id = RunId::random();
    let running = sandbox
        .start_as(id.clone(), cleared, CommandBond::Caller)
        .await?;
    let end = || sandbox.warden().kill(KillRequest::Run(id.clone()));
    let kept = OutputTerms {
        bound: gathered(answer::STDOUT),
        listener,
    };
    let finished = gather(running, None, kept, stop, end()).await?;
    if finished.ended.leftovers > 0 {
        end().await?;
    }
    Ok(finished)
}

fn is_missing(error: &RunError) -> bool {
    matches!(error, RunError::Call(WardenCallError::Failed(failure))
        if failure.kind == FailureKind::ProgramNotFound)
}
