//! Wrappers with a grammar of their own: other users, other hosts, containers, terminals.

mod applescript;
mod containers;
mod hosts;
mod parallel;
mod terminals;
mod told;

pub(super) use told::written_for_later;

use super::builtins::joined;
use super::wrappers::WrappedCommand;
use crate::effective::ReducedCommand;
use crate::text::ExpandedText;
use containers::container;
use parallel::parallel;
use terminals::{capsh, gdb, make_eval, screen, socat, tmux};

pub(super) fn inner(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let args = command.args();
    match command.program() {
        "runuser"
            if args
                .iter()
                .any(|arg| matches!(arg.s.as_str(), "-u" | "--user")) =>
        {
            after_user(args)
        }
        "su" | "runuser" => value(command, &["-c", "--command", "--session-command"]),
        "sg" | "newgrp" => value(command, &["-c"]),
        "script" => value(command, &["-c", "--command"]),
        "scriptlive" => value(command, &["-c"]),
        "gdb" | "lldb" => gdb(command),
        "ssh" | "autossh" | "mosh" => ssh(command),
        "docker" | "podman" | "nerdctl" | "docker-compose" | "podman-compose" => container(command),
        "kubectl" | "oc" | "k3s" | "microk8s" => after_dashes(command, "exec"),
        "lxc" | "lxc-attach" | "incus" | "machinectl" | "apptainer" | "singularity" => {
            after_dashes(command, "exec")
        }
        "git" => {
            let mut inner = git(args);
            inner.extend(told::inner(command));
            inner
        }
        "op" | "doppler" | "aws-vault" | "chamber" | "dotenv" | "infisical" | "systemd-cat" => {
            match args.iter().position(|arg| arg.s == "--") {
                Some(at) => words(&args[at + 1..]),
                None => Vec::new(),
            }
        }
        "ip" | "xdotool" => rest_after_exec(args),
        "hermetic" | "hermes" => own_exec(args),
        "parallel" => parallel(command),
        "at" | "batch"
            if args
                .iter()
                .any(|arg| matches!(arg.s.as_str(), "-l" | "-c" | "-V" | "-h" | "-r" | "-d")) =>
        {
            Vec::new()
        }
        "at" | "batch" => vec![WrappedCommand::Stdin],
        "tmux" => tmux(command),
        "screen" => screen(command),
        "nix-shell" | "nix" => value(command, &["--run", "--command", "-c"]),
        "poetry" | "uv" | "pipenv" | "rye" | "pdm" | "hatch" if operand(args, 0) == Some("run") => {
            rest_after(args, "run")
        }
        "direnv" if operand(args, 0) == Some("exec") => words(args.get(2..).unwrap_or_default()),
        "bundle" | "mise" | "rbenv" | "pyenv" | "npm" | "pnpm" | "yarn" | "opam"
            if operand(args, 0) == Some("exec") =>
        {
            npm_exec(args)
        }
        "npx" | "bunx" => npm_exec(args),
        "pnpm" | "yarn" if operand(args, 0) == Some("dlx") => rest_after(args, "dlx"),
        "pipx" if operand(args, 0) == Some("run") => rest_after(args, "run"),
        "uvx" => npm_exec(args),
        "split" => value(command, &["--filter"]),
        "conda" | "mamba" | "micromamba" if operand(args, 0) == Some("run") => conda(args),
        "make" | "gmake" => make_eval(command),
        "start-stop-daemon" => value(command, &["--exec", "-x", "--startas", "-a"]),
        "capsh" => capsh(command),
        "perf" if matches!(operand(args, 0), Some("stat" | "record" | "trace")) => {
            after_dashes_or_first(args)
        }
        "xterm" | "gnome-terminal" | "konsole" | "alacritty" | "kitty" | "urxvt" => {
            match args
                .iter()
                .position(|arg| matches!(arg.s.as_str(), "-e" | "-x" | "--"))
            {
                Some(at) => words(&args[at + 1..]),
                None => Vec::new(),
            }
        }
        "osascript" | "osacompile" => applescript::shell_texts(command),
        "launchctl" if operand(args, 0) == Some("asuser") => {
            words(args.get(2..).unwrap_or_default())
        }
        "wsl" | "cygstart" => words(args),
        "socat" => socat(args),
        _ => {
            let mut inner = hosts::inner(command);
            inner.extend(told::inner(command));
            inner
        }
    }
}

/// `runuser -u name -- cmd`.
fn after_user(args: &[ExpandedText]) -> Vec<WrappedCommand> {
    let at = args
        .iter()
        .position(|arg| matches!(arg.s.as_str(), "-u" | "--user"));
    let rest = at.and_then(|at| args.get(at + 2..)).unwrap_or_default();
    let from = rest
        .iter()
        .position(|arg| !arg.s.starts_with('-'))
        .unwrap_or(rest.len());
    words(&rest[from..])
}

/// `hermetic exec -- cmd` on a backend that is no boundary is `cmd`.
fn own_exec(args: &[ExpandedText]) -> Vec<WrappedCommand> {
    const WITH_VALUE: &[&str] = &[
        "--backend",
        "--image",
        "--session",
        "--timeout",
        "--env",
        "-e",
        "--mount",
        "--workdir",
        "-w",
        "--allow",
        "--preset",
        "--home",
        "--config",
        "--log-format",
        "--log-level",
    ];
    let sealed = args.windows(2).any(|pair| {
        pair[0].s == "--backend"
            && matches!(
                pair[1].s.as_str(),
                "native" | "docker" | "singularity" | "modal" | "daytona"
            )
    });
    let mut verb = 0;
    while let Some(arg) = args.get(verb).filter(|arg| arg.s.starts_with('-')) {
        verb += if WITH_VALUE.contains(&arg.s.as_str()) {
            2
        } else {
            1
        };
    }
    if sealed || args.get(verb).is_none_or(|arg| arg.s != "exec") {
        return Vec::new();
    }
    let mut at = verb + 1;
    while let Some(arg) = args.get(at).filter(|arg| arg.s.starts_with('-')) {
        if arg.s == "--" {
            at += 1;
            break;
        }
        at += if WITH_VALUE.contains(&arg.s.as_str()) {
            2
        } else {
            1
        };
    }
    words(args.get(at..).unwrap_or_default())
}

/// `git submodule foreach 'cmd'` and `git bisect run cmd`.
fn git(args: &[ExpandedText]) -> Vec<WrappedCommand> {
    let at = args.windows(2).position(|pair| {
        matches!(
            (pair[0].s.as_str(), pair[1].s.as_str()),
            ("submodule", "foreach") | ("bisect", "run")
        )
    });
    let Some(at) = at else {
        return Vec::new();
    };
    let rest: Vec<ExpandedText> = args[at + 2..]
        .iter()
        .skip_while(|arg| arg.s.starts_with('-'))
        .cloned()
        .collect();
    if rest.is_empty() {
        Vec::new()
    } else {
        vec![WrappedCommand::Script(joined(&rest))]
    }
}

/// `ip netns exec NAME cmd` and `xdotool exec cmd`.
fn rest_after_exec(args: &[ExpandedText]) -> Vec<WrappedCommand> {
    let named = usize::from(args.first().is_some_and(|arg| arg.s == "netns"));
    match args.iter().position(|arg| arg.s == "exec") {
        Some(at) => words(args.get(at + 1 + named..).unwrap_or_default()),
        None => Vec::new(),
    }
}

fn words(rest: &[ExpandedText]) -> Vec<WrappedCommand> {
    if rest.is_empty() {
        Vec::new()
    } else {
        vec![WrappedCommand::Words(rest.to_vec())]
    }
}

fn operand(args: &[ExpandedText], index: usize) -> Option<&str> {
    args.iter()
        .filter(|arg| !arg.s.starts_with('-'))
        .nth(index)
        .map(|arg| arg.s.as_str())
}

fn value(command: &ReducedCommand, flags: &[&str]) -> Vec<WrappedCommand> {
    let args = command.args();
    for (at, arg) in args.iter().enumerate() {
        for flag in flags {
            if arg.s == *flag || (flag.len() == 2 && short_cluster(&arg.s, flag)) {
                return args
                    .get(at + 1)
                    .map_or_else(Vec::new, |text| vec![WrappedCommand::Script(text.clone())]);
            }
            let glued = if flag.starts_with("--") {
                arg.s.strip_prefix(&format!("{flag}="))
            } else {
                None
            };
            if let Some(text) = glued {
                return vec![WrappedCommand::Script(ExpandedText::known(text))];
            }
        }
    }
    Vec::new()
}

/// `-qc` ends in the flag that takes the value.
fn short_cluster(arg: &str, flag: &str) -> bool {
    arg.len() > 2
        && arg.len() < 6
        && arg.starts_with('-')
        && !arg.starts_with("--")
        && arg.ends_with(&flag[1..])
        && arg[1..].chars().all(|c| c.is_ascii_alphabetic())
}

fn rest_after(args: &[ExpandedText], word: &str) -> Vec<WrappedCommand> {
    let Some(at) = args.iter().position(|arg| arg.s == word) else {
        return Vec::new();
    };
    let rest = &args[at + 1..];
    let from = rest
        .iter()
        .position(|arg| !arg.s.starts_with('-'))
        .unwrap_or(rest.len());
    words(&rest[from..])
}

fn npm_exec(args: &[ExpandedText]) -> Vec<WrappedCommand> {
    if let Some(at) = args
        .iter()
        .position(|arg| matches!(arg.s.as_str(), "-c" | "--call"))
    {
        return args
            .get(at + 1)
            .map_or_else(Vec::new, |text| vec![WrappedCommand::Script(text.clone())]);
    }
    if let Some(at) = args.iter().position(|arg| arg.s == "--") {
        return words(&args[at + 1..]);
    }
    if args.iter().any(|arg| arg.s == "exec") {
        return rest_after(args, "exec");
    }
    let from = args
        .iter()
        .position(|arg| !arg.s.starts_with('-'))
        .unwrap_or(args.len());
    words(&args[from..])
}

fn conda(args: &[ExpandedText]) -> Vec<WrappedCommand> {
    let mut at = args
        .iter()
        .position(|arg| arg.s == "run")
        .map_or(0, |at| at + 1);
    while let Some(arg) = args.get(at).filter(|arg| arg.s.starts_with('-')) {
        at += if matches!(arg.s.as_str(), "-n" | "--name" | "-p" | "--prefix") {
            2
        } else {
            1
        };
    }
    words(&args[at..])
}

fn ssh(command: &ReducedCommand) -> Vec<WrappedCommand> {
    const WITH_VALUE: &str = "BbcDEeFIiJLlmOopQRSWw";
    let args = command.args();
    let mut at = 0;
    let mut inner = Vec::new();
    while let Some(arg) = args.get(at).filter(|arg| arg.s.starts_with('-')) {
        let flag = arg.s.chars().nth(1).unwrap_or(' ');
        let option = if arg.s == "-o" {
            args.get(at + 1).map(|text| text.s.clone())
        } else {
            arg.s.strip_prefix("-o").map(str::to_owned)
        };
        if let Some(option) = option
            && let Some((key, value)) = option.split_once(['=', ' '])
            && [
                "proxycommand",
                "localcommand",
                "knownhostscommand",
                "remotecommand",
            ]
            .contains(&key.to_lowercase().as_str())
        {
            inner.push(WrappedCommand::Script(ExpandedText::known(value)));
        }
        at += if arg.s.len() == 2 && WITH_VALUE.contains(flag) {
            2
        } else {
            1
        };
    }
    match args.get(at + 1..) {
        Some(rest) if !rest.is_empty() => {
            let rest = if rest[0].s == "--" { &rest[1..] } else { rest };
            inner.push(WrappedCommand::Script(joined(rest)));
        }
        // Text piped to a remote login shell runs there.
        _ if at < args.len() && command.input.present && command.input.known.is_some() => {
            inner.push(WrappedCommand::Stdin);
        }
        _ => {}
    }
    inner
}

fn after_dashes(command: &ReducedCommand, verb: &str) -> Vec<WrappedCommand> {
    let args = command.args();
    if command.program() != "lxc-attach"
        && !args.iter().any(|arg| arg.s == verb || arg.s == "shell")
    {
        return Vec::new();
    }
    if let Some(at) = args.iter().position(|arg| arg.s == "--") {
        let rest = args[at + 1..].to_vec();
        return if rest.is_empty() {
            Vec::new()
        } else {
            vec![WrappedCommand::Contained(rest)]
        };
    }
    let Some(at) = args.iter().position(|arg| arg.s == verb) else {
        return Vec::new();
    };
    // `kubectl exec pod cmd`, the old spelling.
    let rest: Vec<ExpandedText> = args[at + 1..]
        .iter()
        .skip_while(|arg| arg.s.starts_with('-'))
        .skip(1)
        .skip_while(|arg| arg.s.starts_with('-'))
        .cloned()
        .collect();
    if rest.is_empty() {
        Vec::new()
    } else {
        vec![WrappedCommand::Contained(rest)]
    }
}

fn after_dashes_or_first(args: &[ExpandedText]) -> Vec<WrappedCommand> {
    if let Some(at) = args.iter().position(|arg| arg.s == "--") {
        return words(&args[at + 1..]);
    }
    let rest = &args[1.min(args.len())..];
    let from = rest
        .iter()
        .position(|arg| !arg.s.starts_with('-'))
        .unwrap_or(rest.len());
    words(&rest[from..])
}
