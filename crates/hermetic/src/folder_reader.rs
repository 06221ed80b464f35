//! Whole folders of somebody else's, read with a bound on everything.
//!
//! Their names are somebody's, and so are their contents: no link is followed, nothing is waited for, and what is
//! left out is named.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Skills are some files each; somebody who cloned a whole project into one hears that it is too much.
pub(crate) const MOST_FILES: usize = 20_000;
pub(crate) const MOST_BYTES: u64 = 256 << 20;
/// Held in memory while it is handed over, so that one that changes meanwhile is what was read.
const LARGEST_FILE: u64 = 16 << 20;
/// Parts of a name below the folder.
pub(crate) const DEEPEST: usize = 12;
/// What is named of that which was left out; the rest is counted.
const MOST_NAMED: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftOutFile {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

/// A file of such a folder.
#[derive(Debug)]
pub(crate) struct FolderFile<'a> {
    /// Its name below the folder, each part of which is a plain one.
    pub(crate) below: &'a str,
    pub(crate) mode: u32,
    pub(crate) bytes: &'a [u8],
}

/// Reads one folder after the other; the bounds hold for all of them together.
#[derive(Debug, Default)]
pub(crate) struct FolderReader {
    only_of: Option<u32>,
    files: usize,
    bytes: u64,
    left_out: Vec<LeftOutFile>,
    unnamed: usize,
}

type TakeFile<'a> = dyn FnMut(&FolderFile<'_>) -> io::Result<()> + 'a;

impl FolderReader {
    /// Leaves out what belongs to anybody but this user: root reads for somebody, and no more than he could.
    pub(crate) fn only_of(user: u32) -> Self {
        Self {
            only_of: Some(user),
            ..Self::default()
        }
    }

    pub(crate) fn files(&self) -> usize {
        self.files
    }

    /// Hands every file over, in the order of their names. A folder that is not there has none.
    pub(crate) fn read_folder(&mut self, path: &Path, take: &mut TakeFile<'_>) -> io::Result<()> {
        match self.open(CWD, path.as_os_str()) {
            Ok((FileType::Directory, folder)) => self.descend(&folder, ("", path), 1, take),
            Ok(_) => {
                self.leave_out(path.to_owned(), "it is no folder");
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => {
                self.leave_out(path.to_owned(), why(errno));
                Ok(())
            }
        }
    }

    /// Hands one file over, by the same rules.
    pub(crate) fn read_file(
        &mut self,
        path: &Path,
        below: &str,
        take: &mut TakeFile<'_>,
    ) -> io::Result<()> {
        match self.open(CWD, path.as_os_str()) {
            Ok((FileType::RegularFile, file)) => {
                self.hand_over(file, (below, path.to_owned()), take)
            }
            Ok(_) => {
                self.leave_out(path.to_owned(), "it is no file");
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => {
                self.leave_out(path.to_owned(), why(errno));
                Ok(())
            }
        }
    }

    fn descend(
        &mut self,
        folder: &OwnedFd,
        (name, path): (&str, &Path),
        depth: usize,
        take: &mut TakeFile<'_>,
    ) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            if !matches!(bytes, b"." | b"..") {
                names.push(OsStr::from_bytes(bytes).to_owned());
            }
        }
        // The same folder gives the same archive.
        names.sort();
        for part in names {
            let path = path.join(&part);
            let Some(plain) = part.to_str().filter(|name| is_plain(name)) else {
                self.leave_out(path, "its name cannot be written down");
                continue;
            };
            let below = match name {
                "" => plain.to_owned(),
                name => format!("{name}/{plain}"),
            };
            match self.open(folder.as_fd(), &part) {
                Ok((FileType::Directory, _)) if depth >= DEEPEST => {
                    self.leave_out(path, "it lies too deep");
                }
                Ok((FileType::Directory, inner)) => {
                    self.descend(&inner, (&below, &path), depth + 1, take)?;
                }
                Ok((FileType::RegularFile, file)) => self.hand_over(file, (&below, path), take)?,
                Ok(_) => self.leave_out(path, "it is no file"),
                // Gone since it was listed.
                Err(Errno::NOENT) => {}
                Err(errno) => self.leave_out(path, why(errno)),
            }
        }
        Ok(())
    }

    fn hand_over(
        &mut self,
        file: OwnedFd,
        (below, path): (&str, PathBuf),
        take: &mut TakeFile<'_>,
    ) -> io::Result<()> {
        let mode = rustix::fs::fstat(&file)?.st_mode & 0o7777;
        let mut bytes = Vec::new();
        let read = File::from(file)
            .take(LARGEST_FILE + 1)
            .read_to_end(&mut bytes);
        let length = bytes.len() as u64;
        if read.is_err() {
            self.leave_out(path, "it cannot be read");
        } else if length > LARGEST_FILE {
            self.leave_out(path, "it is too large");
        } else if self.files >= MOST_FILES || self.bytes + length > MOST_BYTES {
            self.leave_out(path, "there is too much in these folders");
        } else {
            self.files += 1;
            self.bytes += length;
            let bytes = &bytes[..];
            take(&FolderFile { below, mode, bytes })?;
        }
        Ok(())
    }

    /// What is there under a name, if it is no link and belongs to whom it has to.
    fn open(&self, folder: impl AsFd, name: &OsStr) -> Result<(FileType, OwnedFd), Errno> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(folder, name, flags, Mode::empty())?;
        let about = rustix::fs::fstat(&file)?;
        if self.only_of.is_some_and(|user| user != about.st_uid) {
            return Err(Errno::PERM);
        }
        Ok((FileType::from_raw_mode(about.st_mode), file))
    }

    fn leave_out(&mut self, path: PathBuf, why: &str) {
        if self.left_out.len() >= MOST_NAMED {
            self.unnamed += 1;
            return;
        }
        let why = why.to_owned();
        self.left_out.push(LeftOutFile { path, why });
    }

    pub(crate) fn left_out(self) -> Vec<LeftOutFile> {
        let mut left_out = self.left_out;
        if self.unnamed > 0 {
            left_out.push(LeftOutFile {
                path: PathBuf::from("…"),
                why: format!("{} more", self.unnamed),
            });
        }
        left_out
    }
}

/// Whether one part of a name leads nowhere else and can be written down.
pub(crate) fn is_plain(part: &str) -> bool {
    let is_plain = |character: char| !character.is_control() && !matches!(character, '/' | '\\');
    !matches!(part, "" | "." | "..") && part.chars().all(is_plain)
}

fn why(errno: Errno) -> &'static str {
    match errno {
        Errno::LOOP => "it is a link",
        Errno::NXIO => "it is no file",
        Errno::PERM => "it belongs to somebody else",
        _ => "it cannot be read",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn read(reader: &mut FolderReader, folder: &Path) -> Vec<String> {
        let mut read = Vec::new();
        let mut take = |file: &FolderFile<'_>| {
            read.push(file.below.to_owned());
            Ok(())
        };
        reader.read_folder(folder, &mut take).unwrap();
        read
    }

    fn left_out(reader: FolderReader, top: &Path) -> Vec<(String, String)> {
        let left_out = reader.left_out().into_iter().map(|one| {
            let below = one.path.strip_prefix(top).unwrap().to_owned();
            (below.to_string_lossy().into_owned(), one.why)
        });
        left_out.collect()
    }

    fn told(name: &str, why: &str) -> (String, String) {
        (name.to_owned(), why.to_owned())
    }

    #[test]
    fn what_is_no_file_or_too_much_is_named_and_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let skills = folder.path().join("skills");
        let deep = (0..DEEPEST).fold(skills.clone(), |path, number| path.join(number.to_string()));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("lost"), "x").unwrap();
        fs::write(skills.join("1.md"), "kept").unwrap();
        fs::write(folder.path().join("secret"), "outside").unwrap();
        symlink("../secret", skills.join("link")).unwrap();
        symlink("..", skills.join("circle")).unwrap();
        symlink(folder.path(), folder.path().join("memories")).unwrap();
        fs::write(skills.join("bell\u{7}"), "x").unwrap();
        let large = File::create(skills.join("large")).unwrap();
        large.set_len(LARGEST_FILE + 1).unwrap();
        rustix::fs::mkfifoat(CWD, skills.join("pipe"), Mode::from_raw_mode(0o600)).unwrap();

        let mut reader = FolderReader::default();
        assert!(read(&mut reader, &folder.path().join("nowhere")).is_empty());
        assert!(read(&mut reader, &folder.path().join("memories")).is_empty());
        assert_eq!(read(&mut reader, &skills), ["1.md"]);
        assert_eq!(
            left_out(reader, folder.path()),
            [
                told("memories", "it is a link"),
                told("skills/0/1/2/3/4/5/6/7/8/9/10/11", "it lies too deep"),
                told("skills/bell\u{7}", "its name cannot be written down"),
                told("skills/circle", "it is a link"),
                told("skills/large", "it is too large"),
                told("skills/link", "it is a link"),
                told("skills/pipe", "it is no file"),
            ]
        );
    }

    /// A person could put root's own files, by another name, into what root reads for him.
    #[test]
    fn what_belongs_to_somebody_else_is_not_read_for_a_person() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIP: what_belongs_to_somebody_else_is_not_read_for_a_person: needs root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("shadow"), "root's").unwrap();
        fs::write(folder.path().join("theirs"), "theirs").unwrap();
        for theirs in [folder.path().to_owned(), folder.path().join("theirs")] {
            chown(theirs, Some(65534), Some(65534)).unwrap();
        }
        let mut reader = FolderReader::only_of(65534);
        assert_eq!(read(&mut reader, folder.path()), ["theirs"]);
        let mut take = |_: &FolderFile<'_>| panic!("it was read");
        let file = folder.path().join("shadow");
        reader.read_file(&file, "config.yaml", &mut take).unwrap();
        let told = told("shadow", "it belongs to somebody else");
        assert_eq!(left_out(reader, folder.path()), [told.clone(), told]);
    }
}
