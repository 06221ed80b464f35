//! The values of a Kubernetes Secret, whatever they are called.

use std::ops::Range;

use crate::window::{NeedMore, TextAhead};

/// No Secret has more entries worth a look.
const MOST_SECRET_ENTRIES: usize = 64;

/// How a certificate begins in base64. It is public, and stands in a Secret beside its key.
const CERTIFICATE: &[u8] = b"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t";

/// `kind: Secret`, with its values below it.
pub(super) fn below_kind(
    behind: &[u8],
    ahead: TextAhead<'_>,
) -> Result<Vec<Range<usize>>, NeedMore> {
    const KIND: &str = "kind: Secret";
    if !starts_line(behind) || !ahead.is(0, KIND)? || !ends_line(ahead, KIND.len())? {
        return Ok(Vec::new());
    }
    let text = document(ahead)?;
    let mut found = Vec::new();
    for title in ["\ndata:", "\nstringData:"] {
        if let Some(at) = position(text, title.as_bytes()) {
            entries(text, at + title.len(), &mut found);
        }
    }
    Ok(found)
}

/// `data:`, with `kind: Secret` below it, as `kubectl` prints it.
pub(super) fn above_kind(
    behind: &[u8],
    ahead: TextAhead<'_>,
) -> Result<Vec<Range<usize>>, NeedMore> {
    const TITLE: &str = "data:";
    if !starts_line(behind) || !ahead.is(0, TITLE)? || !ends_line(ahead, TITLE.len())? {
        return Ok(Vec::new());
    }
    let text = document(ahead)?;
    let mut found = Vec::new();
    if position(text, b"\nkind: Secret").is_some() {
        entries(text, TITLE.len(), &mut found);
    }
    Ok(found)
}

/// The rest of one document of a file.
fn document(ahead: TextAhead<'_>) -> Result<&[u8], NeedMore> {
    let end = match ahead.find(0, "\n---")? {
        Some(end) => end,
        None => ahead.len(),
    };
    Ok(ahead.slice(0..end))
}

/// The values of the indented lines from there on.
fn entries(text: &[u8], from: usize, found: &mut Vec<Range<usize>>) {
    let mut at = from;
    for line in text[from..]
        .split(|byte| *byte == b'\n')
        .take(MOST_SECRET_ENTRIES)
    {
        let start = at;
        at += line.len() + 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        if !line.starts_with(b" ") {
            break;
        }
        let Some(colon) = position(line, b": ") else {
            continue;
        };
        let value = &line[colon + 2..];
        let bare = value
            .trim_ascii()
            .trim_ascii_end()
            .strip_prefix(b"\"")
            .and_then(|value| value.strip_suffix(b"\""))
            .unwrap_or(value.trim_ascii());
        let public = bare.starts_with(CERTIFICATE);
        if bare.len() >= 4 && !public && !b"|>{[&*".contains(&bare[0]) {
            let offset = colon + 2 + position(value, bare).unwrap_or(0);
            found.push(start + offset..start + offset + bare.len());
        }
    }
}

fn starts_line(behind: &[u8]) -> bool {
    matches!(behind, [] | [.., b'\n'])
}

fn ends_line(ahead: TextAhead<'_>, at: usize) -> Result<bool, NeedMore> {
    Ok(matches!(ahead.at(at)?, None | Some(b'\n' | b'\r')))
}

fn position(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}
