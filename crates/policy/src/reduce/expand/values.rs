//! Values, and what an expansion makes of them.

use crate::reduce::environment;
use crate::text::{ExpandedText, TaintSet, TextShape};

/// A variable that the same text does not assign: the environment's, or left by an earlier command.
pub(super) fn unassigned(name: &str) -> ExpandedText {
    let argument =
        matches!(name, "@" | "*") || name.bytes().all(|b| b.is_ascii_digit()) && name != "0";
    if argument {
        return ExpandedText::unknown(TaintSet::ARGUMENT);
    }
    if name == "BASH_SOURCE" {
        return ExpandedText::shaped(&TextShape::Below(String::new()), TaintSet::NONE);
    }
    if environment::is_name(name) {
        return ExpandedText::shaped(&TextShape::Names, TaintSet::NONE);
    }
    let secret = crate::programs::secrets::names_secret(name);
    ExpandedText::unknown(if secret {
        TaintSet::NAMED
    } else {
        TaintSet::NONE
    })
}

pub(super) fn trimmed(
    value: Option<ExpandedText>,
    change: impl FnOnce(&str) -> String,
) -> ExpandedText {
    match value {
        Some(value) if value.is_known() => ExpandedText {
            s: change(&value.s),
            taint: value.taint,
            glob: false,
        },
        // A piece of a name is a name; a piece of a path that stays below does, but for its start.
        Some(value) if !value.is_unbounded() && !value.s.starts_with('/') => ExpandedText {
            s: change(&value.s),
            ..value
        },
        Some(value) => ExpandedText::unknown(value.taint),
        None => ExpandedText::unknown(TaintSet::NONE),
    }
}

pub(super) fn slice(s: &str, from: i64, length: Option<i64>) -> String {
    let chars: Vec<char> = s.chars().collect();
    let total = i64::try_from(chars.len()).unwrap_or(i64::MAX);
    let start = if from < 0 {
        (total + from).max(0)
    } else {
        from.min(total)
    };
    let end = match length {
        None => total,
        Some(n) if n < 0 => (total + n).max(start),
        Some(n) => start.saturating_add(n).min(total),
    };
    let (start, end) = (
        usize::try_from(start).unwrap_or(0),
        usize::try_from(end).unwrap_or(0),
    );
    chars.get(start..end).unwrap_or_default().iter().collect()
}

pub(super) fn change_case(s: &str, upper: bool, all: bool) -> String {
    let change = |c: char| {
        if upper {
            c.to_ascii_uppercase()
        } else {
            c.to_ascii_lowercase()
        }
    };
    s.chars()
        .enumerate()
        .map(|(at, c)| if all || at == 0 { change(c) } else { c })
        .collect()
}

pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
}
