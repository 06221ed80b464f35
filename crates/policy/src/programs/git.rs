//! Git: what it can lose, and what it can be made to run.

use super::ProgramJudge;
use super::injection::is_plain;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};

/// Settings whose value is a command.
const RUNS: &[&str] = &[
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.hookspath",
    "core.gitproxy",
    "core.askpass",
    "diff.external",
    "sequence.editor",
    "gpg.program",
    "credential.helper",
    "uploadpack.packobjectshook",
    "pager.",
    "alias.",
    "filter.",
    "difftool.",
    "mergetool.",
    "merge.",
    "diff.",
    "protocol.ext.allow",
    "interactive.difffilter",
    "sendemail.",
    "remote.",
    "init.templatedir",
    "gpg.",
    "browser.",
    "man.",
    "url.",
    "include.path",
];

/// Whether a setting of this name is a command to git.
pub(super) fn names_a_program(key: &str) -> bool {
    let key = key.to_lowercase();
    RUNS.iter()
        .any(|run| key == *run || (run.ends_with('.') && key.starts_with(run)))
}

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    if command.program() != "git" {
        return other_tools(command);
    }
    let mut findings = Vec::new();
    let (settings, verb, rest) = split(command);
    if rest.iter().any(|arg| arg == "--help" || arg == "--dry-run") {
        return settings
            .iter()
            .filter_map(|setting| setting_finding(setting))
            .collect();
    }
    for setting in settings {
        findings.extend(setting_finding(&setting));
    }
    let strange = command
        .args()
        .iter()
        .filter_map(|arg| {
            let path = arg.s.strip_prefix("--exec-path=");
            path.or_else(|| arg.s.strip_prefix("--template="))
        })
        .any(|path| crate::paths::anybodys(path, &judge.cwd, judge.context));
    findings.extend(strange.then(|| inject("makes git run other programs as its own")));
    let lose = |reason: &str| HarmFinding::dangerous(HarmCategory::VersionControl, reason);
    let has = |flags: &[&str]| rest.iter().any(|arg| flags.contains(&arg.as_str()));
    let short = |letter: char| {
        rest.iter()
            .any(|arg| arg.starts_with('-') && !arg.starts_with("--") && arg.contains(letter))
    };
    let begins = |start: &str| {
        rest.iter().any(|arg| {
            arg.len() >= start.len().min(5)
                && (arg.starts_with(start) || (start.starts_with(arg.as_str()) && arg.len() >= 5))
        })
    };
    match verb.as_str() {
        "reset"
            if begins("--hard")
                || rest
                    .iter()
                    .any(|arg| arg.starts_with("--h") && "--hard".starts_with(arg.as_str()))
                || has(&["--merge"]) =>
        {
            findings.push(lose("throws away changes (git reset --hard)"));
        }
        "clean" if (short('f') || begins("--force")) && !(short('n') || has(&["--dry-run"])) => {
            findings.push(lose("deletes files that git does not know (git clean)"));
        }
        "push" => {
            let force = short('f')
                || rest.iter().any(|arg| {
                    arg.starts_with("--forc")
                        && !arg.starts_with("--force-with")
                        && !arg.starts_with("--force-if")
                });
            if force
                || has(&["--mirror", "--delete", "-d", "--prune"])
                || rest
                    .iter()
                    .any(|arg| arg.starts_with('+') || arg.starts_with(':') && arg.len() > 1)
            {
                findings.push(lose("overwrites or deletes what others have (git push)"));
            }
            if rest
                .iter()
                .any(|arg| arg.contains("://") && !arg.starts_with('-'))
            {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::Exfiltration,
                    "sends the repository to an address that is none of its remotes",
                ));
            }
        }
        "branch"
            if has(&["-D"])
                || (short('d') || has(&["--delete"])) && (short('f') || has(&["--force"])) =>
        {
            findings.push(lose("deletes a branch"));
        }
        "checkout" | "restore" | "switch" => {
            let all = has(&[".", "./", ":/", "*", "./*", ":(top)", "-a"]);
            // What is only staged comes back from the work tree, unless that is overwritten as well.
            let staged = has(&["--staged", "-S"]) && !has(&["--worktree", "-W"]);
            let forced = short('f') || has(&["--force"]);
            if all && verb != "switch" && !staged
                || has(&["--discard-changes"])
                || (forced && verb != "restore" && rest.len() < 3 && !has(&["-b"]))
            {
                findings.push(lose("throws away changes"));
            }
        }
        "stash" if has(&["drop", "clear"]) => findings.push(lose("throws away stashed changes")),
        "reflog"
            if has(&["delete"])
                || has(&["expire"])
                    && rest.iter().any(|arg| {
                        arg.ends_with("=now") || arg.ends_with("=all") || arg.ends_with("=0")
                    }) =>
        {
            findings.push(lose("throws away git's safety net"));
        }
        "gc" if rest
            .iter()
            .any(|arg| arg == "--prune=now" || arg == "--prune=all") =>
        {
            findings.push(lose("throws away unreachable commits"));
        }
        "filter-branch" | "filter-repo" | "replace" => {
            findings.push(lose("rewrites history"));
        }
        "update-ref" if has(&["-d", "--delete", "--stdin"]) => {
            findings.push(lose("deletes a reference"));
        }
        "worktree" if has(&["remove"]) && (short('f') || has(&["--force"])) => {
            findings.push(lose("deletes a work tree"));
        }
        "rm" if has(&[".", "./", "*", ":/", ".."])
            && (short('r') || has(&["*"]))
            && !has(&["--cached"]) =>
        {
            findings.push(lose("deletes all files"));
        }
        "submodule" if has(&["foreach"]) => {}
        "submodule" if has(&["deinit"]) && (short('f') || has(&["--force", "--all"])) => {
            findings.push(lose("deletes the work trees of submodules"));
        }
        "config" => {
            let mut words = rest.iter().filter(|arg| !arg.starts_with('-'));
            let first = words.next().cloned().unwrap_or_default();
            let (key, value) = if first == "set" {
                (
                    words.next().cloned().unwrap_or_default(),
                    words.next().cloned(),
                )
            } else {
                (first, words.next().cloned())
            };
            let lasting = has(&["--global", "--system"]);
            if lasting
                && key.eq_ignore_ascii_case("http.sslverify")
                && value
                    .as_deref()
                    .is_some_and(|value| matches!(value, "false" | "0"))
            {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::SecurityTool,
                    "lets git believe anybody from now on",
                ));
            }
            if let Some(value) = value {
                findings.extend(setting_finding(&format!("{key}={value}")));
            }
        }
        "clone" | "fetch" | "pull" | "ls-remote" | "remote" | "submodule" | "archive"
            if rest.iter().any(|arg| {
                arg.starts_with("ext::") || arg.contains("=ext::") || arg.contains("ext::sh")
            }) =>
        {
            findings.push(inject("runs a command as a git transport"));
        }
        "daemon" => findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            "opens a repository to the network",
        )),
        "credential" if has(&["fill"]) => {}
        _ => {}
    }
    for arg in &rest {
        for flag in [
            "--upload-pack=",
            "--receive-pack=",
            "--exec=",
            "--open-files-in-pager=",
            "--extcmd=",
            "-O",
            "--ext-diff-cmd=",
        ] {
            if flag == "-O" && verb != "grep" {
                continue;
            }
            if let Some(value) = arg.strip_prefix(flag)
                && !value.is_empty()
                && !matches!(
                    value,
                    "git-upload-pack" | "git-receive-pack" | "less" | "vim" | "code"
                )
            {
                findings.push(inject("makes git run another program"));
            }
        }
    }
    for pair in rest.windows(2) {
        let runs = matches!(
            pair[0].as_str(),
            "--upload-pack" | "-u" | "--receive-pack" | "--extcmd" | "-x"
        ) && matches!(
            verb.as_str(),
            "clone" | "fetch" | "ls-remote" | "push" | "pull" | "difftool"
        );
        if runs
            && !pair[1].starts_with('-')
            && (pair[0] != "-u" || matches!(verb.as_str(), "clone" | "ls-remote"))
            && !pair[1].starts_with("git-")
            && pair[1].contains(['/', ' ', ';', '$'])
        {
            findings.push(inject("makes git run another program"));
        }
        if pair[0] == "--template" || pair[0] == "--exec" || (pair[0] == "-x" && verb == "rebase") {
            if verb == "rebase"
                && !matches!(
                    pair[1].split(' ').next(),
                    Some(
                        "make"
                            | "cargo"
                            | "npm"
                            | "pytest"
                            | "go"
                            | "git"
                            | "yarn"
                            | "pnpm"
                            | "just"
                            | "true"
                    )
                )
            {
                findings.push(inject("makes git run another program"));
            } else if verb != "rebase" && pair[0] == "--template" && pair[1].starts_with("/tmp") {
                findings.push(inject("installs git hooks from a template"));
            }
        }
    }
    if verb == "bisect"
        && rest.first().is_some_and(|arg| arg == "run")
        && rest.iter().any(|arg| arg == "rm" || arg.contains("rm -rf"))
    {
        findings.push(inject("makes git run another program"));
    }
    findings
}

fn inject(reason: &str) -> HarmFinding {
    HarmFinding::dangerous(HarmCategory::Injection, reason)
}

fn setting_finding(setting: &str) -> Option<HarmFinding> {
    let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
    let key = key.to_lowercase();
    if !names_a_program(&key) {
        return None;
    }
    let first = crate::effective::base_name(value.split_whitespace().next().unwrap_or_default());
    let harmless = match key.as_str() {
        "core.pager" | "core.editor" | "sequence.editor" | "interactive.difffilter" => {
            super::injection::PAGERS_AND_EDITORS.contains(&first) && is_plain(value)
        }
        "core.sshcommand" => {
            first == "ssh" && is_plain(value) && !value.to_lowercase().contains("command=")
        }
        "credential.helper" => {
            matches!(
                first,
                "store"
                    | "cache"
                    | "osxkeychain"
                    | "manager"
                    | ""
                    | "libsecret"
                    | "manager-core"
                    | "wincred"
            ) && !value.starts_with('!')
        }
        "core.fsmonitor" => matches!(value, "true" | "false" | ""),
        "core.hookspath" => {
            value == "/dev/null"
                || value.starts_with(".husky")
                || value.starts_with(".githooks")
                || value.is_empty()
        }
        "gpg.program" | "gpg.format" => matches!(first, "gpg" | "gpg2" | "ssh" | "openpgp"),
        "protocol.ext.allow" => value != "always",
        "init.templatedir" | "include.path" => false,
        _ if key.starts_with("alias.") => !value.starts_with('!'),
        _ if key.starts_with("pager.") => {
            matches!(value, "false" | "true" | "less" | "cat")
                || first == "less"
                || first == "delta"
        }
        _ if key.starts_with("remote.") => {
            !(key.ends_with("uploadpack")
                || key.ends_with("receivepack")
                || value.starts_with("ext::")
                || key.ends_with("proxy") && value.contains(' '))
        }
        _ if key.starts_with("url.") => !value.contains("ext::") && !key.starts_with("url.http://"),
        _ if key.starts_with("filter.") => {
            key.contains(".lfs.")
                || !(key.ends_with("clean") || key.ends_with("smudge") || key.ends_with("process"))
        }
        _ if key.starts_with("merge.") => !key.ends_with("driver"),
        _ if key.starts_with("diff.") => {
            !(key.ends_with("command") || key.ends_with("textconv") || key.ends_with("external"))
        }
        _ if key.starts_with("difftool.") || key.starts_with("mergetool.") => !key.ends_with("cmd"),
        _ if key.starts_with("gpg.") => {
            !key.ends_with("program")
                || matches!(first, "gpg" | "gpg2" | "ssh-keygen" | "op-ssh-sign")
        }
        _ if key.starts_with("browser.") || key.starts_with("man.") => !key.ends_with("cmd"),
        _ if key.starts_with("sendemail.") => !key.contains("cmd"),
        _ => false,
    };
    (!harmless).then(|| inject(&format!("makes git run another program ({key})")))
}

/// `-c` settings, the verb, and what follows it.
fn split(command: &ReducedCommand) -> (Vec<String>, String, Vec<String>) {
    let args: Vec<String> = command.args().iter().map(|arg| arg.s.clone()).collect();
    let mut settings = Vec::new();
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|arg| arg.starts_with('-')) {
        match arg.as_str() {
            "-c" | "--config-env" => {
                settings.extend(args.get(at + 1).cloned());
                at += 2;
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path"
            | "--super-prefix" => at += 2,
            _ => at += 1,
        }
    }
    let verb = args.get(at).cloned().unwrap_or_default();
    let rest: Vec<String> = args.get(at + 1..).unwrap_or_default().to_vec();
    if verb == "clone" || verb == "submodule" {
        for pair in rest.windows(2) {
            if pair[0] == "-c" || pair[0] == "--config" {
                settings.push(pair[1].clone());
            }
        }
    }
    (settings, verb, rest)
}

fn other_tools(command: &ReducedCommand) -> Vec<HarmFinding> {
    let acts = [
        super::HarmfulAct::new(
            &["gh", "glab", "hub"],
            &["repo", "delete|archive|edit|rename"],
            HarmCategory::VersionControl,
            "deletes or changes a repository",
        ),
        super::HarmfulAct::new(
            &["gh", "glab"],
            &[
                "release|secret|variable|ssh-key|gpg-key|issue|cache|label|run|codespace|gist",
                "delete|remove",
            ],
            HarmCategory::VersionControl,
            "deletes something that others use",
        ),
        super::HarmfulAct::new(
            &["gh"],
            &["secret|ssh-key|variable", "set|add"],
            HarmCategory::Persistence,
            "changes who may do what on the forge",
        ),
        super::HarmfulAct::new(
            &["gh", "glab"],
            &["repo", "deploy-key|autolink", "add|create|delete"],
            HarmCategory::Persistence,
            "changes who may do what on the forge",
        ),
        super::HarmfulAct::new(
            &["hg"],
            &["strip|purge|rollback"],
            HarmCategory::VersionControl,
            "throws away changes",
        ),
        super::HarmfulAct::new(
            &["svn"],
            &["delete|revert"],
            HarmCategory::VersionControl,
            "throws away changes",
        )
        .with(&["-R", "--recursive", "--force"]),
        super::HarmfulAct::new(
            &["jj"],
            &["abandon|op"],
            HarmCategory::VersionControl,
            "throws away changes",
        )
        .with(&["--all", "abandon", "restore"]),
        super::HarmfulAct::new(
            &["bfg"],
            &[],
            HarmCategory::VersionControl,
            "rewrites history",
        ),
    ];
    let mut findings = super::acts::look_up(&acts, command);
    if matches!(command.program(), "gh" | "glab") && command.operand(0) == "api" {
        let deletes = command
            .values_of("-X")
            .iter()
            .chain(&command.values_of("--method"))
            .any(|method| method == "DELETE");
        if deletes {
            findings.push(HarmFinding::dangerous(
                HarmCategory::VersionControl,
                "deletes something through the forge's API",
            ));
        }
    }
    findings
}
