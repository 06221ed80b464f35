//! The act of using a resource up: a disk filled, the memory taken, every processor busy.

use super::ProgramJudge;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::ExpandedText;

/// Files that never end.
const ENDLESS: &[&str] = &["/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"];

/// A file of this many gigabytes is made to fill a disk.
const LARGEST_FILE: u64 = 200;

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let uses_up = match command.program() {
        "yes" => fills(command),
        "cat" | "pv" | "tee" | "base64" | "openssl" | "tr" => {
            reads_without_end(command) && fills(command)
        }
        "tail" | "sort" | "tac" | "rev" => reads_without_end(command) && !command.short('c'),
        "fallocate" | "truncate" | "mkfile" | "xfs_mkfile" => {
            command.args().iter().any(|arg| is_huge(&arg.s))
        }
        "stress" | "stress-ng" | "stressapptest" | "memtester" => !command.args().is_empty(),
        _ => false,
    };
    if !uses_up {
        return Vec::new();
    }
    vec![HarmFinding::dangerous(
        HarmCategory::Process,
        "uses up the machine's disk, memory or processors",
    )]
}

/// Whether what it prints goes into a file.
fn fills(command: &ReducedCommand) -> bool {
    let kept = |file: &ExpandedText| !file.s.starts_with("/dev/");
    command.writes.iter().any(kept)
}

fn reads_without_end(command: &ReducedCommand) -> bool {
    command
        .operands()
        .chain(&command.reads)
        .any(|file| ENDLESS.contains(&file.s.as_str()))
}

/// `900G`, `2T`, `100%`.
fn is_huge(size: &str) -> bool {
    let digits = size.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let (number, unit) = digits.split_at(end);
    let number: u64 = number.parse().unwrap_or(0);
    match unit.chars().next() {
        Some('%') => number >= 90,
        Some('g' | 'G') => number >= LARGEST_FILE,
        Some('t' | 'T' | 'p' | 'P') => number > 0,
        _ => false,
    }
}
