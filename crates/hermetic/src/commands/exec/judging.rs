//! A command for a machine that somebody cares about, before it runs there.
//!
//! In a sandbox the operator's word is enough. On `local` and `ssh` the floor holds as it does for a
//! chat, and what is dangerous waits for a yes: at the keyboard, or by `--yes` where nobody sits.

use std::io::{self, BufRead as _, IsTerminal as _, Read, Write as _};

use hermetic_app as app;
use hermetic_config::Config;
use hermetic_policy::{
    AnswerScope, ApprovalQuestion, Cleared, CommandApproval, JudgementContext, Policy,
    PolicyRefusal, RefusedBy, Verdict,
};
use hermetic_types::{BackendKind, Boundary, Command, CommandInput, CommandProgram};
use rustix::termios::{QueueSelector, tcflush};

use super::script_parts::script_parts;
use crate::by_hand;
use crate::failure::CommandFailure;
use crate::output::printable;

/// How long a script in a pipe may be. It is read before it runs, and what nobody has read does not run.
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
            if let CommandProgram::Words(words) = &question.command().program {
                let text = words.iter().map(String::as_str);
                floor_in_parts(text, &policy, &context, kind)?;
            }
            let read = match keyboard || !is_asked_for_its_input(&policy, &question, &context) {
                true => ReadInput::default(),
                false => read_ahead(io::stdin().lock(), &policy, &question, &context, kind)?,
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
    pipe: impl Read,
    policy: &Policy,
    question: &ApprovalQuestion,
    context: &JudgementContext,
    kind: BackendKind,
) -> Result<ReadInput, CommandFailure> {
    let mut bytes = Vec::new();
    // One more than may come, so that a script of exactly that length is told from a longer one.
    pipe.take(MOST_READ_AHEAD + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandFailure::caused(&error, "look at what is piped in"))?;
    if bytes.len() as u64 > MOST_READ_AHEAD {
        return Err(too_long_to_read(kind));
    }
    let mut whole = question.command().clone();
    whole.stdin = CommandInput::Bytes(bytes.clone());
    match policy.judge_typed(whole, context, false) {
        Verdict::Refuse(refusal) => Err(refused(&refusal, kind)),
        Verdict::Run(_) => Ok(ReadInput(bytes)),
        Verdict::Ask(_) => {
            let text = String::from_utf8_lossy(&bytes);
            floor_in_parts([&*text], policy, context, kind)?;
            Ok(ReadInput(bytes))
        }
    }
}

/// What is refused in a part of a long text is refused, also where the whole is too much to be followed.
fn floor_in_parts<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    policy: &Policy,
    context: &JudgementContext,
    kind: BackendKind,
) -> Result<(), CommandFailure> {
    for part in texts.into_iter().flat_map(script_parts) {
        let verdict = policy.judge_typed(Command::script(part), context, false);
        if let Verdict::Refuse(refusal) = verdict {
            return Err(refused(&refusal, kind));
        }
    }
    Ok(())
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

/// Judging only its beginning would let anything through behind enough padding.
fn too_long_to_read(kind: BackendKind) -> CommandFailure {
    CommandFailure::new(
        format!(
            "not run on {kind}: the script that is piped in is longer than {} MiB, and what nobody has read \
             does not run here",
            MOST_READ_AHEAD >> 20
        ),
        "pipe a shorter one, or run it in a sandbox (--backend native), where nothing is read",
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

#[cfg(test)]
mod tests {
    use hermetic_policy::PolicyRules;
    use hermetic_types::BackendDescription;

    use super::*;

    /// A shell that reads its script from a pipe, with a yes to it.
    fn piped(script: &[u8]) -> Result<usize, String> {
        let policy = Policy::new(PolicyRules::default());
        let kind = BackendKind::Local;
        let context = JudgementContext::new(BackendDescription::judged(kind), "/work", "/home/ada");
        let mut command = Command::words(["sh"]);
        command.stdin = CommandInput::Open;
        let Verdict::Ask(question) = policy.judge_typed(command, &context, false) else {
            panic!("a script that nobody has read is asked about");
        };
        let read = read_ahead(script, &policy, &question, &context, kind);
        read.map(|read| read.0.len())
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn what_comes_behind_a_long_padding_is_not_run_unread() {
        let most = usize::try_from(MOST_READ_AHEAD).unwrap();
        let padded = |line: &str, length: usize| {
            let mut script = "# nothing\n".repeat(length / 10).into_bytes();
            // A comment that is cut in two still ends before the line.
            script.truncate(length - line.len() - 1);
            script.resize(length - line.len(), b'\n');
            script.extend_from_slice(line.as_bytes());
            script
        };
        let whole = piped(&padded("echo done\n", most));
        assert_eq!(whole, Ok(most), "as long as may be");
        let refused = piped(&padded("rm -rf /\n", most));
        assert!(refused.is_err_and(|words| words.contains("not run on local")));
        let longer = piped(&padded("rm -rf / --no-preserve-root\n", most + 4096));
        let words = longer.expect_err("nobody reads that far");
        assert!(words.contains("longer than 1 MiB"), "{words}");
        assert!(piped(&padded("echo done\n", most + 1)).is_err());
        // More commands than are followed, in a few kilobytes.
        let busy = format!("{}rm -rf /\n", ":\n".repeat(900));
        let refused = piped(busy.as_bytes());
        assert!(refused.is_err_and(|words| words.contains("not run on local")));
    }
}
