//! A command for a machine that somebody cares about, before it runs there.
//!
//! In a sandbox the operator's word is enough. On `local` and `ssh` the floor holds as it does for a
//! chat, and what is dangerous waits for a yes: at the keyboard, or by `--yes` where nobody sits.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use hermetic_app as app;
use hermetic_config::Config;
use hermetic_policy::{
    AnswerScope, ApprovalQuestion, Cleared, CommandApproval, JudgementContext, Policy,
    PolicyRefusal, RefusedBy, Verdict,
};
use hermetic_types::{BackendKind, Boundary, Command, CommandInput};
use rustix::termios::{QueueSelector, tcflush};

use crate::by_hand;
use crate::failure::CommandFailure;
use crate::output::printable;

/// How much of a script in a pipe is read before it runs. What comes after it is not looked at.
const MOST_READ_AHEAD: u64 = 1 << 20;

/// What was read from standard input to judge it, and belongs to the command.
#[derive(Default)]
pub(in crate::commands) struct ReadInput(pub(in crate::commands) Vec<u8>);

pub(in crate::commands) fn cleared(
    config: &Config,
    kind: BackendKind,
    command: Command,
    yes: bool,
) -> Result<(Cleared, ReadInput), CommandFailure> {
    if app::boundary(kind) == Boundary::Sealed {
        return Ok((Cleared::typed_by_operator(command), ReadInput::default()));
    }
    let keyboard = io::stdin().is_terminal();
    let context = app::context(config, kind);
    let policy = app::policy(config);
    match policy.judge_typed(command, &context, keyboard) {
        Verdict::Run(cleared) => Ok((cleared, ReadInput::default())),
        Verdict::Refuse(refusal) => Err(refused(&refusal, kind)),
        Verdict::Ask(question) => {
            // What the agent started is nobody at a keyboard, whatever it says.
            by_hand::or_refuse(config)?;
            let is_allowed = yes || keyboard && io::stderr().is_terminal() && confirmed(&question)?;
            if !is_allowed {
                return Err(not_allowed(&question, kind));
            }
            let read = match keyboard || !is_asked_for_its_input(&policy, &question, &context) {
                true => ReadInput::default(),
                false => read_ahead(&policy, &question, &context, kind)?,
            };
            Ok((allowed(question)?, read))
        }
    }
}

/// Whether what is piped in is a part of what the question is about: `… | hermetic exec -- sh`.
fn is_asked_for_its_input(
    policy: &Policy,
    question: &ApprovalQuestion,
    context: &JudgementContext,
) -> bool {
    let mut alone = question.command().clone();
    alone.stdin = CommandInput::Empty;
    match policy.judge_typed(alone, context, false) {
        Verdict::Run(_) => true,
        Verdict::Ask(other) => other.reasons() != question.reasons(),
        Verdict::Refuse(_) => false,
    }
}

/// A yes to a script that nobody has read is none to the floor: what the pipe brings is judged as well.
fn read_ahead(
    policy: &Policy,
    question: &ApprovalQuestion,
    context: &JudgementContext,
    kind: BackendKind,
) -> Result<ReadInput, CommandFailure> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MOST_READ_AHEAD)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandFailure::caused(&error, "look at what is piped in"))?;
    let mut whole = question.command().clone();
    whole.stdin = CommandInput::Bytes(bytes.clone());
    match policy.judge_typed(whole, context, false) {
        Verdict::Refuse(refusal) => Err(refused(&refusal, kind)),
        Verdict::Run(_) | Verdict::Ask(_) => Ok(ReadInput(bytes)),
    }
}

fn allowed(question: ApprovalQuestion) -> Result<Cleared, CommandFailure> {
    let answer = CommandApproval::yes(question.fingerprint().clone(), AnswerScope::Once);
    question
        .answered(&answer)
        .map_err(|error| CommandFailure::caused(&error, "run it again"))
}

fn refused(refusal: &PolicyRefusal, kind: BackendKind) -> CommandFailure {
    let remedy = match refusal.by() {
        RefusedBy::Floor => {
            "run it in a sandbox (--backend native), or in a shell of your own if it must be; \
             nothing allows it here"
        }
        RefusedBy::Deny { .. } => "take it out of approvals.deny if it should run",
    };
    let reasons = refusal.reasons().join("; ");
    CommandFailure::new(
        format!("not run on {kind}: {}", printable(&reasons)),
        remedy,
    )
    .with(126)
}

fn not_allowed(question: &ApprovalQuestion, kind: BackendKind) -> CommandFailure {
    let reasons = question.reasons().join("; ");
    CommandFailure::new(
        format!(
            "not run on {kind}, nobody allowed it: {}",
            printable(&reasons)
        ),
        "answer at a terminal, or add --yes; --backend native runs it in a sandbox unasked",
    )
    .with(126)
}

/// Only what is typed after the question answers it.
fn confirmed(question: &ApprovalQuestion) -> Result<bool, CommandFailure> {
    let failed =
        |error: io::Error| CommandFailure::caused(&error, "add --yes, or leave the terminal out");
    let mut shown = io::stderr().lock();
    for reason in question.reasons() {
        writeln!(shown, "  - {}", printable(&reason)).map_err(failed)?;
    }
    write!(shown, "Run it? y: yes, anything else: no › ").map_err(failed)?;
    shown.flush().map_err(failed)?;
    let _ = tcflush(rustix::stdio::stdin(), QueueSelector::IFlush);
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(failed)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
