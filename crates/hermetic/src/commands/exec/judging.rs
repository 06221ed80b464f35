//! A command for a machine that somebody cares about, before it runs there.
//!
//! In a sandbox the operator's word is enough. On `local` and `ssh` the floor holds as it does for a
//! chat, and what is dangerous waits for a yes: at the keyboard, or by `--yes` where nobody sits.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use hermetic_app as app;
use hermetic_config::Config;
use hermetic_policy::{
    AnswerScope, ApprovalQuestion, Cleared, CommandApproval, PolicyRefusal, RefusedBy, Verdict,
};
use hermetic_types::{BackendKind, Boundary, Command};
use rustix::termios::{QueueSelector, tcflush};

use crate::by_hand;
use crate::failure::CommandFailure;
use crate::output::printable;

pub(in crate::commands) fn cleared(
    config: &Config,
    kind: BackendKind,
    command: Command,
    yes: bool,
) -> Result<Cleared, CommandFailure> {
    if app::boundary(kind) == Boundary::Sealed {
        return Ok(Cleared::typed_by_operator(command));
    }
    let keyboard = io::stdin().is_terminal();
    let context = app::context(config, kind);
    match app::policy(config).judge_typed(command, &context, keyboard) {
        Verdict::Run(cleared) => Ok(cleared),
        Verdict::Refuse(refusal) => Err(refused(&refusal, kind)),
        Verdict::Ask(question) => {
            // What the agent started is nobody at a keyboard, whatever it says.
            by_hand::or_refuse(config)?;
            if yes || keyboard && io::stderr().is_terminal() && confirmed(&question)? {
                allowed(question)
            } else {
                Err(not_allowed(&question, kind))
            }
        }
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
