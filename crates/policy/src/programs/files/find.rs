//! `find` that deletes, or has it done.

use super::{LEFTOVERS, ProgramJudge};
use crate::effective::{ReducedCommand, base_name};
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths::{self, PathLoss};
use crate::reduce::listing::FileSearch;
use crate::text::ExpandedText;

pub(super) fn find(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = Vec::new();
    let follows = |arg: &&ExpandedText| matches!(arg.s.as_str(), "-H" | "-L" | "-P");
    let places: Vec<&ExpandedText> = command
        .args()
        .iter()
        .skip_while(follows)
        .take_while(|arg| !arg.s.starts_with(['-', '(', '!']))
        .collect();
    let args: Vec<&str> = command.args().iter().map(|arg| arg.s.as_str()).collect();
    let removes = args.contains(&"-delete")
        || args.windows(2).any(|pair| {
            let starts = matches!(pair[0], "-exec" | "-execdir");
            starts
                && matches!(
                    base_name(pair[1]),
                    "rm" | "unlink" | "shred" | "rmdir" | "srm"
                )
        });
    if removes {
        let search = FileSearch::of(command.args());
        let (narrowed, by_age) = (search.narrow, search.by_age);
        // By a name that says something it is as narrow as `rm *.txt`, and `-empty` loses nothing.
        let named: Vec<&str> = args
            .windows(2)
            .filter(|pair| matches!(pair[0], "-name" | "-iname"))
            .map(|pair| pair[1])
            .collect();
        let either = args.iter().any(|arg| matches!(*arg, "!" | "-not"));
        let leftovers =
            !named.is_empty() && !either && named.iter().all(|name| says_something(name))
                || args.contains(&"-empty");
        let here = ExpandedText::known(".");
        let looked = if places.is_empty() {
            vec![&here]
        } else {
            places.clone()
        };
        for place in &looked {
            let found = paths::place(&place.s, &judge.cwd, judge.context);
            let own = matches!(
                found,
                PathLoss::Workspace
                    | PathLoss::InsideWorkspace
                    | PathLoss::Artefact
                    | PathLoss::InsideTemporary
                    | PathLoss::Temporary
            );
            let temporary = narrowed
                && !by_age
                && matches!(found, PathLoss::Temporary | PathLoss::InsideTemporary);
            if temporary || leftovers && own || found == PathLoss::Artefact {
                continue;
            }
            let wipes = matches!(found, PathLoss::Root | PathLoss::System | PathLoss::Home);
            let narrowed = narrowed && !(by_age && found == PathLoss::Root);
            findings.push(if wipes && !narrowed {
                HarmFinding::floor(
                    HarmCategory::Destruction,
                    format!("deletes everything under {}", place.shown()),
                )
            } else {
                HarmFinding::dangerous(
                    HarmCategory::Destruction,
                    format!("deletes what it finds under {}", place.shown()),
                )
            });
        }
    }
    // Whoever encrypts what others keep wants something for the key.
    let encrypts = args.windows(3).any(|words| {
        matches!(words[0], "-exec" | "-execdir")
            && match base_name(words[1]) {
                "gpg" | "gpg2" => matches!(
                    words[2],
                    "-c" | "--symmetric" | "-e" | "--encrypt" | "--batch" | "--yes" | "-r"
                ),
                "openssl" => words[2] == "enc",
                "age" | "ccrypt" | "ccencrypt" | "mcrypt" | "aescrypt" => true,
                "7z" | "7za" | "zip" => {
                    args.iter().any(|arg| arg.starts_with("-p") || *arg == "-P")
                }
                _ => false,
            }
    });
    let others = places.iter().any(|place| {
        !matches!(
            paths::place(&place.s, &judge.cwd, judge.context),
            PathLoss::Workspace
                | PathLoss::InsideWorkspace
                | PathLoss::Artefact
                | PathLoss::Temporary
                | PathLoss::InsideTemporary
        )
    });
    if encrypts && others {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Destruction,
            "encrypts every file that it finds",
        ));
    }
    for flag in ["-fprintf", "-fprint", "-fls", "-fprint0"] {
        if let Some(file) = command.value_of(flag) {
            let protected = paths::protected(&file.s, &judge.cwd, judge.context);
            if let Some((category, reason)) = protected {
                findings.push(HarmFinding::dangerous(category, reason));
            }
        }
    }
    findings
}

/// Whether a pattern names a kind of file rather than any.
fn says_something(pattern: &str) -> bool {
    const LITERAL: usize = 3;
    let literal = pattern
        .bytes()
        .filter(|b| b.is_ascii_alphanumeric() || b"._-~".contains(b))
        .count();
    let open = pattern.contains(crate::text::is_hole) || pattern.contains('[');
    LEFTOVERS.contains(&pattern) || literal >= LITERAL && !open
}
