//! Who may do what with a file: `chmod`, `chown`, `setfacl`.

use super::ProgramJudge;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths::{self, PathLoss};
use crate::text::ExpandedText;

pub(super) fn modes(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let program = command.program();
    let found = command
        .via
        .last()
        .is_some_and(|via| matches!(via.as_str(), "find" | "fd"));
    let recursive = command.short('R') || command.long("--recursive") || found;
    let operands: Vec<&ExpandedText> = command
        .args()
        .iter()
        .filter(|arg| !arg.s.starts_with('-') || is_mode(&arg.s))
        .collect();
    let mode = operands.first().map_or("", |text| text.s.as_str());
    let mut findings = Vec::new();
    let targets = operands.get(1..).unwrap_or_default();
    for target in targets {
        let place = paths::place(&target.s, &judge.cwd, judge.context);
        let system = matches!(
            place,
            PathLoss::Root | PathLoss::System | PathLoss::InsideSystem
        );
        if recursive && matches!(place, PathLoss::Root | PathLoss::System | PathLoss::Home) {
            let category = HarmCategory::SystemFile;
            let reason = format!("changes modes or owners of all of {}", target.shown());
            let breaks = (matches!(place, PathLoss::Root) || is_core(&target.s, judge))
                && matches!(program, "chmod" | "chown" | "chgrp");
            findings.push(if breaks {
                HarmFinding::floor(category, reason)
            } else {
                HarmFinding::dangerous(category, reason)
            });
        } else if program == "chmod"
            && shuts(mode)
            && (place == PathLoss::Root || place == PathLoss::System && is_core(&target.s, judge))
        {
            findings.push(HarmFinding::floor(
                HarmCategory::SystemFile,
                format!("shuts everybody out of {}", target.shown()),
            ));
        } else if recursive && is_shared(&target.s, judge) {
            findings.push(HarmFinding::dangerous(
                HarmCategory::SystemFile,
                format!("changes modes or owners of all of {}", target.shown()),
            ));
        } else if system && program != "chattr" {
            findings.push(HarmFinding::dangerous(
                HarmCategory::SystemFile,
                format!("changes the mode or owner of {}", target.shown()),
            ));
        } else if program == "chmod"
            && loosens(mode)
            && paths::secret(&target.s, &judge.cwd, judge.context).is_some()
        {
            findings.push(HarmFinding::dangerous(
                HarmCategory::SecretRead,
                format!("opens a secret to others: {}", target.shown()),
            ));
        }
    }
    if program == "chmod" && sets_id(mode) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "gives a program another user's rights (setuid)",
        ));
    }
    if program == "chmod"
        && (mode.ends_with("777")
            || mode.ends_with("666")
            || mode == "a+rwx"
            || mode == "ugo+rwx"
            || mode.contains("o+w")
            || mode == "a+w"
            || mode == "+rwx" && recursive)
        && !targets.is_empty()
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "lets everybody write",
        ));
    }
    if program == "chown" && recursive && (mode == "root" || mode.starts_with("root:")) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "gives a whole folder to root",
        ));
    }
    if program == "chattr" && command.args().iter().any(|arg| is_lock(&arg.s)) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SecurityTool,
            "changes what may not be changed (chattr)",
        ));
    }
    if program == "setfacl"
        && command
            .args()
            .iter()
            .any(|arg| arg.s.contains("rwx") || arg.s.contains("::rw"))
        && !targets.is_empty()
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "opens files to others (setfacl)",
        ));
    }
    findings
}

/// `+i`, `-ia`, `=a`: what keeps a file from being changed, or only lets it grow.
fn is_lock(flags: &str) -> bool {
    flags.len() < 8
        && flags.starts_with(['+', '-', '='])
        && !flags.starts_with("--")
        && !matches!(flags, "-R" | "-V" | "-f" | "-v" | "-p")
        && flags.contains(['i', 'a'])
}

/// A mode with which nobody enters a folder.
fn shuts(mode: &str) -> bool {
    matches!(
        mode,
        "0" | "00"
            | "000"
            | "0000"
            | "600"
            | "0600"
            | "644"
            | "-x"
            | "a-x"
            | "a="
            | "a-rwx"
            | "-rwx"
            | "ugo-rwx"
            | "400"
            | "444"
    )
}

/// A folder in which the machine's users and services keep what is theirs.
fn is_shared(target: &str, judge: &ProgramJudge<'_>) -> bool {
    let full = paths::absolute(target.trim_end_matches("/*"), &judge.cwd);
    matches!(
        full.as_str(),
        "/opt" | "/srv" | "/mnt" | "/media" | "/Volumes" | "/data"
    )
}

/// Without its modes and owners here, nobody logs in and nothing starts.
pub(super) fn is_core(target: &str, judge: &ProgramJudge<'_>) -> bool {
    const CORE: &[&str] = &[
        "/etc",
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib64",
        "/boot",
        "/usr/bin",
        "/usr/sbin",
        "/usr/lib",
    ];
    let full = paths::absolute(target, &judge.cwd);
    let full = full.trim_end_matches("/**").trim_end_matches("/*");
    CORE.contains(&full)
}

fn is_mode(s: &str) -> bool {
    s.len() > 1 && s[1..].chars().all(|c| "rwxXst".contains(c)) && !matches!(s, "-R")
}

fn loosens(mode: &str) -> bool {
    let open = mode.len() >= 3 && mode.chars().all(|c| c.is_digit(8)) && !mode.ends_with("00");
    open || mode.contains("o+") || mode.contains("a+") || mode.contains("g+") || mode == "+r"
}

pub(super) fn sets_id(mode: &str) -> bool {
    let numeric = mode.len() >= 4
        && mode.chars().all(|c| c.is_digit(8))
        && matches!(
            mode.chars().rev().nth(3),
            Some('2' | '4' | '6' | '5' | '7' | '3')
        );
    numeric
        || (mode.contains(['+', '='])
            && mode
                .split(['+', '='])
                .next_back()
                .is_some_and(|rest| rest.contains('s')))
}
