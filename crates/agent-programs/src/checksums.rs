//! The checksum of every file that was installed, in the form that `sha256sum -c` reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Checksums by path, relative to the tree.
pub(crate) type TreeChecksums = BTreeMap<String, String>;

/// How a tree differs from what was installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeDifference {
    pub changed: Vec<String>,
    pub missing: Vec<String>,
    pub added: Vec<String>,
}

/// The reason why a tree cannot be summed up.
#[derive(Debug, Error)]
pub enum ChecksumError {
    #[error("cannot read {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is neither a file nor a folder", path.display())]
    NotPlain { path: PathBuf },
    #[error("{} has a name that cannot be written down", path.display())]
    Name { path: PathBuf },
    #[error("there are more than {MOST_FILES} files, or folders deeper than {DEEPEST}")]
    TooMany,
    #[error("the list of checksums is damaged")]
    List,
}

/// Ten times what the largest agent has.
const MOST_FILES: usize = 100_000;
/// Folders in folders, far beyond what npm and pip make.
const DEEPEST: usize = 64;
const PIECE: usize = 256 << 10;

/// Sums up every file below `tree`. Links and devices are refused: nothing in a package of npm is one.
pub(crate) fn sum_up(tree: &Path) -> Result<TreeChecksums, ChecksumError> {
    let mut sums = TreeChecksums::new();
    let mut folders = vec![(tree.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in entries(&folder)? {
            let path = entry.path();
            let kind = entry
                .file_type()
                .map_err(|error| unreadable(&path, error))?;
            if kind.is_dir() {
                folders.push((path, depth + 1));
            } else if kind.is_file() {
                sums.insert(name_in(tree, &path)?, sum_of(&path)?);
            } else {
                return Err(ChecksumError::NotPlain { path });
            }
            // Folders are counted too: there may be as many, with no file in any of them.
            if sums.len() > MOST_FILES || folders.len() > MOST_FILES || depth > DEEPEST {
                return Err(ChecksumError::TooMany);
            }
        }
    }
    Ok(sums)
}

/// Takes away the links that npm makes for programs, and gives every file the mode it needs and no other.
pub(crate) fn make_plain(tree: &Path) -> Result<(), ChecksumError> {
    let mut folders = vec![(tree.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if depth > DEEPEST {
            return Err(ChecksumError::TooMany);
        }
        set_mode(&folder, 0o755)?;
        for entry in entries(&folder)? {
            let path = entry.path();
            let failed = |error| unreadable(&path, error);
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() && entry.file_name() == ".bin" {
                fs::remove_dir_all(&path).map_err(failed)?;
            } else if kind.is_dir() {
                folders.push((path, depth + 1));
            } else if kind.is_file() {
                let mode = entry.metadata().map_err(failed)?.permissions().mode();
                set_mode(&path, if mode & 0o111 == 0 { 0o644 } else { 0o755 })?;
            } else {
                return Err(ChecksumError::NotPlain { path });
            }
        }
    }
    Ok(())
}

pub(crate) fn compare(installed: &TreeChecksums, found: &TreeChecksums) -> TreeDifference {
    let mut difference = TreeDifference::default();
    for (path, sum) in installed {
        match found.get(path) {
            None => difference.missing.push(path.clone()),
            Some(other) if other != sum => difference.changed.push(path.clone()),
            Some(_) => {}
        }
    }
    let added = found.keys().filter(|path| !installed.contains_key(*path));
    difference.added = added.cloned().collect();
    difference
}

pub(crate) fn write_list(sums: &TreeChecksums) -> String {
    let mut text = String::new();
    for (path, sum) in sums {
        let _ = writeln!(text, "{sum}  {path}");
    }
    text
}

pub(crate) fn read_list(text: &str) -> Result<TreeChecksums, ChecksumError> {
    let line = |line: &str| {
        let (sum, path) = line.split_once("  ")?;
        let is_sum = sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_sum.then(|| (path.to_owned(), sum.to_owned()))
    };
    let lines = text.lines().map(line);
    lines.collect::<Option<_>>().ok_or(ChecksumError::List)
}

/// The checksum of a text, as it stands in the record of what was installed.
pub(crate) fn sum_of_text(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

impl TreeDifference {
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.missing.is_empty() && self.added.is_empty()
    }

    /// The difference in one line, with the first few names.
    pub fn summary(&self) -> String {
        const SHOWN: usize = 3;
        let part = |verb: &str, paths: &[String]| {
            let shown: Vec<_> = paths.iter().take(SHOWN).map(String::as_str).collect();
            let more = match paths.len() > SHOWN {
                true => ", …",
                false => "",
            };
            (!paths.is_empty())
                .then(|| format!("{} {verb} ({}{more})", paths.len(), shown.join(", ")))
        };
        let parts = [
            part("changed", &self.changed),
            part("missing", &self.missing),
            part("added", &self.added),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, ChecksumError> {
    let failed = |error| unreadable(folder, error);
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.collect::<Result<_, _>>().map_err(failed)
}

/// Relative, and on one line.
fn name_in(tree: &Path, path: &Path) -> Result<String, ChecksumError> {
    let name = path.strip_prefix(tree).ok().and_then(Path::to_str);
    // `sha256sum` writes such names in another way, and would read others back.
    let name = name.filter(|name| !name.contains(['\n', '\r', '\\']));
    name.map(str::to_owned).ok_or_else(|| ChecksumError::Name {
        path: path.to_owned(),
    })
}

fn sum_of(path: &Path) -> Result<String, ChecksumError> {
    let failed = |error| unreadable(path, error);
    let mut file = File::open(path).map_err(failed)?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        let read = file.read(&mut piece).map_err(failed)?;
        if read == 0 {
            return Ok(hex(&digest.finalize()));
        }
        digest.update(&piece[..read]);
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn set_mode(path: &Path, mode: u32) -> Result<(), ChecksumError> {
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, source: io::Error) -> ChecksumError {
    ChecksumError::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/.bin")).unwrap();
        fs::write(folder.path().join("a/one"), "1").unwrap();
        fs::write(folder.path().join("two"), "2").unwrap();
        folder
    }

    #[test]
    fn what_was_changed_added_or_taken_is_named() {
        let folder = tree();
        let sums = sum_up(folder.path()).unwrap();
        assert_eq!(sums, read_list(&write_list(&sums)).unwrap());
        fs::write(folder.path().join("a/one"), "x").unwrap();
        fs::remove_file(folder.path().join("two")).unwrap();
        fs::write(folder.path().join("three"), "3").unwrap();
        let difference = compare(&sums, &sum_up(folder.path()).unwrap());
        assert_eq!(
            difference.summary(),
            "1 changed (a/one); 1 missing (two); 1 added (three)"
        );
    }

    #[test]
    fn a_link_is_refused_where_npm_makes_none() {
        let folder = tree();
        symlink("/etc/shadow", folder.path().join("a/.bin/x")).unwrap();
        make_plain(folder.path()).unwrap();
        assert!(!folder.path().join("a/.bin").exists());
        symlink("/etc/shadow", folder.path().join("a/link")).unwrap();
        assert!(matches!(
            make_plain(folder.path()),
            Err(ChecksumError::NotPlain { .. })
        ));
        assert!(sum_up(folder.path()).is_err());
    }

    #[test]
    fn modes_become_plain() {
        let folder = tree();
        let path = folder.path().join("two");
        fs::set_permissions(&path, Permissions::from_mode(0o4775)).unwrap();
        make_plain(folder.path()).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
    }

    #[test]
    fn a_list_that_is_damaged_is_none() {
        for text in ["x", "abc  path\n", &"g".repeat(64)] {
            assert!(read_list(text).is_err(), "{text}");
        }
    }
}
