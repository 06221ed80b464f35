//! How many files a container has made, counted in its layer without following anything it made.
//!
//! The engine counts bytes only, and an empty file has none: they would take the host's last inode.
//! As with nameless files, only root on the engine's own machine can look.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat, statvfs};
use rustix::io::Errno;

/// Deeper than anybody's work, and as many descriptors as we want to spend.
const DEEPEST: usize = 200;

#[derive(Debug)]
pub(crate) struct LayerFiles {
    layer: PathBuf,
    counted: u64,
    /// In use on the whole file system at that count: what grew since is the most that we can have.
    whole: u64,
}

impl LayerFiles {
    pub(crate) fn of(layer: PathBuf) -> Self {
        Self {
            layer,
            counted: 0,
            whole: 0,
        }
    }

    /// How many more it may make. A tree that cannot be counted is over its limit.
    pub(crate) fn room(&mut self, limit: u64) -> u64 {
        let Ok(whole) = in_use(&self.layer) else {
            // It goes with its container.
            return limit;
        };
        let most = self
            .counted
            .saturating_add(whole.saturating_sub(self.whole));
        // Counted only when it could be beyond half: the file system as a whole cannot have grown
        // by more than that since.
        if most <= limit / 2 {
            return limit - most;
        }
        (self.counted, self.whole) = (count(&self.layer, limit).unwrap_or(u64::MAX), whole);
        limit.saturating_sub(self.counted)
    }
}

fn in_use(layer: &Path) -> io::Result<u64> {
    let stat = statvfs(layer)?;
    Ok(stat.f_files.saturating_sub(stat.f_ffree))
}

/// Up to the limit: what is over it is not counted to its end.
fn count(layer: &Path, limit: u64) -> io::Result<u64> {
    let top = openat(CWD, layer, folder_flags(), Mode::empty())?;
    let mut open = vec![Dir::new(top)?];
    let mut files = 0;
    while let depth @ 1.. = open.len()
        && files <= limit
    {
        let folder = &mut open[depth - 1];
        let Some(entry) = folder.next() else {
            open.pop();
            continue;
        };
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        files += 1;
        if !matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
            continue;
        }
        match openat(
            folder.fd()?,
            entry.file_name(),
            folder_flags(),
            Mode::empty(),
        ) {
            Ok(_) if depth >= DEEPEST => return Err(io::ErrorKind::InvalidFilename.into()),
            Ok(inner) => open.push(Dir::new(inner)?),
            // Gone since, or never a folder.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(files)
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_link_is_one_file_whatever_it_points_to() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("inner")).unwrap();
        fs::write(folder.path().join("inner/file"), "").unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("out")).unwrap();
        assert_eq!(count(folder.path(), 1000).unwrap(), 3);
        assert_eq!(count(folder.path(), 1).unwrap(), 2);
        assert_eq!(LayerFiles::of(folder.path().to_owned()).room(2), 0);
        assert_eq!(LayerFiles::of(folder.path().to_owned()).room(5), 2);
    }

    #[test]
    fn a_tree_that_is_too_deep_is_over_every_limit() {
        let folder = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", DEEPEST + 1).collect();
        fs::create_dir_all(folder.path().join(deep)).unwrap();
        assert_eq!(LayerFiles::of(folder.path().to_owned()).room(1000), 0);
    }
}
