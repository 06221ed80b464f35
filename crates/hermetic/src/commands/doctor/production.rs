//! `hermetic doctor --production`: the checklist of `docs/production.md`, looked at on this machine.
//!
//! Each check is a plain function of the configuration and of what was found out about the [`MachineFacts`];
//! nothing is changed, and no platform or provider is asked.

mod host;
mod keeping;
mod machine;
mod people;
mod seal;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use hermetic_config::Config;
use serde::Serialize;

use self::machine::MachineFacts;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::output::{self, BOLD, DIM, printable};

/// One line of the checklist and how it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ChecklistLine {
    /// The word that `docs/production.md` explains.
    check: &'static str,
    state: LineState,
    what: String,
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum LineState {
    Fine,
    /// Worth knowing; it fails nothing.
    Advice,
    Weak,
}

impl ChecklistLine {
    fn fine(check: &'static str, what: impl Into<String>) -> Self {
        Self {
            check,
            state: LineState::Fine,
            what: what.into(),
            remedy: None,
        }
    }

    fn advice(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            check,
            state: LineState::Advice,
            what: what.into(),
            remedy: Some(remedy.into()),
        }
    }

    fn weak(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            state: LineState::Weak,
            ..Self::advice(check, what, remedy)
        }
    }
}

pub(super) fn run(
    runtime: &tokio::runtime::Runtime,
    config: &Config,
    as_json: bool,
) -> Result<ExitReason, CommandFailure> {
    let machine = MachineFacts::look(runtime, config)?;
    let lines = lines(config, &machine);
    let weak = lines
        .iter()
        .filter(|line| line.state == LineState::Weak)
        .count();
    if as_json {
        output::print_json(&serde_json::json!({ "ready": weak == 0, "lines": lines }))?;
    } else {
        output::print(&as_text(&lines, weak))?;
    }
    Ok(if weak == 0 {
        ExitReason::Ok
    } else {
        ExitReason::Failed
    })
}

/// In the order of the page.
fn lines(config: &Config, machine: &MachineFacts) -> Vec<ChecklistLine> {
    let mut lines = seal::lines(config, machine);
    lines.extend(people::lines(config, machine));
    lines.extend(host::lines(config, machine));
    lines.extend(keeping::lines(config, machine));
    lines
}

fn as_text(lines: &[ChecklistLine], weak: usize) -> String {
    let width = lines.iter().map(|line| line.check.len()).max().unwrap_or(0);
    let mut text = format!("{BOLD}production{BOLD:#}\n");
    for line in lines {
        let mark = match line.state {
            LineState::Fine => "fine  ",
            LineState::Advice => "advice",
            LineState::Weak => "WEAK  ",
        };
        let _ = writeln!(
            text,
            "  {mark}  {:width$}  {}",
            line.check,
            printable(&line.what)
        );
        if let Some(remedy) = &line.remedy {
            let _ = writeln!(
                text,
                "  {:6}  {:width$}  {DIM}= {}{DIM:#}",
                "",
                "",
                printable(remedy)
            );
        }
    }
    let _ = match weak {
        0 => writeln!(
            text,
            "\nNothing weak was found. `hermetic doctor --attack` tries the seal itself."
        ),
        1 => writeln!(text, "\n1 weakness; docs/production.md has the reasons."),
        weak => writeln!(
            text,
            "\n{weak} weaknesses; docs/production.md has the reasons."
        ),
    };
    text
}
