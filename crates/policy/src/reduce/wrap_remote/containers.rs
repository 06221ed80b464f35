//! Commands that run in a container.

use super::WrappedCommand;
use crate::effective::ReducedCommand;
use crate::text::ExpandedText;

pub(super) fn container(command: &ReducedCommand) -> Vec<WrappedCommand> {
    const WITH_VALUE: &[&str] = &[
        "-e",
        "--env",
        "-u",
        "--user",
        "-w",
        "--workdir",
        "-v",
        "--volume",
        "--mount",
        "--name",
        "-p",
        "--publish",
        "--network",
        "--net",
        "--entrypoint",
        "--env-file",
        "-l",
        "--label",
        "-m",
        "--memory",
        "--cpus",
        "-h",
        "--hostname",
        "--platform",
        "--pid",
        "--ipc",
        "--uts",
        "--userns",
        "--cap-add",
        "--cap-drop",
        "--device",
        "--security-opt",
        "--restart",
        "--gpus",
        "--add-host",
        "--dns",
        "--shm-size",
        "--ulimit",
        "--tmpfs",
        "--index",
        "--detach-keys",
        "-f",
        "--file",
        "--project-directory",
        "--profile",
        "-H",
        "--host",
        "--context",
        "--log-driver",
        "--pull",
        "--runtime",
        "--expose",
        "--link",
        "--ip",
        "--stop-signal",
        "--log-opt",
        "-a",
    ];
    let args = command.args();
    let Some(verb) = args
        .iter()
        .position(|arg| matches!(arg.s.as_str(), "exec" | "run"))
    else {
        return Vec::new();
    };
    let mut at = verb + 1;
    while let Some(arg) = args.get(at).filter(|arg| arg.s.starts_with('-')) {
        at += if WITH_VALUE.contains(&arg.s.as_str()) {
            2
        } else {
            1
        };
    }
    let mut rest = args.get(at + 1..).unwrap_or_default().to_vec();
    if let Some(entry) = command.values_of("--entrypoint").first() {
        rest.insert(0, ExpandedText::known(entry.clone()));
    }
    if rest.is_empty() {
        return Vec::new();
    }
    if args[verb].s == "exec" {
        return vec![WrappedCommand::Contained(rest)];
    }
    if crate::programs::containers::reaches_host(command) {
        let outside = crate::programs::containers::as_on_the_host(command, &rest);
        return vec![WrappedCommand::Words(outside)];
    }
    // A fresh container with nothing of the host in it can only lose itself.
    Vec::new()
}
