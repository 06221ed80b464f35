//! This program's own files, settings and process: the agent cannot edit its own gate.

use super::ProgramJudge;
use crate::context::JudgementContext;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::ExpandedText;

/// Why writing this file is writing to ourselves.
pub(crate) fn file(full: &str, context: &JudgementContext) -> Option<String> {
    let home = context.own_home.trim_end_matches('/');
    let inside = full == home || full.starts_with(&format!("{home}/"));
    let default = format!("{}/.hermes", context.home.trim_end_matches('/'));
    let in_default =
        full == default || full.starts_with(&format!("{default}/")) || full.contains("/.hermes/");
    let named = context
        .own_files
        .iter()
        .any(|own| own == full || full.starts_with(&format!("{own}/")));
    (inside || in_default || named).then(|| format!("changes this program's own files: {full}"))
}

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = Vec::new();
    let program = command.program();
    let ours = |text: &str| {
        let text = text.to_lowercase();
        text.contains("hermes")
            || text.contains("hermetic")
            || text == "gateway"
            || text.contains("--gateway")
    };
    let about_us = command.args().iter().any(|arg| ours(&arg.s));
    let finding = |reason: &str| HarmFinding::dangerous(HarmCategory::OwnFiles, reason);
    match program {
        "kill" | "pkill" | "killall" | "skill" if about_us => {
            findings.push(finding("ends this program"));
        }
        "systemctl" | "service" | "launchctl" | "supervisorctl" | "pm2"
            if about_us
                && !command.has_arg("status")
                && !command.has_arg("is-active")
                && !command.has_arg("list")
                && !command.has_arg("show")
                && !command.has_arg("print") =>
        {
            findings.push(finding("stops or restarts this program"));
        }
        "pgrep" | "pidof" if about_us && command.via.iter().any(|via| via == "$( )") => {
            findings.push(finding(
                "looks for this program's processes in order to signal them",
            ));
        }
        "hermes" | "hermetic" => findings.extend(own_command(command)),
        _ => {}
    }
    let changes = matches!(
        program,
        "rm" | "mv"
            | "shred"
            | "chmod"
            | "chown"
            | "truncate"
            | "sqlite3"
            | "unlink"
            | "chattr"
            | "ln"
            | "rsync"
            | "tar"
            | "vi"
            | "vim"
            | "nvim"
            | "nano"
            | "emacs"
            | "ed"
            | "ex"
            | "crudini"
            | "dasel"
            | "patch"
            | "sponge"
    );
    let in_place =
        matches!(
            program,
            "yq" | "jq" | "sed" | "gsed" | "perl" | "ruby" | "awk" | "gawk" | "tomlq" | "xq"
        ) && (command.short('i') || command.long("--inplace") || command.long("--in-place"));
    if changes || in_place {
        for target in command.operands().filter(|target| path_like(target)) {
            let full = crate::paths::absolute(&target.s, &judge.cwd);
            if let Some(reason) = file(&full, judge.context) {
                findings.push(finding(&reason));
            }
        }
    }
    if command
        .assigns
        .iter()
        .any(|(name, _)| name.starts_with("HERMES_YOLO") || name == "HERMES_HOME")
        || command
            .args()
            .iter()
            .any(|arg| arg.s.starts_with("HERMES_YOLO_MODE="))
    {
        findings.push(finding(
            "changes this program's settings through the environment",
        ));
    }
    findings
}

fn path_like(text: &ExpandedText) -> bool {
    text.s.contains('/') || text.s.starts_with('.')
}

fn own_command(command: &ReducedCommand) -> Vec<HarmFinding> {
    let words = super::acts::subcommands(command);
    let touches = match words.as_slice() {
        ["gateway", verb, ..] => matches!(
            *verb,
            "stop" | "restart" | "install" | "uninstall" | "start"
        ),
        // What only looks is known; whatever else there is or will be is not for the agent.
        [
            "approvals" | "policy" | "config" | "pairing" | "sandbox" | "egress",
            verb,
            ..,
        ] => !matches!(
            *verb,
            "list"
                | "show"
                | "get"
                | "path"
                | "check"
                | "explain"
                | "judge"
                | "verify"
                | "status"
                | "help"
                | "schema"
        ),
        ["exec", ..] => command.has_arg("--yes"),
        ["update" | "uninstall" | "setup" | "login" | "auth", ..] => true,
        _ => false,
    };
    if touches || command.long("--yolo") {
        return vec![HarmFinding::dangerous(
            HarmCategory::OwnFiles,
            "changes this program or answers for a person",
        )];
    }
    Vec::new()
}
