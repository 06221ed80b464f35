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

/// Options before the subcommand that take a value of their own.
const VALUED: [&str; 4] = ["--home", "--log-format", "--profile", "-p"];

/// What only looks, by its first word.
const LOOKS: [&str; 14] = [
    "backends",
    "chat",
    "completions",
    "compose",
    "demo",
    "doctor",
    "exec",
    "help",
    "man",
    "mcp",
    "models",
    "probe",
    "status",
    "version",
];

/// What only looks, by the word after a group's name.
const GROUP_LOOKS: [&str; 18] = [
    "check", "explain", "get", "head", "help", "inspect", "judge", "list", "log", "logs", "path",
    "presets", "rules", "schema", "show", "squid", "status", "verify",
];

/// What of Hermes' own program is about its gate: the rest of it, such as `hermes send`, is everyday work.
const HERMES_GATES: [&str; 12] = [
    "approvals",
    "auth",
    "config",
    "egress",
    "gateway",
    "login",
    "pairing",
    "policy",
    "sandbox",
    "setup",
    "uninstall",
    "update",
];

/// What only looks is known; whatever else there is or will be is not for the agent.
fn own_command(command: &ReducedCommand) -> Vec<HarmFinding> {
    let asks_for_help = command.has_arg("--help") || command.has_arg("-h");
    let looks = match own_words(command)[..] {
        [] => true,
        [first, ..] if command.program() == "hermes" && !HERMES_GATES.contains(&first) => true,
        [_, ..] if asks_for_help => true,
        ["exec", ..] => !command.has_arg("--yes"),
        ["gateway", "run", ..] => true,
        ["sandbox", "exec" | "cp", ..] => false,
        ["mcp", "login" | "logout", ..] => false,
        [alone, ..] if LOOKS.contains(&alone) => true,
        [_, verb, ..] => GROUP_LOOKS.contains(&verb),
        [_] => false,
    };
    if !looks || command.long("--yolo") {
        return vec![HarmFinding::dangerous(
            HarmCategory::OwnFiles,
            "changes this program or answers for a person",
        )];
    }
    Vec::new()
}

/// The first two words that are no options.
fn own_words(command: &ReducedCommand) -> Vec<&str> {
    let mut args = command.args().iter().map(|arg| arg.s.as_str());
    let mut words = Vec::new();
    while let Some(word) = args.next() {
        if VALUED.contains(&word) {
            args.next();
        } else if !word.starts_with('-') {
            words.push(word);
        }
        if words.len() == 2 {
            break;
        }
    }
    words
}
