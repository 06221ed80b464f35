//! A row of knowledge: this program with these words does that.

use std::collections::HashSet;

use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};

pub(crate) struct HarmfulAct {
    pub(crate) programs: &'static [&'static str],
    /// The first operands, in order; `a|b` is either, an empty list is anything.
    pub(crate) words: &'static [&'static str],
    /// One of these flags, if any are named. A single dash and letter also counts in a cluster.
    pub(crate) flags: &'static [&'static str],
    /// None of these.
    pub(crate) unless: &'static [&'static str],
    pub(crate) category: HarmCategory,
    pub(crate) floor: bool,
    pub(crate) reason: &'static str,
}

impl HarmfulAct {
    pub(crate) const fn new(
        programs: &'static [&'static str],
        words: &'static [&'static str],
        category: HarmCategory,
        reason: &'static str,
    ) -> Self {
        Self {
            programs,
            words,
            flags: &[],
            unless: &[],
            category,
            floor: false,
            reason,
        }
    }

    pub(crate) const fn with(mut self, flags: &'static [&'static str]) -> Self {
        self.flags = flags;
        self
    }

    pub(crate) const fn unless(mut self, flags: &'static [&'static str]) -> Self {
        self.unless = flags;
        self
    }

    pub(crate) const fn floor(mut self) -> Self {
        self.floor = true;
        self
    }

    fn finding(&self) -> HarmFinding {
        if self.floor {
            HarmFinding::floor(self.category, self.reason)
        } else {
            HarmFinding::dangerous(self.category, self.reason)
        }
    }
}

/// Options of command families that take a value, so that it is not mistaken for a subcommand.
const VALUED: &[&str] = &[
    "-n",
    "--namespace",
    "--context",
    "--kubeconfig",
    "-H",
    "--host",
    "--profile",
    "--region",
    "--output",
    "-o",
    "--endpoint-url",
    "--project",
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "-M",
    "--machine",
    "--cluster",
    "-f",
    "--file",
    "-p",
    "--project-name",
    "-g",
    "--resource-group",
    "--subscription",
    "--account",
    "--zone",
    "--config",
    "--log-level",
];

/// The programs a table speaks of, so that any other need not be held against every row.
pub(crate) fn programs_of(acts: &[HarmfulAct]) -> HashSet<&'static str> {
    acts.iter().flat_map(|act| act.programs).copied().collect()
}

pub(crate) fn look_up(acts: &[HarmfulAct], command: &ReducedCommand) -> Vec<HarmFinding> {
    let program = command.program();
    let version = command.args().len() == 1 && command.has_arg("--version");
    if command.has_arg("--help") || version || only_lists(command) {
        return Vec::new();
    }
    acts.iter()
        .filter(|act| {
            act.programs.contains(&program)
                && words_match(act.words, command)
                && (act.flags.is_empty() || act.flags.iter().any(|flag| has_flag(command, flag)))
                && !act.unless.iter().any(|flag| has_flag(command, flag))
        })
        .map(HarmfulAct::finding)
        .collect()
}

/// `chsh --list-shells`, `depmod --dry-run`: an option that prints instead, to a tool that carries no
/// command of somebody's for which it might be meant.
fn only_lists(command: &ReducedCommand) -> bool {
    const CARRY: &[&str] = &[
        "docker", "podman", "nerdctl", "kubectl", "oc", "salt", "ansible", "ssh", "find", "xargs",
        "sudo", "npx", "gdb", "nsenter", "lxc", "incus", "virsh", "aws", "gcloud", "az",
    ];
    let lists = |text: &str| {
        matches!(text, "--dry-run" | "--print-config" | "--show-config")
            || text == "--list"
            || text
                .strip_prefix("--list-")
                .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_lowercase()))
    };
    !CARRY.contains(&command.program())
        && command
            .args()
            .iter()
            .take_while(|arg| arg.s != "--")
            .any(|arg| lists(&arg.s))
}

pub(crate) fn has_flag(command: &ReducedCommand, flag: &str) -> bool {
    if flag.contains('=') {
        return command.has_arg(flag);
    }
    if flag.starts_with("--") {
        return command.long(flag);
    }
    match flag.strip_prefix('-') {
        Some(letter) if letter.chars().count() == 1 => letter.chars().all(|c| command.short(c)),
        Some(_) => command
            .args()
            .iter()
            .any(|arg| arg.s == flag || arg.s.starts_with(&format!("{flag}="))),
        None => command.args().iter().any(|arg| arg.s == flag),
    }
}

/// The operands that are subcommands and their objects.
pub(crate) fn subcommands(command: &ReducedCommand) -> Vec<&str> {
    let mut words = Vec::new();
    let mut skip = false;
    for arg in command.args() {
        if skip {
            skip = false;
            continue;
        }
        if arg.s.starts_with('-') {
            skip = VALUED.contains(&arg.s.as_str());
            continue;
        }
        words.push(arg.s.as_str());
        if words.len() > 6 {
            break;
        }
    }
    words
}

/// The words of a call up to the first option behind it, where only its own values can follow.
pub(crate) fn call(command: &ReducedCommand) -> Vec<&str> {
    let mut words = Vec::new();
    let mut args = command.args().iter();
    while let Some(arg) = args.next() {
        if !arg.s.starts_with('-') {
            words.push(arg.s.as_str());
        } else if !words.is_empty() {
            break;
        } else if !arg.s.contains('=') {
            args.next();
        }
    }
    words
}

fn words_match(expected: &[&str], command: &ReducedCommand) -> bool {
    if expected.is_empty() {
        return true;
    }
    let given = subcommands(command);
    expected.len() <= given.len()
        && expected.iter().zip(&given).all(|(expected, given)| {
            expected.split('|').any(|word| {
                word == *given
                    || word == "*=*" && given.contains('=')
                    || word
                        .strip_suffix('*')
                        .is_some_and(|start| given.starts_with(start))
            })
        })
}
