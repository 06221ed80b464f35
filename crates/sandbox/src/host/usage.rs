//! How much of a file system is in use.

use std::io;
use std::path::Path;

use rustix::fs::statvfs;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    pub bytes: u64,
    pub inodes: u64,
}

impl DiskUsage {
    /// Of the whole file system that the path is on: cheap to ask, and the most that can have grown.
    pub fn of_all(path: &Path) -> io::Result<Self> {
        let stat = statvfs(path)?;
        Ok(Self {
            bytes: stat.f_blocks.saturating_sub(stat.f_bfree) * stat.f_frsize,
            inodes: stat.f_files.saturating_sub(stat.f_ffree),
        })
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
        }
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            inodes: self.inodes.saturating_sub(other.inodes),
        }
    }

    /// Each of the two, whichever is less.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.min(other.bytes),
            inodes: self.inodes.min(other.inodes),
        }
    }

    /// Each of the two, whichever is more.
    #[must_use]
    pub fn most(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.max(other.bytes),
            inodes: self.inodes.max(other.inodes),
        }
    }
}
