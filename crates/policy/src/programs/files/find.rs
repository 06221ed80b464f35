//! `find` that deletes, or has it done.

use super::{Judge, LEFTOVERS};
use crate::effective::{Effective, base_name};
use crate::finding::{Category, Finding};
use crate::paths::{self, Place};
use crate::reduce::listing::Search;
use crate::text::Text;

pub(super) fn find(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let places: Vec<&Text> = command
        .args()
        .iter()
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
        let narrowed = Search::of(command.args()).narrow;
        let leftovers = args
            .windows(2)
            .any(|pair| matches!(pair[0], "-name" | "-iname" | "-path"))
            && args
                .windows(2)
                .filter(|pair| matches!(pair[0], "-name" | "-iname"))
                .all(|pair| LEFTOVERS.contains(&pair[1]))
            || args.contains(&"-empty");
        let here = Text::known(".");
        let places = if places.is_empty() {
            vec![&here]
        } else {
            places
        };
        for place in places {
            let found = paths::place(&place.s, &judge.cwd, judge.context);
            let own = matches!(
                found,
                Place::Workspace
                    | Place::InsideWorkspace
                    | Place::Artefact
                    | Place::InsideTemporary
                    | Place::Temporary
            );
            if leftovers && own || found == Place::Artefact {
                continue;
            }
            let wipes = matches!(found, Place::Root | Place::System | Place::Home);
            findings.push(if wipes && !narrowed {
                Finding::floor(
                    Category::Destruction,
                    format!("deletes everything under {}", place.shown()),
                )
            } else {
                Finding::dangerous(
                    Category::Destruction,
                    format!("deletes what it finds under {}", place.shown()),
                )
            });
        }
    }
    for flag in ["-fprintf", "-fprint", "-fls", "-fprint0"] {
        if let Some(file) = command.value_of(flag) {
            let protected = paths::protected(&file.s, &judge.cwd, judge.context);
            if let Some((category, reason)) = protected {
                findings.push(Finding::dangerous(category, reason));
            }
        }
    }
    findings
}
