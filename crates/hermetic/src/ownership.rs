//! Files that root makes in the home of somebody else.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::Path;

/// Gives it to whoever owns the folder: root may act for a gateway that has fewer rights, and has to read
/// it afterwards. Nothing for everybody else.
pub(crate) fn give_to_owner_of(folder: &Path, made: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let owner = fs::metadata(folder)?;
    match owner.uid() {
        0 => Ok(()),
        uid => lchown(made, Some(uid), Some(owner.gid())),
    }
}
