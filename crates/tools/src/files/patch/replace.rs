//! mode=replace: one text for another, exactly.

use thiserror::Error;

use super::nearest::{self, NearestMatch};

/// Why nothing was replaced.
#[derive(Debug, Error)]
pub(super) enum NotReplaced {
    #[error("old_string is empty; to create or replace a whole file use write_file")]
    Empty,
    #[error("old_string and new_string are the same; there is nothing to change")]
    Same,
    #[error("Could not find old_string in the file. {0}")]
    NotFound(NearestMatch),
    #[error(
        "old_string occurs {count} times (lines {}); add lines around it until it occurs once, or set replace_all",
        listed(lines)
    )]
    Many { count: usize, lines: Vec<usize> },
}

/// Line numbers that are named when there are more.
const NAMED: usize = 10;

pub(super) fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<String, NotReplaced> {
    // A file with CR LF is seen with LF, whatever the model copied.
    let (old, new) = match (text.contains('\r'), old.contains('\r')) {
        (false, true) => (old.replace("\r\n", "\n"), new.replace("\r\n", "\n")),
        _ => (old.to_owned(), new.to_owned()),
    };
    if old.is_empty() {
        return Err(NotReplaced::Empty);
    }
    if old == new {
        return Err(NotReplaced::Same);
    }
    let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
    match places.len() {
        0 => match but_for_line_ends(text, &old) {
            Some(range) => Ok(format!(
                "{}{new}{}",
                &text[..range.start],
                &text[range.end..]
            )),
            None => Err(NotReplaced::NotFound(nearest::to(&old, text))),
        },
        1 => Ok(text.replacen(&old, &new, 1)),
        _ if all => Ok(text.replace(&old, &new)),
        count => Err(NotReplaced::Many {
            count,
            lines: places
                .iter()
                .take(NAMED)
                .map(|at| line_of(text, *at))
                .collect(),
        }),
    }
}

/// The only place where `old` stands if spaces at the ends of lines are left out of account: they
/// cannot be seen, so a model cannot be asked to get them right.
fn but_for_line_ends(text: &str, old: &str) -> Option<std::ops::Range<usize>> {
    let wanted: Vec<&str> = old
        .strip_suffix('\n')
        .unwrap_or(old)
        .split('\n')
        .map(str::trim_end)
        .collect();
    if wanted.iter().all(|line| line.is_empty()) {
        return None;
    }
    let mut starts = vec![0];
    starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    let lines: Vec<&str> = text.split('\n').collect();
    let mut found = lines
        .windows(wanted.len())
        .enumerate()
        .filter(|(_, lines)| {
            lines
                .iter()
                .map(|line| line.trim_end())
                .eq(wanted.iter().copied())
        })
        .map(|(at, _)| at);
    let (first, None) = (found.next()?, found.next()) else {
        return None;
    };
    let last = first + wanted.len() - 1;
    let mut end = starts[last] + lines[last].len();
    if old.ends_with('\n') && end < text.len() {
        end += 1;
    }
    Some(starts[first]..end)
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn listed(lines: &[usize]) -> String {
    let mut text = lines
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if lines.len() == NAMED {
        text.push_str(", …");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn one() {\n    call();\n}\n\nfn two() {\n    call();\n}\n";

    #[test]
    fn the_only_occurrence_is_replaced() {
        let new = replace(
            TEXT,
            "fn two() {\n    call();",
            "fn two() {\n    other();",
            false,
        )
        .unwrap();
        assert_eq!(new, TEXT.replace("two() {\n    call", "two() {\n    other"));
        assert_eq!(replace("aaa", "a", "b", true).unwrap(), "bbb");
        assert_eq!(replace("a\nb\n", "a\n", "", false).unwrap(), "b\n");
    }

    #[test]
    fn several_are_counted_and_named() {
        let error = replace(TEXT, "    call();", "x", false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("2 times (lines 2, 6)"), "{error}");
    }

    #[test]
    fn spaces_at_line_ends_do_not_matter() {
        let text = "a  \nb\t\nc\n";
        assert_eq!(replace(text, "a\nb\n", "x\n", false).unwrap(), "x\nc\n");
        assert_eq!(replace(text, "b", "y", false).unwrap(), "a  \ny\t\nc\n");
        // Twice is once too often for a guess.
        assert!(replace("a \na \n", "a\na", "x", false).is_ok());
        assert!(replace("a \nb\na \nb\n", "a\nb\n", "x", false).is_err());
    }

    #[test]
    fn what_is_different_is_said() {
        let error = replace(TEXT, "fn two() {\n\tcall();\n}", "x", false)
            .unwrap_err()
            .to_string();
        assert!(error.contains("5|fn two() {"), "{error}");
        assert!(
            error.contains("line 6") && error.contains("indentation"),
            "{error}"
        );
    }

    #[test]
    fn nothing_to_do_is_an_error() {
        assert!(matches!(
            replace("a", "", "b", false),
            Err(NotReplaced::Empty)
        ));
        assert!(matches!(
            replace("a", "a", "a", false),
            Err(NotReplaced::Same)
        ));
    }
}
