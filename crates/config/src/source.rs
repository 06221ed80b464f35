//! One text that was read, kept so that a problem can show the line it is about.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::problem::ConfigProblem;

/// Far above any file written by hand, far below what would hurt.
const LARGEST: u64 = 4 << 20;

/// A file's name and text. Cheap to clone: every place in it holds one.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile(Arc<SourceText>);

struct SourceText {
    path: PathBuf,
    text: String,
}

impl fmt::Debug for SourceText {
    /// Without the text: a file may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

impl SourceFile {
    pub(crate) fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self(Arc::new(SourceText {
            path: path.into(),
            text: text.into(),
        }))
    }

    /// `None` if there is no such file. Whatever is there and cannot be read is a problem: a
    /// configuration that silently counts as empty would weaken what it says.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, ConfigProblem> {
        match read_bounded(path) {
            Ok(bytes) => decode(path, bytes).map(Some),
            Err(UnreadableFile::Missing) => Ok(None),
            Err(UnreadableFile::Kind(what, help)) => {
                Err(ConfigProblem::error(what).in_file(path).help(help))
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    pub(crate) fn text(&self) -> &str {
        &self.0.text
    }

    /// The line with this number, counted from 1.
    pub(crate) fn line(&self, number: usize) -> &str {
        self.text()
            .lines()
            .nth(number.saturating_sub(1))
            .unwrap_or_default()
    }
}

enum UnreadableFile {
    Missing,
    Kind(String, &'static str),
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, UnreadableFile> {
    let about = fs::metadata(path).map_err(|error| missing(path, &error))?;
    if about.is_dir() {
        return Err(UnreadableFile::Kind(
            "this is a directory, not a file".to_owned(),
            "move it away; `hermetic config init` writes a starter file",
        ));
    }
    // A pipe or a device would make us wait, or never end.
    if !about.is_file() {
        return Err(UnreadableFile::Kind(
            "this is not a regular file".to_owned(),
            "put an ordinary text file there",
        ));
    }
    let mut bytes = Vec::new();
    File::open(path)
        // One more than is taken tells that it is too large.
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(UnreadableFile::Kind(
            format!("the file is larger than {} MiB", LARGEST >> 20),
            "a configuration is a few hundred lines; is this the right file?",
        ));
    }
    Ok(bytes)
}

/// A link that leads nowhere is a file that is not there any more, such as one on a disk that is not
/// mounted, and no home without a configuration.
fn missing(path: &Path, error: &io::Error) -> UnreadableFile {
    let is_link = fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
    if is_link && error.kind() == io::ErrorKind::NotFound {
        return UnreadableFile::Kind(
            "this is a link to a file that is not there".to_owned(),
            "bring back what it points to (is its disk mounted?), or remove the link",
        );
    }
    unreadable(error)
}

fn unreadable(error: &io::Error) -> UnreadableFile {
    match error.kind() {
        io::ErrorKind::NotFound => UnreadableFile::Missing,
        io::ErrorKind::PermissionDenied => UnreadableFile::Kind(
            "the file cannot be read: permission denied".to_owned(),
            "make it readable for the user that runs hermetic (chmod u+r, or chown)",
        ),
        _ => UnreadableFile::Kind(
            format!("the file cannot be read: {error}"),
            "check the path and its permissions",
        ),
    }
}

fn decode(path: &Path, bytes: Vec<u8>) -> Result<SourceFile, ConfigProblem> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..good];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| newline + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        ConfigProblem::error("the file is not UTF-8 text")
            .in_file_at(path, line, column)
            .help("save it as UTF-8, without a byte order of another encoding")
    })?;
    // Some editors put this mark in front; it would be a part of the first name.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(SourceFile::new(path, text))
}
