//! Debuggers, terminals and other programs that start a command in passing.

use super::super::builtins::joined;
use super::{WrappedCommand, words};
use crate::effective::ReducedCommand;
use crate::text::ExpandedText;

pub(super) fn gdb(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let mut inner = Vec::new();
    for flag in [
        "-ex",
        "--ex",
        "-eval-command",
        "--eval-command",
        "-o",
        "--one-line",
        "-iex",
    ] {
        for text in command.values_of(flag) {
            let text = text.trim();
            for prefix in ["!", "shell ", "platform shell ", "pipe "] {
                if let Some(shell) = text.strip_prefix(prefix) {
                    inner.push(WrappedCommand::Script(ExpandedText::known(shell)));
                }
            }
            if let Some(at) = text.find("system(") {
                let quoted = text[at + 7..].trim_matches(['(', ')', '"', '\'', ' ']);
                inner.push(WrappedCommand::Script(ExpandedText::known(quoted)));
            }
            if let Some(code) = text.strip_prefix("python ") {
                inner.push(WrappedCommand::Words(vec![
                    ExpandedText::known("python3"),
                    ExpandedText::known("-c"),
                    ExpandedText::known(code),
                ]));
            }
        }
    }
    if let Some(at) = command
        .args()
        .iter()
        .position(|arg| arg.s == "--args" || arg.s == "--")
    {
        inner.extend(words(&command.args()[at + 1..]));
    }
    inner
}

pub(super) fn tmux(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let args = command.args();
    let Some(at) = args.iter().position(|arg| {
        matches!(
            arg.s.as_str(),
            "new"
                | "new-session"
                | "new-window"
                | "neww"
                | "split-window"
                | "splitw"
                | "send-keys"
                | "send"
                | "run-shell"
                | "run"
                | "respawn-pane"
                | "if-shell"
                | "pipe-pane"
                | "display-popup"
                | "popup"
        )
    }) else {
        return Vec::new();
    };
    let mut inner = Vec::new();
    let mut next = at + 1;
    while let Some(arg) = args.get(next) {
        if arg.s.starts_with('-') {
            next += if arg.s.len() == 2 && "stncFexyb".contains(&arg.s[1..]) {
                2
            } else {
                1
            };
            continue;
        }
        if matches!(arg.s.as_str(), "Enter" | "C-m" | "ENTER" | "C-c") {
            next += 1;
            continue;
        }
        if arg.s.contains(' ') || !args[next..].iter().any(|arg| arg.s.contains(' ')) {
            let rest: Vec<ExpandedText> = args[next..]
                .iter()
                .filter(|arg| !matches!(arg.s.as_str(), "Enter" | "C-m" | "ENTER"))
                .cloned()
                .collect();
            inner.push(WrappedCommand::Script(joined(&rest)));
            break;
        }
        next += 1;
    }
    inner
}

pub(super) fn screen(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let args = command.args();
    if let Some(at) = args
        .iter()
        .position(|arg| arg.s == "stuff" || arg.s == "exec")
    {
        return args.get(at + 1).map_or_else(Vec::new, |text| {
            vec![WrappedCommand::Script(ExpandedText {
                s: text.s.replace("^M", "\n").replace("\\n", "\n"),
                ..text.clone()
            })]
        });
    }
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|arg| arg.s.starts_with('-')) {
        at += if arg.s.ends_with('S')
            || arg.s.ends_with('p')
            || arg.s.ends_with('t')
            || arg.s.ends_with('c')
        {
            2
        } else {
            1
        };
    }
    args.get(at..).map_or_else(Vec::new, words)
}

/// `make --eval='x:;rm -rf /'` and makefiles on standard input.
pub(super) fn make_eval(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let mut inner = Vec::new();
    for flag in ["--eval", "-E"] {
        for text in command.values_of(flag) {
            for piece in text.split(['\n', ';']) {
                if let Some(at) = text.find("$(shell ") {
                    inner.push(WrappedCommand::Script(ExpandedText::known(
                        text[at + 8..].trim_end_matches(')'),
                    )));
                }
                if !piece.trim_end().ends_with(':') && !piece.trim().is_empty() {
                    inner.push(WrappedCommand::Script(ExpandedText::known(piece.trim())));
                }
            }
        }
    }
    let from_stdin = command
        .values_of("-f")
        .iter()
        .any(|file| file == "-" || file == "/dev/stdin");
    if from_stdin && let Some(text) = &command.input.known {
        for line in text.lines() {
            if let Some(recipe) = line.strip_prefix('\t') {
                inner.push(WrappedCommand::Script(ExpandedText::known(
                    recipe.trim_start_matches(['@', '-']),
                )));
            } else if let Some((_, recipe)) = line.split_once(';') {
                inner.push(WrappedCommand::Script(ExpandedText::known(recipe)));
            }
        }
    }
    inner
}

pub(super) fn capsh(command: &ReducedCommand) -> Vec<WrappedCommand> {
    match command.args().iter().position(|arg| arg.s == "--") {
        Some(at) => {
            let mut shell = vec![ExpandedText::known("bash")];
            shell.extend_from_slice(&command.args()[at + 1..]);
            words(&shell)
        }
        None => Vec::new(),
    }
}

pub(super) fn socat(args: &[ExpandedText]) -> Vec<WrappedCommand> {
    args.iter()
        .filter_map(|arg| {
            let (kind, rest) = arg.s.split_once(':')?;
            let kind = kind.to_lowercase();
            (kind == "exec" || kind == "system").then(|| {
                let text = rest
                    .split(",pty")
                    .next()
                    .unwrap_or(rest)
                    .split(",stderr")
                    .next()
                    .unwrap_or(rest);
                WrappedCommand::Script(ExpandedText::known(text.trim_matches(['\'', '"'])))
            })
        })
        .collect()
}
