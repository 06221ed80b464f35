//! How much a sandbox has written, counted without following anything it made.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use hermetic_sandbox::host::DiskUsage;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};

/// Deeper than anybody's work, and as many descriptors as we want to spend.
const DEEPEST: usize = 200;

/// What lies below these folders. Fails for a tree that cannot be counted: locked by its owner, or
/// too deep.
pub(super) fn count(folders: &[PathBuf]) -> io::Result<DiskUsage> {
    let mut usage = DiskUsage::default();
    for folder in folders {
        // Only the top is found by its path, which is ours. Everything below is opened from the
        // folder it lies in, or the sandbox could swap one for a link while we count.
        let top = openat(CWD, folder, folder_flags(), Mode::empty())?;
        walk(top, &mut usage)?;
    }
    Ok(usage)
}

fn walk(top: OwnedFd, usage: &mut DiskUsage) -> io::Result<()> {
    let mut open = vec![Dir::new(top)?];
    while let depth @ 1.. = open.len() {
        let folder = &mut open[depth - 1];
        let Some(entry) = folder.next() else {
            open.pop();
            continue;
        };
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let fd = folder.fd()?;
        let Ok(found) = statat(fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
            // Gone between the two looks.
            continue;
        };
        // Every name of a file lies in this tree, so each pays its share.
        #[cfg_attr(
            target_arch = "x86_64",
            expect(clippy::useless_conversion, reason = "32 bits on aarch64")
        )]
        let links = u64::from(found.st_nlink).max(1);
        usage.inodes += 1;
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            usage.bytes += blocks(found.st_blocks);
            // A sandbox can nest deeper than we can count. That is an error and not a sum without
            // it: what could hide there is all the disk.
            if depth >= DEEPEST {
                return Err(io::ErrorKind::InvalidFilename.into());
            }
            let inner = match openat(fd, entry.file_name(), folder_flags(), Mode::empty()) {
                Err(rustix::io::Errno::NOENT) => continue,
                other => other?,
            };
            open.push(Dir::new(inner)?);
        } else {
            usage.bytes += blocks(found.st_blocks) / links;
        }
    }
    Ok(())
}

fn blocks(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default() * 512
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

pub(super) fn device(path: &Path) -> io::Result<u64> {
    let fd = openat(CWD, path, folder_flags(), Mode::empty())?;
    Ok(rustix::fs::fstat(fd.as_fd())?.st_dev)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_link_out_of_the_tree_weighs_nothing() {
        let big = tempfile::tempdir().unwrap();
        fs::write(big.path().join("big"), vec![1; 1 << 20]).unwrap();
        let small = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(big.path(), small.path().join("folder")).unwrap();
        std::os::unix::fs::symlink(big.path().join("big"), small.path().join("file")).unwrap();

        let usage = count(&[small.path().to_owned()]).unwrap();
        assert_eq!(usage.inodes, 2);
        assert!(usage.bytes < 1 << 16, "{usage:?}");
    }

    #[test]
    fn two_names_of_one_file_weigh_as_much_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        fs::write(&one, vec![1; 1 << 20]).unwrap();
        let before = count(&[folder.path().to_owned()]).unwrap();
        fs::hard_link(one, two).unwrap();
        let after = count(&[folder.path().to_owned()]).unwrap();
        assert_eq!(before.bytes, after.bytes);
    }
}
