//! A file that has its name when it is whole, and not before.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

/// Readable by its owner only: it holds tokens and keys.
const MODE: u32 = 0o600;
/// Files that killed ones of us may have left, before somebody has to look.
const MOST_LEFT: u32 = 1000;

#[derive(Debug)]
pub(super) struct NewFile {
    file: File,
    path: PathBuf,
    /// The name it goes by meanwhile, on file systems that have no files without one.
    aside: Option<PathBuf>,
}

impl NewFile {
    /// Fails where the name is taken.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let folder = folder_of(path);
        let nameless = rustix::fs::open(
            folder,
            OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
            Mode::from_raw_mode(MODE),
        );
        if let Ok(file) = nameless {
            return Ok(Self {
                file: file.into(),
                path: path.to_owned(),
                aside: None,
            });
        }
        Self::begin_aside(path)
    }

    /// The same where the file system has no files without a name.
    fn begin_aside(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(MODE);
        let mut number = 0;
        loop {
            let aside = path.with_file_name(format!(".{name}.{}-{number}", std::process::id()));
            match options.open(&aside) {
                // In a container our number is the same at each start, so one that was killed here
                // left a file with this name.
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && number < MOST_LEFT =>
                {
                    number += 1;
                }
                Err(error) => return Err(error),
                Ok(file) => {
                    return Ok(Self {
                        file,
                        path: path.to_owned(),
                        aside: Some(aside),
                    });
                }
            }
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives it its name, over nothing that somebody put there meanwhile.
    pub(super) fn keep(self) -> io::Result<u64> {
        // Before it has its name: by its name it is whole, also after a power cut.
        self.file.sync_all()?;
        let bytes = self.file.metadata()?.len();
        match &self.aside {
            Some(aside) => fs::hard_link(aside, &self.path)?,
            None => {
                let open = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                // By its path in /proc: a link from the descriptor alone (AT_EMPTY_PATH) takes a
                // capability.
                rustix::fs::linkat(CWD, open, CWD, &self.path, AtFlags::SYMLINK_FOLLOW)?;
            }
        }
        File::open(folder_of(&self.path))?.sync_all()?;
        Ok(bytes)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            let _ = fs::remove_file(aside);
        }
    }
}

pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_a_killed_one_left_is_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backup");
        let killed = NewFile::begin_aside(&path).unwrap();
        std::mem::forget(killed);
        let new = NewFile::begin_aside(&path).unwrap();
        new.file().write_all(b"whole").unwrap();
        assert_eq!(new.keep().unwrap(), 5);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
