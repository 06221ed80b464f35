//! Programs with a way of their own to run something.

use super::super::ProgramJudge;
use super::{injected, runs};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths::{self, PathLoss};

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let args = command.args();
    match command.program() {
        "gdb" | "lldb" => {
            let ran = args.iter().any(|arg| debugger_runs(arg.s.trim_start()));
            ran.then(|| runs("a debugger")).into_iter().collect()
        }
        // Libraries loaded by path run on load.
        "enable" if command.short('f') => vec![injected("loads code into the shell")],
        "bind" if command.short('x') => vec![injected("binds a command to a key")],
        "ssh" | "scp" | "sftp" | "sshfs" | "autossh" | "mosh" => {
            let ran = command
                .values_of("-o")
                .iter()
                .any(|option| ssh_runs(option));
            let finding = || injected("makes ssh run another program");
            ran.then(finding).into_iter().collect()
        }
        "zip" => {
            let tests = args.iter().position(|arg| {
                arg.s.starts_with('-') && !arg.s.starts_with("--") && arg.s.ends_with("TT")
            });
            let by = tests.and_then(|at| args.get(at + 1));
            let strange = by.is_some_and(|by| !by.s.starts_with("unzip"));
            // The option and the command in one word, as a file name would bring them.
            let joined = args.iter().any(|arg| arg.s.starts_with("-TT "));
            (strange || joined)
                .then(|| runs("zip"))
                .into_iter()
                .collect()
        }
        "cmake" if command.has_arg("-E") => cmake(command, judge),
        "java" => {
            let loads = args.iter().any(|arg| {
                let agent = arg.s.starts_with("-javaagent") || arg.s.starts_with("-agentpath");
                let path = arg.s.split_once(':').map_or("", |(_, path)| path);
                agent && paths::anybodys(path, &judge.cwd, judge.context)
            });
            let finding = || injected("loads an agent into Java");
            loads.then(finding).into_iter().collect()
        }
        "service" | "rc-service" if command.operand(0).contains('/') => {
            vec![injected("runs a program as if it were a service")]
        }
        "ip" if command.has_arg("netns") && command.has_arg("exec") => {
            vec![HarmFinding::dangerous(
                HarmCategory::Privilege,
                "runs a command in another network",
            )]
        }
        _ => Vec::new(),
    }
}

fn debugger_runs(text: &str) -> bool {
    [
        "!",
        "shell ",
        "platform shell",
        "pipe ",
        "python ",
        "py ",
        "source /tmp",
    ]
    .iter()
    .any(|start| text.starts_with(start))
        || text.contains("system(")
        || text.contains("dlopen(")
}

fn ssh_runs(option: &str) -> bool {
    let option = option.to_lowercase();
    let usual = ["ssh -w", "nc -x", "cloudflared", "aws ssm", "gcloud"]
        .iter()
        .any(|usual| option.contains(usual))
        || option.ends_with("none");
    option.starts_with("proxycommand") && !usual
        || [
            "localcommand",
            "knownhostscommand",
            "pkcs11provider",
            "ssh_command",
            "securitykeyprovider",
        ]
        .iter()
        .any(|start| option.starts_with(start))
}

/// `cmake -E rm` deletes as `rm` does.
fn cmake(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    if !command.has_arg("rm") && !command.has_arg("remove_directory") {
        return Vec::new();
    }
    command
        .operands()
        .skip(1)
        .filter(|target| {
            matches!(
                paths::place(&target.s, &judge.cwd, judge.context),
                PathLoss::Root | PathLoss::System | PathLoss::Home
            )
        })
        .map(|target| {
            HarmFinding::floor(
                HarmCategory::Destruction,
                format!("deletes {}", target.shown()),
            )
        })
        .collect()
}
