//! `hermetic doctor --attack`: sandboxes like any conversation's, attacked from inside.

mod bait;
mod cell;
mod greed;
mod trial;

use std::fmt::Write as _;

use hermetic_attack::{AttackFinding, AttemptState};
use hermetic_config::Config;
use hermetic_types::BackendKind;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD, DIM};

pub(super) fn run(
    runtime: &Runtime,
    config: &Config,
    kind: BackendKind,
    as_json: bool,
) -> Result<ExitReason, CommandFailure> {
    let findings = runtime.block_on(trial::findings(config, kind))?;
    let held = findings
        .iter()
        .all(|finding| finding.state == AttemptState::Held);
    if as_json {
        let rows: Vec<_> = findings
            .iter()
            .map(|finding| {
                json!({
                    "attempt": finding.attempt,
                    "state": finding.state.word(),
                    "detail": finding.detail,
                })
            })
            .collect();
        output::print_json(&json!({ "backend": kind, "held": held, "attempts": rows }))?;
    } else {
        output::print(&as_text(kind, &findings))?;
    }
    Ok(if held {
        ExitReason::Ok
    } else {
        ExitReason::Failed
    })
}

fn as_text(kind: BackendKind, findings: &[AttackFinding]) -> String {
    let mut text = format!("{BOLD}{kind}, attacked from inside{BOLD:#}\n");
    let width = findings
        .iter()
        .map(|finding| finding.attempt.len())
        .max()
        .unwrap_or(0);
    for finding in findings {
        let mark = match finding.state {
            AttemptState::Held => "held   ",
            AttemptState::Open => "OPEN   ",
            AttemptState::Untried => "UNTRIED",
        };
        let _ = writeln!(
            text,
            "  {mark} {:width$}  {DIM}{}{DIM:#}",
            finding.attempt, finding.detail
        );
    }
    let wrong = findings
        .iter()
        .filter(|finding| finding.state != AttemptState::Held)
        .count();
    let _ = match wrong {
        0 => writeln!(
            text,
            "\nEverything held. `hermetic egress verify` tries the way out."
        ),
        count => writeln!(text, "\n{count} of {} did not hold.", findings.len()),
    };
    text
}
