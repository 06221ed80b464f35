//! Commands for other machines, by whatever tool carries them there.

use super::super::wrappers::WrappedCommand;
use super::{operand, value, words};
use crate::effective::ReducedCommand;
use crate::text::ExpandedText;

pub(super) fn inner(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let args = command.args();
    match command.program() {
        "vagrant" | "fly" | "flyctl" | "gcloud" | "eb" | "genie" => {
            value(command, &["-c", "--command", "-C"])
        }
        "az" => value(command, &["--scripts"]),
        "aws" => aws(args),
        "pdsh" | "clush" | "dsh" => past_hosts(args, &["-w", "-g", "-x", "-f", "-t", "-u"]),
        "pssh" | "parallel-ssh" | "prsync" => {
            past_hosts(args, &["-h", "-H", "-l", "-p", "-t", "-o"])
        }
        "salt" => past_word(args, "cmd.run"),
        "ansible" => value(command, &["-a", "--args"]),
        "fab" | "distrobox" | "toolbox" | "schroot" | "nsjail" | "heroku" => past_word(args, "--"),
        "adb" => past_word(args, "shell"),
        "multipass" | "limactl" | "runc" | "crictl" | "ctr" => past_name(args),
        "flatpak" => value(command, &["--command"]),
        _ => Vec::new(),
    }
}

/// `aws ssm send-command --parameters commands="…"`.
fn aws(args: &[ExpandedText]) -> Vec<WrappedCommand> {
    if operand(args, 0) != Some("ssm") {
        return Vec::new();
    }
    let text = args
        .iter()
        .find_map(|arg| arg.s.split_once("commands=").map(|(_, text)| text));
    text.map(|text| {
        WrappedCommand::Script(ExpandedText::known(
            text.trim_matches(['[', ']', '"', '\'']),
        ))
    })
    .into_iter()
    .collect()
}

fn past_hosts(args: &[ExpandedText], with_value: &[&str]) -> Vec<WrappedCommand> {
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|arg| arg.s.starts_with('-')) {
        at += if with_value.contains(&arg.s.as_str()) {
            2
        } else {
            1
        };
    }
    script(args.get(at..).unwrap_or_default())
}

fn past_word(args: &[ExpandedText], word: &str) -> Vec<WrappedCommand> {
    match args.iter().position(|arg| arg.s == word) {
        Some(at) => script(&args[at + 1..]),
        None => Vec::new(),
    }
}

/// `exec NAME cmd` or `shell NAME cmd`.
fn past_name(args: &[ExpandedText]) -> Vec<WrappedCommand> {
    let verb = args
        .iter()
        .position(|arg| matches!(arg.s.as_str(), "exec" | "shell"));
    let Some(verb) = verb else {
        return Vec::new();
    };
    let rest: Vec<ExpandedText> = args[verb + 1..]
        .iter()
        .skip_while(|arg| arg.s.starts_with('-'))
        .skip(1)
        .skip_while(|arg| arg.s == "--")
        .cloned()
        .collect();
    words(&rest)
}

fn script(rest: &[ExpandedText]) -> Vec<WrappedCommand> {
    if rest.is_empty() {
        return Vec::new();
    }
    vec![WrappedCommand::Script(super::joined(rest))]
}
