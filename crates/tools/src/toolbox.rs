//! Every tool under its name, for one conversation.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use futures::future::{BoxFuture, FutureExt};
use hermetic_policy::Cleared;
use hermetic_redact::Redacted;
use hermetic_sandbox::{OutputListener, Sandbox};
use hermetic_types::{Command, ConversationKey};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::background::{ProcessTerms, StartError};
use crate::code::CALLABLE;
use crate::files::{FileTool, FileTools};
use crate::mcp::{self, McpCaller};
use crate::outcome::approval;
use crate::terminal::in_full;
use crate::web::{self, WebTools};
use crate::{
    BackgroundProcesses, BlockedCommand, CodeTool, CommandApprover, CommandRequest, Held,
    ImageTool, McpServers, ProcessTell, RequestedCode, RunManner, SpeechTool, TerminalOutcome,
    TerminalTool, TodoLists, ToolMedia, ToolWorkplace, process,
};
use crate::{clarify, image_generate, text_to_speech, todo, vision};

/// The tools of an installation. Holds nothing of a conversation.
#[derive(Clone, Debug)]
pub struct ToolKit {
    pub terminal: TerminalTool,
    pub files: FileTools,
    pub background: BackgroundProcesses,
    pub code: CodeTool,
    pub mcp: McpServers,
    pub web: WebTools,
    /// Nobody's where whoever calls keeps a list of their own.
    pub todo: Option<TodoLists>,
    pub images: Option<ImageTool>,
    pub speech: Option<SpeechTool>,
    /// What is told of these tools, made once.
    pub described: SharedDescriptions,
}

/// The tools as one conversation's agent holds them. The sandbox is made at the first call that needs
/// it, not before.
#[derive(Clone, Copy, Debug)]
pub struct ConversationTools<'a> {
    pub(crate) kit: &'a ToolKit,
    pub(crate) workplace: &'a dyn ToolWorkplace,
    pub(crate) ask: &'a dyn CommandApprover,
    /// Hears what a command or script of a call writes, while it runs.
    pub(crate) listener: Option<&'a dyn OutputListener>,
    /// Whether the model is shown files such as PDFs as they are.
    pub(crate) shows_files: bool,
}

/// What a model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDescription {
    pub name: Cow<'static, str>,
    pub description: String,
    /// A JSON schema of an object.
    pub schema: Value,
}

/// The same, shared by all turns that tell it: a copy for each of a thousand turns at once would be most of what
/// they hold.
#[derive(Clone, Debug)]
pub struct SharedDescription {
    pub name: Arc<str>,
    pub description: Arc<str>,
    /// A JSON schema of an object.
    pub schema: Arc<Value>,
}

/// What is told of a kit's tools, without and with somebody who can be asked.
#[derive(Clone, Debug, Default)]
pub struct SharedDescriptions(Arc<[OnceLock<Vec<SharedDescription>>; 2]>);

impl From<ToolDescription> for SharedDescription {
    fn from(tool: ToolDescription) -> Self {
        Self {
            name: tool.name.into(),
            description: tool.description.into(),
            schema: Arc::new(tool.schema),
        }
    }
}

impl ToolDescription {
    /// Whether a call changes nothing.
    pub fn only_reads(&self) -> bool {
        FileTool::of_name(&self.name).is_some_and(FileTool::only_reads)
    }
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    pub json: Redacted<Value>,
    /// Whether it went wrong.
    pub failed: bool,
    /// What the model is shown beside it.
    pub media: Vec<ToolMedia>,
}

/// The same before it is redacted as a whole.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) json: Value,
    pub(crate) failed: bool,
}

impl ToolKit {
    pub fn toolbox<'a>(
        &'a self,
        workplace: &'a dyn ToolWorkplace,
        ask: &'a dyn CommandApprover,
    ) -> ConversationTools<'a> {
        ConversationTools {
            kit: self,
            workplace,
            ask,
            listener: None,
            shows_files: true,
        }
    }
}

impl<'a> ConversationTools<'a> {
    /// The same tools, with somebody who hears the output of what is called.
    #[must_use]
    pub fn heard_by(self, listener: Option<&'a dyn OutputListener>) -> Self {
        Self { listener, ..self }
    }

    /// The same tools, for a model that is shown files such as PDFs or is not. What is not shown is read to it.
    #[must_use]
    pub fn showing_files(self, shows_files: bool) -> Self {
        Self {
            shows_files,
            ..self
        }
    }
}

impl ConversationTools<'_> {
    pub fn conversation(&self) -> &ConversationKey {
        self.workplace.conversation()
    }

    /// A program that the operator's configuration names, cleared and recorded; why not, in words.
    pub async fn clear_configured(&self, command: Command) -> Result<Cleared, String> {
        // Nobody is asked, so there is nothing to stop.
        let stop = CancellationToken::new();
        let terminal = &self.kit.terminal;
        let cleared = terminal.clear_configured(command, self.ask, &stop).await;
        cleared.map_err(|blocked| blocked.to_string())
    }

    pub fn described(&self) -> Vec<ToolDescription> {
        let mut described = self.described_of_kit();
        described.extend(self.kit.mcp.described(self.conversation()));
        described
    }

    /// The same, of which all but the tools of MCP servers is made once.
    pub fn offered(&self) -> Vec<SharedDescription> {
        let [unasked, asked] = &*self.kit.described.0;
        let made = match self.workplace.can_clarify() {
            true => asked,
            false => unasked,
        };
        let of_kit = || {
            self.described_of_kit()
                .into_iter()
                .map(Into::into)
                .collect()
        };
        let of_servers = self.kit.mcp.described(self.conversation());
        let of_servers = of_servers.into_iter().map(Into::into);
        let of_kit = made.get_or_init(of_kit).iter().cloned();
        of_kit.chain(of_servers).collect()
    }

    /// Without the tools of MCP servers, which come and go.
    fn described_of_kit(&self) -> Vec<ToolDescription> {
        let mut described = self.described_without_code();
        let callable = callable(&described);
        described.push(ToolDescription {
            name: CodeTool::NAME.into(),
            description: self.kit.code.description(&callable),
            schema: CodeTool::schema(),
        });
        described
    }

    /// Learns what tools there are besides our own, before a turn. What comes back is for the person.
    pub async fn prepare(&self, stop: &CancellationToken) -> Vec<String> {
        self.kit.mcp.prepare(self.mcp_caller(stop)).await
    }

    fn mcp_caller<'a>(&'a self, stop: &'a CancellationToken) -> McpCaller<'a> {
        McpCaller {
            workplace: self.workplace,
            ask: self.ask,
            stop,
        }
    }

    /// `None` if there is no such tool. Any arguments are answered.
    pub fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Option<ToolAnswer>> {
        // Boxed, because a script calls tools.
        async move {
            let (raw, media) = match self.call_for_media(name, arguments, stop).await {
                Some(answered) => answered,
                None => (self.call_by_name(name, arguments, stop).await?, Vec::new()),
            };
            // Output was redacted before it was cut. This pass proves it, and takes in what else an answer
            // tells: paths, names and errors.
            let redactor = self.kit.terminal.redactor();
            Some(ToolAnswer {
                json: redactor.redact_json(raw.json),
                failed: raw.failed,
                media,
            })
        }
        .boxed()
    }

    /// What hands pictures or files over beside its words.
    async fn call_for_media(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> Option<(RawAnswer, Vec<ToolMedia>)> {
        match name {
            vision::NAME => Some(self.call_vision(arguments, stop).await),
            _ if FileTool::of_name(name) == Some(FileTool::Read) => {
                self.read_media(arguments, stop).await
            }
            _ if name.starts_with(mcp::PREFIX) => {
                let caller = self.mcp_caller(stop);
                let answered = self.kit.mcp.call(caller, name, arguments).await?;
                Some(self.with_pictures(answered, stop).await)
            }
            _ => None,
        }
    }

    async fn call_by_name(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> Option<RawAnswer> {
        Some(match name {
            TerminalTool::NAME => self.call_terminal(arguments, stop).await,
            process::NAME => self.call_process(arguments, stop).await,
            CodeTool::NAME => self.call_code(arguments, stop).await,
            web::SEARCH => {
                let is_secret = |text: &str| self.holds_secret(text);
                let web = &self.kit.web;
                web.call_search(arguments, self.workplace, is_secret, stop)
                    .await
            }
            todo::NAME => {
                let lists = self.kit.todo.as_ref()?;
                lists.call(self.conversation(), arguments).await
            }
            image_generate::NAME => {
                let tool = self.kit.images.as_ref()?;
                self.call_image(tool, arguments, stop).await
            }
            text_to_speech::NAME => {
                let tool = self.kit.speech.as_ref()?;
                self.call_speech(tool, arguments, stop).await
            }
            clarify::NAME => clarify::call(arguments, self.workplace, stop).await,
            web::EXTRACT => self.call_extract(arguments, stop).await,
            _ => {
                let tool = FileTool::of_name(name)?;
                let files = &self.kit.files;
                files
                    .call(tool, arguments, self.workplace, self.ask, stop)
                    .await
            }
        })
    }

    /// Judged, then into the conversation's sandbox.
    pub async fn run(
        &self,
        request: CommandRequest,
        stop: &CancellationToken,
    ) -> Result<TerminalOutcome, BlockedCommand> {
        let terminal = &self.kit.terminal;
        if let RequestedCode::Python(source) = &request.what {
            return self.run_python(source, stop).await;
        }
        let turn = terminal.shell_turn(&request, self.conversation(), stop);
        let _turn = match turn.await {
            Ok(turn) => turn,
            Err(none) => return Ok(terminal.failed(&none.to_string())),
        };
        let request = match self.placed(request, stop).await {
            Ok(request) => request,
            Err(none) => return Ok(terminal.failed(&none)),
        };
        let cleared = terminal.clear(request, self.ask, stop).await?;
        Ok(match self.sandbox(stop).await {
            Ok(sandbox) => {
                terminal
                    .run_heard(&sandbox, cleared, self.listener, stop)
                    .await
            }
            Err(none) => terminal.failed(&none),
        })
    }

    /// With the folder it will run in, where that has to be known before.
    async fn placed(
        &self,
        mut request: CommandRequest,
        stop: &CancellationToken,
    ) -> Result<CommandRequest, String> {
        if !self.kit.terminal.wants_place(&request) {
            return Ok(request);
        }
        let held = self.sandbox(stop).await?;
        match &mut request.workdir {
            // As a person would write it there: from where the conversation is, or from home. What
            // leads nowhere fails when it is entered.
            Some(workdir) => {
                if let Ok(found) = held.resolve(workdir).await
                    && let Ok(path) = String::from_utf8(found.path.0)
                {
                    *workdir = path;
                }
            }
            None => request.place = place(&held).await,
        }
        Ok(request)
    }

    /// Whether something in a text must not leave.
    pub(crate) fn holds_secret(&self, text: &str) -> bool {
        let redacted = self.kit.terminal.redactor().redact(text);
        redacted.as_str() != text
    }

    /// What a script can import.
    pub(crate) fn script_tools(&self) -> Vec<&'static str> {
        callable(&self.described_without_code())
    }

    fn described_without_code(&self) -> Vec<ToolDescription> {
        let terminal = &self.kit.terminal;
        let mut described = vec![
            ToolDescription {
                name: TerminalTool::NAME.into(),
                description: terminal.description(),
                schema: terminal.schema(),
            },
            ToolDescription {
                name: process::NAME.into(),
                description: process::DESCRIPTION.to_owned(),
                schema: process::schema(),
            },
        ];
        described.extend(self.kit.files.described());
        described.extend(self.kit.web.described());
        described.extend(self.kit.todo.as_ref().map(|_| todo::description()));
        described.push(vision::description());
        let images = self.kit.images.as_ref();
        described.extend(images.map(|_| image_generate::description()));
        let speech = self.kit.speech.as_ref();
        described.extend(speech.map(|_| text_to_speech::description()));
        let asks = self.workplace.can_clarify();
        described.extend(asks.then(clarify::description));
        described
    }

    /// The conversation's sandbox. A link that broke while nothing had been asked of it is made anew,
    /// which is safe: nothing ran.
    pub async fn sandbox(&self, stop: &CancellationToken) -> Result<Held, String> {
        for _ in 0..TRIES {
            let held = tokio::select! {
                held = self.workplace.sandbox() => held.map_err(|none| none.to_string())?,
                // A sandbox that is being made becomes one that idles; the reaper lets it go.
                () = stop.cancelled() => {
                    return Err("interrupted before the sandbox was there; not run".to_owned());
                }
            };
            if held.is_reachable() {
                return Ok(held);
            }
        }
        Err("the sandbox cannot be reached; nothing was run".to_owned())
    }

    async fn call_terminal(
        &self,
        arguments: &Map<String, Value>,
        stop: &CancellationToken,
    ) -> RawAnswer {
        let terminal = &self.kit.terminal;
        let request = match CommandRequest::read(arguments, terminal.max_foreground_timeout()) {
            Ok(request) => request,
            Err(wrong) => return RawAnswer::of(&terminal.failed(&wrong.to_string())),
        };
        let answered = match request.manner {
            RunManner::Foreground => {
                let ran = self.run(request, stop).await;
                ran.map(|outcome| RawAnswer::of(&outcome))
            }
            RunManner::Background { .. } => self.start(request, stop).await,
        };
        answered.unwrap_or_else(|blocked| RawAnswer {
            json: blocked.to_json(),
            failed: true,
        })
    }

    /// The same way, for what goes on after the call.
    async fn start(
        &self,
        request: CommandRequest,
        stop: &CancellationToken,
    ) -> Result<RawAnswer, BlockedCommand> {
        let (terminal, background) = (&self.kit.terminal, &self.kit.background);
        let failed = |error: &str| Ok(RawAnswer::of(&terminal.failed(error)));
        let (RunManner::Background { tell, ignored }, RequestedCode::Shell(command)) =
            (request.manner.clone(), request.what.clone())
        else {
            return failed("only a shell command can go to the background");
        };
        if let Err(refused) = background.may_start() {
            return failed(&refused.to_string());
        }
        let terms = ProcessTerms {
            command,
            tell,
            origin: self.workplace.origin(),
        };
        let pipe = request.pty && reads_stdin_to_its_end(&terms.command);
        let mut request = match self.placed(request, stop).await {
            Ok(request) => request,
            Err(none) => return failed(&none),
        };
        request.pty &= !pipe;
        let cleared = terminal.clear(request, self.ask, stop).await?;
        let approval = approval(cleared.grounds());
        let held = match self.sandbox(stop).await {
            Ok(held) => held,
            Err(none) => return failed(&none),
        };
        let started = background.start(held, self.conversation(), cleared, terms);
        let process = match started.await {
            Ok(process) => process,
            Err(StartError::Run(error)) => return Ok(RawAnswer::of(&terminal.not_run(&error))),
            Err(error) => return failed(&in_full(&error)),
        };
        let mut json = json!({
            "output": "Started in the background.",
            "session_id": process.session_id(),
            "pid": process.pid(),
            "exit_code": 0,
            "error": null,
        });
        if let Some(approval) = approval {
            json["approval"] = approval.into();
        }
        if pipe {
            json["pty_note"] = NO_PTY.into();
        }
        if let Some(note) = ignored {
            json["watch_patterns_ignored"] = note.into();
        }
        say_who_is_told(&mut json, &process.terms);
        Ok(RawAnswer {
            json,
            failed: false,
        })
    }
}

fn say_who_is_told(json: &mut Value, terms: &ProcessTerms) {
    match &terms.tell {
        ProcessTell::Nothing => json["hint"] = HINT.into(),
        _ if terms.origin.is_none() => {
            json["notify_on_complete"] = false.into();
            json["notify_unsupported"] = NOBODY_TO_TELL.into();
        }
        ProcessTell::End => json["notify_on_complete"] = true.into(),
        ProcessTell::Matches(patterns) => json["watch_patterns"] = json!(patterns),
    }
}

/// How often a sandbox whose link is gone is asked for again.
const TRIES: u32 = 3;

const HINT: &str = "Follow it with the process tool: poll, log, wait, kill. With notify_on_complete you \
    would be told of its end.";
const NO_PTY: &str = "It got no terminal, because it reads its stdin to the end: write the data, then call \
    process close.";
const NOBODY_TO_TELL: &str = "Nobody can be told later here; use process wait or poll.";

/// Where the conversation is, if that is still there.
pub(crate) async fn place(sandbox: &Sandbox) -> Option<String> {
    let here = sandbox.resolve(".").await.ok()?;
    let path = String::from_utf8(here.path.0).ok()?;
    (here.missing == 0).then_some(path)
}

/// A terminal has no end of stdin that such a program would take for one.
fn reads_stdin_to_its_end(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let login = ["gh", "auth", "login"];
    login.iter().all(|word| words.next() == Some(word)) && words.any(|word| word == "--with-token")
}

fn callable(described: &[ToolDescription]) -> Vec<&'static str> {
    let there = |name: &&str| described.iter().any(|tool| tool.name == *name);
    CALLABLE.into_iter().filter(there).collect()
}

impl RawAnswer {
    fn of(outcome: &TerminalOutcome) -> Self {
        Self {
            json: outcome.to_json(),
            failed: outcome.is_failure(),
        }
    }
}
