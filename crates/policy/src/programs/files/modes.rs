//! Who may do what with a file: `chmod`, `chown`, `setfacl`.

use super::Judge;
use crate::effective::Effective;
use crate::finding::{Category, Finding};
use crate::paths::{self, Place};
use crate::text::Text;

pub(super) fn modes(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let program = command.program();
    let found = command
        .via
        .last()
        .is_some_and(|via| matches!(via.as_str(), "find" | "fd"));
    let recursive = command.short('R') || command.long("--recursive") || found;
    let operands: Vec<&Text> = command
        .args()
        .iter()
        .filter(|arg| !arg.s.starts_with('-') || is_mode(&arg.s))
        .collect();
    let mode = operands.first().map_or("", |text| text.s.as_str());
    let mut findings = Vec::new();
    let targets = operands.get(1..).unwrap_or_default();
    for target in targets {
        let place = paths::place(&target.s, &judge.cwd, judge.context);
        let system = matches!(place, Place::Root | Place::System | Place::InsideSystem);
        if recursive && matches!(place, Place::Root | Place::System | Place::Home) {
            let category = Category::SystemFile;
            let reason = format!("changes modes or owners of all of {}", target.shown());
            let breaks = matches!(place, Place::Root) && program != "setfacl";
            findings.push(if breaks {
                Finding::floor(category, reason)
            } else {
                Finding::dangerous(category, reason)
            });
        } else if system && program != "chattr" {
            findings.push(Finding::dangerous(
                Category::SystemFile,
                format!("changes the mode or owner of {}", target.shown()),
            ));
        } else if program == "chmod"
            && loosens(mode)
            && paths::secret(&target.s, &judge.cwd, judge.context).is_some()
        {
            findings.push(Finding::dangerous(
                Category::SecretRead,
                format!("opens a secret to others: {}", target.shown()),
            ));
        }
    }
    if program == "chmod" && sets_id(mode) {
        findings.push(Finding::dangerous(
            Category::Privilege,
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
        findings.push(Finding::dangerous(
            Category::Privilege,
            "lets everybody write",
        ));
    }
    if program == "chown" && recursive && (mode == "root" || mode.starts_with("root:")) {
        findings.push(Finding::dangerous(
            Category::Privilege,
            "gives a whole folder to root",
        ));
    }
    if program == "chattr"
        && command
            .args()
            .iter()
            .any(|arg| matches!(arg.s.as_str(), "-i" | "-a" | "+i" | "-ia"))
    {
        findings.push(Finding::dangerous(
            Category::SecurityTool,
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
        findings.push(Finding::dangerous(
            Category::Privilege,
            "opens files to others (setfacl)",
        ));
    }
    findings
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
