//! `hermetic chat`: the agent at a keyboard, in a sandbox like any other conversation's.

mod book;
mod keyboard;
mod line_editor;
mod person;
mod screen;
mod supervisor;
mod talk;
mod typed;

use std::io::{IsTerminal, Read as _};
use std::sync::Arc;

use hermetic_agent::NoModel;
use hermetic_app as app;
use hermetic_approvals::ApprovalPrompt;
use hermetic_config::{Config, resolve_cli_backend};
use hermetic_gateway::OWN_AGENT;
use hermetic_types::{BackendKind, Boundary, ConversationKey, RunId};
use tracing::warn;

use self::keyboard::{KeyboardPrompts, NobodyThere};
use self::talk::TerminalTalk;
use super::{load, on_runtime};
use crate::by_hand;
use crate::cli::CommandLine;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::{log, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ctrl-C interrupts the answer; pressed twice, it leaves. /help lists what can be typed. A command that \
needs approval is asked about here; with -q, or without a terminal, it is refused.

Without --session the conversation is forgotten and the sandbox destroyed at the end. With --session \
both are there again the next time, and `hermetic exec --session` of the same name sees the same files.

With -q only the answer is printed on stdout. Exits with 0, with 1 if there was no complete answer, \
with 130 if it was interrupted, with 78 if no model is configured.

Examples:
  hermetic chat
  hermetic chat --session work
  hermetic chat --agent claude
  hermetic chat -q 'what does this traceback mean?'
  journalctl -n 50 | hermetic chat -q 'what went wrong?' --stdin")]
pub(crate) struct ChatArgs {
    /// Ask this one question, print the answer and exit; `-` reads it from stdin
    #[arg(short, long, value_name = "TEXT")]
    query: Option<String>,
    /// Add what stands on stdin to the question of -q
    #[arg(long, requires = "query")]
    stdin: bool,
    /// Continue the conversation of this name, and keep it
    #[arg(long, value_name = "NAME", value_parser = session_name)]
    session: Option<String>,
    /// Run commands on this backend, instead of terminal.backend
    #[arg(long, value_name = "BACKEND")]
    backend: Option<BackendKind>,
    /// Let this agent answer, instead of that of agent.acp; `hermetic` is our own
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
}

pub(crate) fn run(cli: &CommandLine, args: &ChatArgs) -> Result<ExitReason, CommandFailure> {
    on_runtime(chat(cli, args))
}

async fn chat(cli: &CommandLine, args: &ChatArgs) -> Result<ExitReason, CommandFailure> {
    let config = load(cli)?;
    refuse_a_question_to_nobody(&config, args)?;
    let kind = match args.backend {
        Some(kind) => kind,
        None => resolve_cli_backend(&config)?,
    };
    if kind == BackendKind::Local {
        warn!("⚠ commands run on this machine, not in a sandbox: the backend is local");
    }
    let (conversation, kept) = match &args.session {
        Some(name) => (ConversationKey::new(format!("cli:{name}")), true),
        None => {
            let passing = format!("cli:once-{}", RunId::random());
            (ConversationKey::new(passing), false)
        }
    };
    let (keyboard, signs) = KeyboardPrompts::new();
    let screen: Arc<dyn ApprovalPrompt> = match may_ask(&config, args) {
        true => Arc::new(keyboard),
        false => Arc::new(NobodyThere),
    };
    let redactor = app::redactor(&config);
    log::hide(&redactor);
    let person = app::KeyboardPerson {
        name: by_hand::who(),
        screen,
        progress: output::progress,
        agent: args.agent.as_ref().map(|name| name.to_ascii_lowercase()),
        memories: match (by_hand::or_refuse(&config), kept) {
            (Err(_), _) => app::KeyboardMemories::Withheld,
            (Ok(()), false) => app::KeyboardMemories::Passing,
            (Ok(()), true) => app::KeyboardMemories::Kept,
        },
    };
    let mut keyboard = app::keyboard_chat(&config, kind, &conversation, person, redactor).await?;
    if app::boundary(kind) == Boundary::Sealed {
        let reach = keyboard.sandboxes.reach_of(&conversation).await;
        keyboard.facts.network = hermetic_gateway::network(reach);
    }
    let has_workspace = kept || app::boundary(kind) == Boundary::Judged;
    let talk = TerminalTalk::new(&keyboard, (conversation, has_workspace), signs)?;
    let ended = match &args.query {
        Some(text) => talk.once(&whole_question(text, args.stdin)?).await,
        None => Box::pin(talk.until_left()).await,
    };
    // The connections first: they lead into the sandbox, or to programs beside it.
    keyboard.kit.mcp.forget_all();
    let tidied = if kept { Ok(()) } else { talk.forget().await };
    keyboard.sandboxes.drain().await;
    ended.and_then(|exit| tidied.map(|()| exit))
}

/// Whoever types is told in the conversation; a script should fail before anything is opened.
fn refuse_a_question_to_nobody(config: &Config, args: &ChatArgs) -> Result<(), CommandFailure> {
    let asks_model = match &args.agent {
        Some(name) => name.eq_ignore_ascii_case(OWN_AGENT),
        None => config
            .acp_agents()
            .first()
            .is_none_or(|agent| agent.name == OWN_AGENT),
    };
    if args.query.is_some() && asks_model && config.model().name.is_none() {
        let failure = CommandFailure::new("no model is configured", NoModel::REMEDY);
        return Err(failure.with(ExitReason::BAD_CONFIG));
    }
    Ok(())
}

/// What stands on stdin is read only where that was asked for: it may be somebody else's.
fn whole_question(text: &str, adds_stdin: bool) -> Result<String, CommandFailure> {
    if text != "-" && !adds_stdin {
        return Ok(text.to_owned());
    }
    let mut piped = Vec::new();
    let read = std::io::stdin()
        .lock()
        .take(MOST_STDIN_BYTES + 1)
        .read_to_end(&mut piped);
    read.map_err(|error| CommandFailure::caused(&error, "pipe text into it"))?;
    if piped.len() as u64 > MOST_STDIN_BYTES {
        let what = format!("stdin holds more than {} MB", MOST_STDIN_BYTES >> 20);
        return Err(CommandFailure::new(
            what,
            "pipe less of it, as `tail -n 1000` does",
        ));
    }
    let piped = String::from_utf8_lossy(&piped);
    let piped = piped.trim();
    match text {
        "-" if piped.is_empty() => Err(CommandFailure::new(
            "there is no question on stdin",
            "pipe one into it, or write it after -q",
        )),
        "-" => Ok(piped.to_owned()),
        text => Ok(format!("{text}\n\n{piped}").trim_end().to_owned()),
    }
}

/// More than a model reads at once.
const MOST_STDIN_BYTES: u64 = 1 << 20;

/// Only a person at a terminal can say yes: no pipe, and nothing that the agent itself started.
fn may_ask(config: &Config, args: &ChatArgs) -> bool {
    args.query.is_none() && std::io::stdin().is_terminal() && by_hand::or_refuse(config).is_ok()
}

fn session_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.len() > 64 || !text.chars().all(plain) {
        return Err("expected up to 64 letters, digits, '-', '_' and '.'".to_owned());
    }
    Ok(text.to_owned())
}
