//! The terminal: one command in the conversation's sandbox.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hermetic_policy::{Cleared, JudgementContext, Policy, ShellOutline};
use hermetic_redact::Redactor;
use hermetic_sandbox::{
    DroppedLink, FinishedCommand, OutputListener, OutputTerms, RunError, Sandbox,
};
use hermetic_types::{
    Boundary, Command, CommandInput, CommandProgram, ConversationKey, OutputMode, Secret,
};
use hermetic_warden::client::WardenCallError;
use hermetic_warden::protocol::FailureKind;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::ask::settle;
use crate::exit_code;
use crate::outcome::approval;
use crate::output::{gathered, shown};
use crate::shell_queue::{NoTurn, ShellQueues, ShellTurn};
use crate::sudo::{self, AskpassFile};
use crate::{
    BlockedCommand, CommandApprover, CommandRequest, DecidedCommand, JudgedAs, RequestedCode,
    RunManner, TerminalOutcome,
};

/// Runs commands. Holds nothing of a conversation but who is next at its shell.
#[derive(Clone, Debug)]
pub struct TerminalTool {
    policy: Arc<Policy>,
    redactor: Redactor,
    settings: TerminalSettings,
    queues: ShellQueues,
}

#[derive(Clone, Debug)]
pub struct TerminalSettings {
    /// Where commands run, and what the policy protects there.
    pub context: JudgementContext,
    /// For a command that names no timeout.
    pub timeout: Duration,
    pub max_foreground_timeout: Duration,
    /// Commands share one shell: `cd` and variables last.
    pub persistent_shell: bool,
    /// How much of the output is shown.
    pub output_chars: usize,
    /// For `sudo`, where a command runs on a real machine.
    pub sudo_password: Option<Secret>,
}

/// What a pty is said to be, in columns and rows.
const WINDOW: (u16, u16) = (120, 40);

/// As much as a model is given of any result.
const MOST_CHARS: usize = 100_000;

impl TerminalTool {
    pub const NAME: &'static str = "terminal";

    pub fn new(policy: Arc<Policy>, redactor: Redactor, mut settings: TerminalSettings) -> Self {
        settings.output_chars = settings.output_chars.min(MOST_CHARS);
        Self {
            policy,
            redactor,
            settings,
            queues: ShellQueues::default(),
        }
    }

    pub fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The folder that commands start in.
    pub(crate) fn workspace(&self) -> &str {
        &self.settings.context.workspace
    }

    pub(crate) fn boundary(&self) -> Boundary {
        self.settings.context.boundary()
    }

    pub fn max_foreground_timeout(&self) -> Duration {
        self.settings.max_foreground_timeout
    }

    pub fn description(&self) -> String {
        let lasting = if self.settings.persistent_shell {
            "Commands share one bash: the folder you change to and the variables you export last. A \
             command with a workdir runs in a fresh bash there."
        } else {
            "Each command runs in a fresh bash: the folder you change to lasts, variables do not. A \
             workdir is for its command only."
        };
        format!(
            "Runs a shell command in this conversation's workspace and returns its output and exit code. \
             {lasting} It is ended after {} seconds unless you give a timeout of at most {}. What does not \
             end by itself (servers, watchers, long builds) goes in the background: it returns a \
             session_id for the process tool at once. With notify_on_complete you are told of its end, so \
             do not wait for it. A pty is for programs that want a terminal.",
            self.settings.timeout.as_secs(),
            self.settings.max_foreground_timeout.as_secs()
        )
    }

    pub fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "the shell command"},
                "background": {
                    "type": "boolean",
                    "description": "start it and return at once; follow it with the process tool",
                },
                "timeout": {
                    "type": "integer",
                    "minimum": 1,
                    "description": format!(
                        "seconds, at most {}", self.settings.max_foreground_timeout.as_secs()
                    ),
                },
                "workdir": {"type": "string", "description": "the folder to run in"},
                "pty": {
                    "type": "boolean",
                    "description": "give it a terminal, in a fresh bash of its own",
                },
                "notify_on_complete": {
                    "type": "boolean",
                    "description": "with background: you are told when it has ended",
                },
                "watch_patterns": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "with background: you are told, at most every 15 seconds, when one of \
                        these texts stands in a line of its output; not together with notify_on_complete",
                },
            },
            "required": ["command"],
        })
    }

    /// Asks the policy, and a person where the policy wants one. Nothing runs without what this
    /// returns.
    pub async fn clear(
        &self,
        request: CommandRequest,
        ask: &dyn CommandApprover,
        stop: &CancellationToken,
    ) -> Result<Cleared, BlockedCommand> {
        self.refuse_guessing(&request)?;
        self.clear_command(self.command(request), ask, stop).await
    }

    pub(crate) async fn clear_command(
        &self,
        command: Command,
        ask: &dyn CommandApprover,
        stop: &CancellationToken,
    ) -> Result<Cleared, BlockedCommand> {
        let context = &self.settings.context;
        let decided = |as_what: JudgedAs<'_>| {
            ask.decided(DecidedCommand {
                backend: context.backend,
                command: &command,
                as_what,
            })
        };
        let verdict = self.policy.judge(command.clone(), context);
        settle(verdict, decided, ask, stop).await
    }

    /// Lets a program of the operator's configuration through, unless the operator forbade it. Its
    /// environment is not for the record.
    pub(crate) async fn clear_configured(
        &self,
        command: Command,
        ask: &dyn CommandApprover,
        stop: &CancellationToken,
    ) -> Result<Cleared, BlockedCommand> {
        let context = &self.settings.context;
        let mut record = command.clone();
        record.env.clear();
        let decided = |as_what: JudgedAs<'_>| {
            ask.decided(DecidedCommand {
                backend: context.backend,
                command: &record,
                as_what,
            })
        };
        let verdict = self.policy.judge_configured(command, context);
        settle(verdict, decided, ask, stop).await
    }

    /// For a command in the conversation's shell: its turn there. It is judged and run while it holds
    /// that.
    pub(crate) async fn shell_turn(
        &self,
        request: &CommandRequest,
        conversation: &ConversationKey,
        stop: &CancellationToken,
    ) -> Result<Option<ShellTurn>, NoTurn> {
        if !self.shares_shell(request) {
            return Ok(None);
        }
        self.queues.turn(conversation, stop).await.map(Some)
    }

    pub async fn run(
        &self,
        sandbox: &Sandbox,
        cleared: Cleared,
        stop: &CancellationToken,
    ) -> TerminalOutcome {
        self.run_heard(sandbox, cleared, None, stop).await
    }

    /// The same, with somebody who hears the output while it comes.
    pub async fn run_heard(
        &self,
        sandbox: &Sandbox,
        cleared: Cleared,
        listener: Option<&dyn OutputListener>,
        stop: &CancellationToken,
    ) -> TerminalOutcome {
        let command = cleared.command();
        let timeout = command.timeout;
        let approval = approval(cleared.grounds());
        let program = match &command.program {
            CommandProgram::Shell(text) | CommandProgram::Script(text) => {
                ShellOutline::of(text).last
            }
            CommandProgram::Words(_) | CommandProgram::Inside { .. } => None,
        };
        let askpass = match &self.settings.sudo_password {
            Some(password) => match AskpassFile::place(sandbox, command, password).await {
                Ok(askpass) => askpass,
                Err(error) => return self.not_run(&error.into()),
            },
            None => None,
        };
        let with_password = askpass.is_some();
        let kept = OutputTerms {
            bound: gathered(self.settings.output_chars),
            listener,
        };
        let ran = sandbox.run_heard(cleared, kept, stop).await;
        if let Some(askpass) = askpass {
            askpass.remove().await;
        }
        match ran {
            Ok(finished) => self
                .finished(&finished, timeout)
                .explained(program.as_deref(), with_password)
                .approved(approval),
            Err(error) => self.not_run(&error),
        }
    }

    /// For what went wrong before a sandbox was there.
    pub fn failed(&self, error: &str) -> TerminalOutcome {
        TerminalOutcome::Failed {
            error: self.redactor.redact(error),
        }
    }

    /// Whether a command gets a bash of its own. It is told where the conversation is; and where a
    /// command is judged, that is judged with it.
    pub(crate) fn wants_place(&self, request: &CommandRequest) -> bool {
        self.boundary() == Boundary::Judged || !self.shares_shell(request)
    }

    /// A running shell stays where it is and has no terminal, so whoever wants another folder or a
    /// terminal, or goes on after the call, gets a shell of its own.
    fn shares_shell(&self, request: &CommandRequest) -> bool {
        self.settings.persistent_shell
            && request.workdir.is_none()
            && !request.pty
            && request.manner == RunManner::Foreground
    }

    fn command(&self, request: CommandRequest) -> Command {
        let background = request.manner != RunManner::Foreground;
        let shares = self.shares_shell(&request);
        let leads = !self.settings.persistent_shell && request.workdir.is_none() && !background;
        let mut command = match request.what {
            RequestedCode::Shell(text) if self.wants_password(&text) => {
                let mut command = Command::script(text);
                sudo::equip(&mut command);
                command.leads = leads;
                command
            }
            RequestedCode::Shell(text) if shares => Command::shell(text),
            RequestedCode::Shell(text) => {
                let mut command = Command::script(text);
                command.leads = leads;
                command
            }
            RequestedCode::Python(source) => {
                let mut command = Command::words(["python3", "-"]);
                command.stdin = CommandInput::Bytes(source.into_bytes());
                command
            }
        };
        command.output = OutputMode::Merged;
        command.workdir = request.workdir.or(request.place);
        command.timeout = Some(request.timeout.unwrap_or(self.settings.timeout));
        if request.pty {
            command.pty = Some(WINDOW);
            command
                .env
                .insert("TERM".to_owned(), "xterm-256color".to_owned());
        }
        if background {
            command.stdin = CommandInput::Open;
            command.timeout = None;
        }
        command
    }

    fn wants_password(&self, text: &str) -> bool {
        self.settings.sudo_password.is_some()
            && self.boundary() == Boundary::Judged
            && ShellOutline::of(text).sudo
    }

    /// A password that nobody configured can only be a guess.
    fn refuse_guessing(&self, request: &CommandRequest) -> Result<(), BlockedCommand> {
        let RequestedCode::Shell(text) = &request.what else {
            return Ok(());
        };
        let guarded = self.boundary() == Boundary::Judged && self.settings.sudo_password.is_none();
        if guarded && ShellOutline::of(text).sudo_reads_stdin {
            tracing::warn!(backend = %self.settings.context.backend, "a sudo password was guessed");
            return Err(BlockedCommand::because(
                "sudo -S reads a password from stdin, and none is configured here, so it could only be \
                 guessed. Nothing was run. The operator can set SUDO_PASSWORD; then write plain sudo.",
            ));
        }
        Ok(())
    }

    pub(crate) fn finished(
        &self,
        finished: &FinishedCommand,
        timeout: Option<Duration>,
    ) -> TerminalOutcome {
        let code = finished.code();
        let streams = [&finished.stdout, &finished.stderr];
        let mut output = shown(streams, &self.redactor, self.settings.output_chars);
        let seconds = timeout.unwrap_or_default().as_secs();
        let note = match code {
            _ if finished.dropped == Some(DroppedLink::StillRunning) => Some(
                "[The link to the host dropped and it cannot be reached. The command was still \
                 running; it is ended there when its time is over]"
                    .to_owned(),
            ),
            _ if finished.dropped == Some(DroppedLink::Lost) => Some(
                "[The link to the host dropped, and the host no longer knows the command: what it \
                 did after this output is not known]"
                    .to_owned(),
            ),
            _ if finished.dropped == Some(DroppedLink::SandboxEnded) => Some(
                "[The sandbox ended while the command ran: what it did after this output is not known]"
                    .to_owned(),
            ),
            130 if finished.interrupted => Some("[Command interrupted]".to_owned()),
            124 if finished.ended.cut.is_some() => {
                Some(format!("[Command timed out after {seconds}s]"))
            }
            _ if finished.ended.killed_for_memory => {
                Some("[The memory limit was reached and something was killed]".to_owned())
            }
            _ => None,
        };
        if let Some(note) = note {
            let gap = if output.as_str().is_empty() { "" } else { "\n" };
            output = output.then(&self.redactor.redact(format!("{gap}{note}")));
        }
        TerminalOutcome::ran(output, code)
    }

    pub(crate) fn not_run(&self, error: &RunError) -> TerminalOutcome {
        let kind = match error {
            RunError::Call(WardenCallError::Failed(failure)) => Some(failure.kind),
            _ => None,
        };
        let text = in_full(error);
        match kind {
            Some(FailureKind::WorkingDirectory) => TerminalOutcome::ran(self.redactor.redact(text), 126),
            Some(FailureKind::ProgramNotFound) => TerminalOutcome::ran(self.redactor.redact(text), 127),
            // Commands of this process wait for each other: this one is an earlier process's.
            Some(FailureKind::ShellBusy) => self.failed(
                "the shell is still busy with a command from before a restart, so this one was not run; \
                 send it again when that one has ended",
            ),
            _ => self.failed(&text),
        }
    }
}

impl TerminalOutcome {
    fn explained(mut self, program: Option<&str>, with_password: bool) -> Self {
        if let Self::Ran {
            output,
            code,
            meaning,
            sudo_failed,
            ..
        } = &mut self
        {
            *meaning = program.and_then(|program| exit_code::meaning(program, *code));
            let complaints = ["Sorry, try again", "incorrect password attempt"];
            *sudo_failed = with_password
                && *code != 0
                && complaints.iter().any(|text| output.as_str().contains(text));
        }
        self
    }

    fn approved(mut self, by: Option<&'static str>) -> Self {
        if let Self::Ran { approval, .. } = &mut self {
            *approval = by;
        }
        self
    }
}

pub(crate) fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
