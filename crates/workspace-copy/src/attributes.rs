//! Owner, times and extended attributes: what is copied where it can be, and is no reason to have no copy.

use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Timespec, Timestamps, XattrFlags, lgetxattr, llistxattr, lsetxattr, utimensat,
};
use std::ffi::OsStr;

/// As long as a list of names, or one value, may be in Linux.
const MOST_OF_ATTRIBUTE: usize = 64 << 10;

pub(crate) fn copy_attributes(facts: &Metadata, target: &Path) {
    // Only root in a container has files of others. Without the right to it they become its own.
    if let Ok(made) = target.symlink_metadata()
        && (made.uid(), made.gid()) != (facts.uid(), facts.gid())
    {
        let _ = lchown(target, Some(facts.uid()), Some(facts.gid()));
    }
    let moment = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: moment(facts.atime(), facts.atime_nsec()),
        last_modification: moment(facts.mtime(), facts.mtime_nsec()),
    };
    let _ = utimensat(CWD, target, &times, AtFlags::SYMLINK_NOFOLLOW);
}

pub(crate) fn copy_extended_attributes(source: &Path, target: &Path) {
    // Nearly no file has any, and the question alone needs no room.
    if !matches!(llistxattr(source, &mut [0_u8; 0][..]), Ok(length) if length > 0) {
        return;
    }
    let mut names = vec![0; MOST_OF_ATTRIBUTE];
    let Ok(length) = llistxattr(source, names.as_mut_slice()) else {
        return;
    };
    let mut value = vec![0; MOST_OF_ATTRIBUTE];
    let names = names.get(..length).unwrap_or_default();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let name = OsStr::from_bytes(name);
        if let Ok(length) = lgetxattr(source, name, value.as_mut_slice())
            && let Some(value) = value.get(..length)
        {
            let _ = lsetxattr(target, name, value, XattrFlags::empty());
        }
    }
}
