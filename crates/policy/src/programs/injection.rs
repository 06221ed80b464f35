//! Arguments that make a harmless program run another.

mod editors;
mod environment;
mod hooks;
mod sed;
mod tools;

use super::ProgramJudge;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = hooks::judge(command, judge);
    findings.extend(editors::judge(command));
    findings.extend(tools::judge(command, judge));
    findings.extend(environment::judge(command, judge));
    findings
}

/// Pagers and editors that people use: a setting may name one of these.
pub(super) const PAGERS_AND_EDITORS: &[&str] = &[
    "",
    ":",
    "bat",
    "cat",
    "code",
    "col",
    "delta",
    "diff-highlight",
    "diff-so-fancy",
    "echo",
    "ed",
    "emacs",
    "firefox",
    "head",
    "hx",
    "less",
    "micro",
    "more",
    "most",
    "nano",
    "none",
    "nvim",
    "subl",
    "true",
    "vi",
    "vim",
    "xdg-open",
];

/// One command and nothing behind it.
pub(super) fn is_plain(value: &str) -> bool {
    !value.contains([';', '|', '&', '`', '>']) && !value.contains("$(")
}

fn runs(program: &str) -> HarmFinding {
    injected(format!("makes {program} run a command"))
}

fn injected(reason: impl Into<String>) -> HarmFinding {
    HarmFinding::dangerous(HarmCategory::Injection, reason)
}
