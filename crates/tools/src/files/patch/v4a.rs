//! The V4A patch form, read leniently where the meaning is clear and refused where it is not.

use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatchStep {
    Add {
        path: String,
        text: String,
    },
    Delete {
        path: String,
    },
    Move {
        from: String,
        to: String,
    },
    Update {
        path: String,
        /// The file gets another name as well.
        to: Option<String>,
        hunks: Vec<PatchHunk>,
    },
}

/// One change: lines that are there, and what becomes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PatchHunk {
    /// A line above the change.
    pub(super) hint: Option<String>,
    pub(super) lines: Vec<(LineTag, String)>,
    /// The change is at the end of the file.
    pub(super) at_end: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineTag {
    Keep,
    Remove,
    Add,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum BadPatch {
    #[error(
        "the patch holds no `*** Update File:`, `*** Add File:`, `*** Delete File:` or `*** Move File:`"
    )]
    Empty,
    #[error("line {line} of the patch stands outside of any file: {text:?}")]
    Outside { line: usize, text: String },
    #[error("line {line} of the patch is no marker that is known: {text:?}")]
    Marker { line: usize, text: String },
    #[error("line {line} of the patch names no file")]
    NoPath { line: usize },
    #[error(
        "`{0}` leads upwards; in a patch write paths from the working folder, or absolute ones"
    )]
    Upwards(String),
    #[error("the patch says to update {0} and gives no change for it")]
    NoHunks(String),
    #[error("line {line} of the patch adds a file, so it must begin with `+`: {text:?}")]
    NotAdded { line: usize, text: String },
}

pub(super) fn parse(patch: &str) -> Result<Vec<PatchStep>, BadPatch> {
    let mut steps: Vec<PatchStep> = Vec::new();
    for (line, text) in (1..).zip(patch.split('\n')) {
        let text = text.strip_suffix('\r').unwrap_or(text);
        match marker(text) {
            Some(("begin patch", _)) => {}
            Some(("end patch", _)) => break,
            Some((word, rest)) => marked(&mut steps, word, rest, line, text)?,
            None => unmarked(&mut steps, line, text)?,
        }
    }
    if steps.is_empty() {
        return Err(BadPatch::Empty);
    }
    for step in &mut steps {
        if let PatchStep::Update { path, to, hunks } = step {
            hunks.retain(|hunk| !hunk.lines.is_empty());
            if hunks.is_empty() && to.is_none() {
                return Err(BadPatch::NoHunks(path.clone()));
            }
        }
    }
    Ok(steps)
}

/// `*** Word Word: rest`, the words in lower case.
fn marker(text: &str) -> Option<(&'static str, &str)> {
    const MARKERS: [&str; 8] = [
        "begin patch",
        "end patch",
        "update file:",
        "add file:",
        "delete file:",
        "move file:",
        "move to:",
        "end of file",
    ];
    let rest = text.strip_prefix("***")?.trim_start();
    for word in MARKERS {
        if rest
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
        {
            return Some((word, rest[word.len()..].trim()));
        }
    }
    Some(("", rest))
}

fn marked(
    steps: &mut Vec<PatchStep>,
    word: &str,
    rest: &str,
    line: usize,
    text: &str,
) -> Result<(), BadPatch> {
    let path = || path(rest, line);
    match (word, steps.last_mut()) {
        ("update file:", _) => steps.push(PatchStep::Update {
            path: path()?,
            to: None,
            hunks: Vec::new(),
        }),
        ("add file:", _) => steps.push(PatchStep::Add {
            path: path()?,
            text: String::new(),
        }),
        ("delete file:", _) => steps.push(PatchStep::Delete { path: path()? }),
        ("move file:", _) => {
            let (from, to) = rest.split_once("->").ok_or(BadPatch::NoPath { line })?;
            steps.push(PatchStep::Move {
                from: self::path(from.trim(), line)?,
                to: self::path(to.trim(), line)?,
            });
        }
        ("move to:", Some(PatchStep::Update { to, .. })) => *to = Some(path()?),
        ("end of file", Some(PatchStep::Update { hunks, .. })) => {
            if let Some(hunk) = hunks.last_mut() {
                hunk.at_end = true;
            }
        }
        _ => {
            return Err(BadPatch::Marker {
                line,
                text: text.to_owned(),
            });
        }
    }
    Ok(())
}

fn unmarked(steps: &mut [PatchStep], line: usize, text: &str) -> Result<(), BadPatch> {
    match steps.last_mut() {
        Some(PatchStep::Update { hunks, .. }) => {
            add_to_hunk(hunks, text);
            Ok(())
        }
        Some(PatchStep::Add { text: whole, .. }) => match text.strip_prefix('+') {
            Some(added) => {
                whole.push_str(added);
                whole.push('\n');
                Ok(())
            }
            None if text.is_empty() => Ok(()),
            None => Err(BadPatch::NotAdded {
                line,
                text: text.to_owned(),
            }),
        },
        _ if text.trim().is_empty() => Ok(()),
        _ => Err(BadPatch::Outside {
            line,
            text: text.to_owned(),
        }),
    }
}

fn add_to_hunk(hunks: &mut Vec<PatchHunk>, text: &str) {
    if let Some(hint) = text.strip_prefix("@@") {
        let hint = hint.trim();
        let hint = hint.strip_suffix("@@").unwrap_or(hint).trim();
        // A line range as in a unified diff says nothing that the lines do not.
        let is_range = hint.starts_with('-') && hint.contains('+');
        hunks.push(PatchHunk {
            hint: (!hint.is_empty() && !is_range).then(|| hint.to_owned()),
            ..PatchHunk::default()
        });
        return;
    }
    if hunks.is_empty() {
        hunks.push(PatchHunk::default());
    }
    let Some(hunk) = hunks.last_mut() else { return };
    let mut chars = text.chars();
    match chars.next() {
        Some('+') => hunk.lines.push((LineTag::Add, chars.as_str().to_owned())),
        Some('-') => hunk
            .lines
            .push((LineTag::Remove, chars.as_str().to_owned())),
        Some(' ') => hunk.lines.push((LineTag::Keep, chars.as_str().to_owned())),
        // "\ No newline at end of file".
        Some('\\') => {}
        // An empty line is context whose space got lost, unless nothing follows.
        None if hunk.lines.is_empty() => {}
        _ => hunk.lines.push((LineTag::Keep, text.to_owned())),
    }
}

fn path(text: &str, line: usize) -> Result<String, BadPatch> {
    if text.is_empty() || text.contains('\0') {
        return Err(BadPatch::NoPath { line });
    }
    if text.split('/').any(|name| name == "..") {
        return Err(BadPatch::Upwards(text.to_owned()));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_step_is_read() {
        let patch = "*** Begin Patch\n*** Update File: a.py\n@@ def f():\n x\n-y\n+z\n\
                     *** Add File: b/c.txt\n+one\n+\n+two\n***Delete File: d\n\
                     *** Move File: e -> f g\n*** End Patch\nrubbish";
        let steps = parse(patch).unwrap();
        assert_eq!(steps.len(), 4);
        let PatchStep::Update {
            path,
            hunks,
            to: None,
        } = &steps[0]
        else {
            panic!("{steps:?}");
        };
        assert_eq!((path.as_str(), hunks.len()), ("a.py", 1));
        assert_eq!(hunks[0].hint.as_deref(), Some("def f():"));
        assert_eq!(hunks[0].lines.len(), 3);
        assert_eq!(
            steps[1],
            PatchStep::Add {
                path: "b/c.txt".to_owned(),
                text: "one\n\ntwo\n".to_owned()
            }
        );
        assert_eq!(
            steps[3],
            PatchStep::Move {
                from: "e".to_owned(),
                to: "f g".to_owned()
            }
        );
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_line() {
        for (patch, expected) in [
            ("", BadPatch::Empty),
            ("*** Begin Patch\n*** End Patch", BadPatch::Empty),
            ("*** Update File: a", BadPatch::NoHunks("a".to_owned())),
            ("*** Update File:", BadPatch::NoPath { line: 1 }),
            (
                "*** Add File: ../x\n+a",
                BadPatch::Upwards("../x".to_owned()),
            ),
            (
                "\n*** Sing: a",
                BadPatch::Marker {
                    line: 2,
                    text: "*** Sing: a".to_owned(),
                },
            ),
            (
                "x",
                BadPatch::Outside {
                    line: 1,
                    text: "x".to_owned(),
                },
            ),
            (
                "*** Add File: a\nx",
                BadPatch::NotAdded {
                    line: 2,
                    text: "x".to_owned(),
                },
            ),
        ] {
            assert_eq!(parse(patch), Err(expected), "{patch:?}");
        }
    }
}
