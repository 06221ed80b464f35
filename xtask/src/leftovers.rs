//! Short-lived folders outside the source tree, and those of earlier runs that were killed.

use std::path::{Path, PathBuf};
use std::{fs, process};

/// Not TMPDIR: that may be long, which sockets do not bear, or closed to other users.
const PLACE: &str = "/tmp";

/// A name for a folder that is ours for as long as this process lives. Whoever makes it must see
/// to it that it is not there yet, because others can write beside it.
pub(crate) fn folder(purpose: &str) -> PathBuf {
    let prefix = format!("hermetic-{purpose}-");
    sweep(&prefix);
    Path::new(PLACE).join(format!("{prefix}{}", process::id()))
}

/// What cannot be removed is another user's and stays.
fn sweep(prefix: &str) {
    let Ok(entries) = fs::read_dir(PLACE) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(prefix));
        let dead = |id: &str| id.parse::<u32>().is_ok() && !Path::new("/proc").join(id).exists();
        if owner.is_some_and(dead) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}
