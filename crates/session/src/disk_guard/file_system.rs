//! How much is left on a file system, and a file that keeps some of it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

#[derive(Clone, Copy, Debug)]
pub(super) struct SpaceLeft {
    pub(super) total: u64,
    /// For those without privilege.
    pub(super) free: u64,
    /// Files that can still be made, where that is counted at all.
    pub(super) files: Option<u64>,
}

/// A file whose only use is its size.
#[derive(Debug)]
pub(super) struct BallastFile {
    path: PathBuf,
    /// What it gave up and should have again.
    released: u64,
    is_there: bool,
}

/// The store writes little; it needs hours for this much.
const LARGEST: u64 = 64 << 20;

impl SpaceLeft {
    pub(super) fn on(folder: &Path) -> io::Result<Self> {
        let stat = statvfs(folder)?;
        Ok(Self {
            total: stat.f_blocks.saturating_mul(stat.f_frsize),
            free: stat.f_bavail.saturating_mul(stat.f_frsize),
            files: (stat.f_files > 0).then_some(stat.f_favail),
        })
    }

    pub(super) fn used(&self) -> u64 {
        self.total.saturating_sub(self.free)
    }
}

impl BallastFile {
    pub(super) fn below(folder: &Path) -> Self {
        let path = folder.join("disk_reserve");
        Self {
            released: 0,
            is_there: path.exists(),
            path,
        }
    }

    pub(super) fn size(&self, reserve: u64) -> u64 {
        (reserve / 4).min(LARGEST)
    }

    /// What is free only because it was given up.
    pub(super) fn released(&self) -> u64 {
        self.released
    }

    /// Gives its room to whoever needs it, which is the store.
    pub(super) fn release(&mut self) {
        if !std::mem::take(&mut self.is_there) {
            return;
        }
        self.released = fs::metadata(&self.path).map_or(0, |file| file.len());
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, "the disk's reserve could not be given up");
        } else {
            tracing::warn!(
                bytes = self.released,
                "the disk is full; its reserve is given up"
            );
        }
    }

    /// Takes it, if that was not done. Without it the store has only what nobody else took.
    pub(super) fn keep(&mut self, reserve: u64) {
        if self.is_there {
            return;
        }
        // Also where it fails below: a file system that cannot reserve would otherwise be asked ten
        // times a second.
        self.is_there = true;
        self.released = 0;
        if let Err(error) = self.allocate(self.size(reserve)) {
            tracing::debug!(%error, "no room can be reserved on this file system");
            let _ = fs::remove_file(&self.path);
        }
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let file: File = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&self.path)?;
        if bytes > 0 {
            fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn what_is_kept_takes_room_and_gives_it_up() {
        let folder = tempfile::tempdir().unwrap();
        let mut ballast = BallastFile::below(folder.path());
        let reserve = 4 << 20;
        ballast.keep(reserve);
        let kept = fs::metadata(folder.path().join("disk_reserve")).unwrap();
        assert_eq!(kept.len(), 1 << 20);
        assert!(kept.blocks() * 512 >= 1 << 20, "it is a hole");
        ballast.release();
        assert!(!folder.path().join("disk_reserve").exists());
        assert_eq!(ballast.released(), 1 << 20);
        ballast.keep(reserve);
        assert_eq!(ballast.released(), 0);
    }
}
