//! Hunks into a text.

use thiserror::Error;

use super::nearest::{self, NearestMatch};
use super::v4a::{LineTag, PatchHunk};

/// Which hunk has no place, and why.
#[derive(Debug, Error)]
pub(super) enum NoPlace {
    #[error("change {number}: its lines are not in the file. {nearest}")]
    NotFound {
        number: usize,
        nearest: NearestMatch,
    },
    #[error("change {number}: no line of the file reads {hint:?}, which its @@ names")]
    NoHint { number: usize, hint: String },
    #[error(
        "change {number}: its lines stand at several places (lines {}); give more lines around it or an @@ line above it",
        named(lines)
    )]
    Many { number: usize, lines: Vec<usize> },
}

pub(super) fn apply(text: &str, hunks: &[PatchHunk]) -> Result<String, NoPlace> {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let mut cursor = 0;
    for (number, hunk) in (1..).zip(hunks) {
        let (at, before, after) = place(&lines, hunk, cursor, number)?;
        // Lines that stay are left as the file has them, not as the hunk does.
        let mut new = Vec::with_capacity(after);
        let mut old = lines[at..at + before].iter();
        for (tag, line) in &hunk.lines {
            match tag {
                LineTag::Keep => new.extend(old.next().cloned()),
                LineTag::Remove => drop(old.next()),
                LineTag::Add => new.push(line.clone()),
            }
        }
        cursor = at + new.len();
        lines.splice(at..at + before, new);
    }
    Ok(lines.join("\n"))
}

/// Where the hunk begins, how many lines it takes there and how many it leaves.
fn place(
    lines: &[String],
    hunk: &PatchHunk,
    cursor: usize,
    number: usize,
) -> Result<(usize, usize, usize), NoPlace> {
    let count = |unwanted: LineTag| {
        let lines = hunk.lines.iter();
        lines.filter(|(tag, _)| *tag != unwanted).count()
    };
    let (before, after) = (count(LineTag::Add), count(LineTag::Remove));
    let start = match &hunk.hint {
        Some(hint) => hinted(lines, hint, cursor).ok_or_else(|| NoPlace::NoHint {
            number,
            hint: hint.clone(),
        })?,
        None => cursor,
    };
    if before == 0 {
        // Only additions: after the hint, or at the end, before the empty text that follows the last
        // line end.
        let end = lines.len() - usize::from(lines.last().is_some_and(String::is_empty));
        let at = if hunk.hint.is_some() { start } else { end };
        return Ok((at, 0, after));
    }
    let wanted = hunk.lines.iter().filter(|(tag, _)| *tag != LineTag::Add);
    let wanted: Vec<&str> = wanted.map(|(_, line)| line.as_str()).collect();
    // A hint may itself be the first of the lines.
    let from = start.saturating_sub(usize::from(hunk.hint.is_some()));
    // A change of more lines than there are fits nowhere.
    let places = match lines.len().checked_sub(wanted.len()) {
        Some(last) => from..last + 1,
        None => 0..0,
    };
    for alike in LEVELS {
        let fits = |at: &usize| {
            let mut pairs = lines[*at..at + wanted.len()].iter().zip(&wanted);
            pairs.all(|(there, wanted)| alike(there, wanted))
        };
        let found: Vec<usize> = places.clone().filter(fits).collect();
        match (&found[..], hunk.hint.is_some() || hunk.at_end) {
            ([], _) => {}
            ([only], _) => return Ok((*only, before, after)),
            ([.., last], true) if hunk.at_end => return Ok((*last, before, after)),
            ([first, ..], true) => return Ok((*first, before, after)),
            (many, false) => {
                return Err(NoPlace::Many {
                    number,
                    lines: many.iter().take(10).map(|at| at + 1).collect(),
                });
            }
        }
    }
    Err(NoPlace::NotFound {
        number,
        nearest: nearest::to(&wanted.join("\n"), &lines.join("\n")),
    })
}

/// From exact to all but white space at both ends; the first level that fits counts.
const LEVELS: [fn(&str, &str) -> bool; 3] = [
    |there, wanted| there == wanted,
    |there, wanted| there.trim_end() == wanted.trim_end(),
    |there, wanted| there.trim() == wanted.trim(),
];

/// The line after the one that the hint names.
fn hinted(lines: &[String], hint: &str, cursor: usize) -> Option<usize> {
    let search = |from: usize, fits: &dyn Fn(&str) -> bool| {
        let found = lines
            .iter()
            .enumerate()
            .skip(from)
            .find(|(_, line)| fits(line));
        found.map(|(at, _)| at + 1)
    };
    search(cursor, &|line| line.trim() == hint)
        .or_else(|| search(cursor, &|line| line.contains(hint)))
        .or_else(|| search(0, &|line| line.trim() == hint))
}

fn named(lines: &[usize]) -> String {
    lines
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::patch::v4a::{PatchStep, parse};

    fn patched(text: &str, hunks: &str) -> Result<String, NoPlace> {
        let mut steps = parse(&format!("*** Update File: f\n{hunks}")).unwrap();
        let Some(PatchStep::Update { hunks, .. }) = steps.pop() else {
            panic!("an update");
        };
        apply(text, &hunks)
    }

    const TEXT: &str = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n";

    #[test]
    fn lines_are_changed_where_they_stand() {
        assert_eq!(patched("a\nb\nc\n", " a\n-b\n+B\n c").unwrap(), "a\nB\nc\n");
        assert_eq!(patched("a\nb\n", "-a\n-b").unwrap(), "");
        assert_eq!(patched("a", "-a\n+b\n+c").unwrap(), "b\nc");
        assert_eq!(patched("", "+first").unwrap(), "first\n");
        assert_eq!(patched("a\n", "+last").unwrap(), "a\nlast\n");
    }

    #[test]
    fn a_hint_tells_two_places_apart() {
        let hunk = "     def f(self):\n-        return 1\n+        return 2";
        let error = patched(TEXT, hunk).unwrap_err().to_string();
        assert!(error.contains("lines 2, 6"), "{error}");
        let new = patched(TEXT, &format!("@@ class B:\n{hunk}")).unwrap();
        assert_eq!(new.matches("return 2").count(), 1);
        assert!(new.ends_with("return 2\n"), "{new}");
        let error = patched(TEXT, &format!("@@ class C:\n{hunk}")).unwrap_err();
        assert!(matches!(error, NoPlace::NoHint { number: 1, .. }));
    }

    #[test]
    fn several_hunks_go_down_the_file() {
        let new = patched("a\nb\nc\nd\ne\n", " a\n-b\n+B\n@@\n d\n-e\n+E\n+F").unwrap();
        assert_eq!(new, "a\nB\nc\nd\nE\nF\n");
    }

    #[test]
    fn kept_lines_stay_as_the_file_has_them() {
        assert_eq!(patched("  a \nb\n", " a\n-b\n+c").unwrap(), "  a \nc\n");
    }

    #[test]
    fn a_change_of_more_lines_than_the_file_has_is_not_found() {
        for (text, hunk) in [
            ("a", " a\n-b"),
            ("", " a\n-b\n c"),
            ("a\nb", "@@ b\n b\n c\n d\n e"),
            ("a", " a\n-b\n*** End of File"),
        ] {
            let error = patched(text, hunk).unwrap_err();
            assert!(
                matches!(error, NoPlace::NotFound { number: 1, .. }),
                "{text:?}"
            );
        }
        // What an earlier change took away is not there for a later one.
        let error = patched("a\nb\nc", "-a\n-b\n@@\n c\n-d").unwrap_err();
        assert!(matches!(error, NoPlace::NotFound { number: 2, .. }));
    }

    #[test]
    fn what_is_not_there_is_shown_with_what_is() {
        let error = patched(TEXT, " class A:\n-    def g(self):")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("change 1") && error.contains("2|    def f(self):"),
            "{error}"
        );
    }
}
