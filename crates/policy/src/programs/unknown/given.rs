//! Files that code on the command line opens, lists that a download reads, folders that a container is shown.

use crate::effective::ReducedCommand;
use crate::text::ExpandedText;

/// Interpreters whose code, given on the command line, opens what stands behind it.
const READS_OPERANDS: &[(&[&str], &[&str])] = &[
    (&["python", "python2", "python3"], &["argv", "fileinput"]),
    (&["node", "nodejs", "bun", "deno"], &["argv", "args"]),
    (&["ruby"], &["ARGV", "ARGF", "argf", "gets", "<>"]),
    (&["perl"], &["ARGV", "<>", "shift", "<STDIN>"]),
    (&["php"], &["argv"]),
    (&["lua"], &["arg"]),
];

/// Whether a program is an interpreter of this kind.
pub(super) fn takes_operands(program: &str) -> bool {
    READS_OPERANDS
        .iter()
        .any(|(programs, _)| programs.contains(&program))
}

/// What is behind the code, where the code looks there or is run for each line (`-n`, `-p`).
pub(super) fn given_to_code(command: &ReducedCommand) -> Vec<&ExpandedText> {
    let program = command.program();
    let takes = |code: &str| {
        READS_OPERANDS.iter().any(|(programs, words)| {
            programs.contains(&program) && words.iter().any(|word| code.contains(word))
        })
    };
    let args = command.args();
    let carries = |arg: &ExpandedText| {
        let cluster = arg
            .s
            .strip_prefix('-')
            .filter(|rest| !rest.starts_with('-'));
        arg.s == "--eval" || cluster.is_some_and(|rest| rest.ends_with(['c', 'e', 'E', 'r']))
    };
    let Some(at) = args.iter().position(carries) else {
        return Vec::new();
    };
    let lines = matches!(program, "perl" | "ruby") && (command.short('n') || command.short('p'));
    let code = args.get(at + 1).map_or("", |code| code.s.as_str());
    if !lines && !takes(code) {
        return Vec::new();
    }
    args.iter()
        .skip(at + 2)
        .filter(|arg| !arg.s.starts_with('-'))
        .collect()
}

pub(super) fn valued<'c>(command: &'c ReducedCommand, flags: &[&str]) -> Vec<&'c ExpandedText> {
    flags
        .iter()
        .filter_map(|flag| command.value_of(flag))
        .collect()
}

/// Folders that a container is shown, if nothing of their path is known.
pub(super) fn mounted(command: &ReducedCommand) -> Vec<&ExpandedText> {
    let mut mounts = valued(command, &["-v", "--volume", "--mount"]);
    mounts.retain(|mount| {
        let source = mount.s.strip_prefix("type=bind,").unwrap_or(&mount.s);
        let source = source
            .strip_prefix("source=")
            .or(source.strip_prefix("src="))
            .unwrap_or(source);
        source.starts_with(crate::text::HOLE) && source.contains([':', ','])
    });
    mounts
}
