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
        let leftovers = args
            .windows(2)
            .any(|pair| matches!(pair[0], "-name" | "-iname" | "-path"))
            && args
                .windows(2)
                .filter(|pair| matches!(pair[0], "-name" | "-iname"))
                .all(|pair| LEFTOVERS.contains(&pair[1]))
            || args.contains(&"-empty");
        let here = ExpandedText::known(".");
        let places = if places.is_empty() {
            vec![&here]
        } else {
            places
        };
        for place in places {
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
