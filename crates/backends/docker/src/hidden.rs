//! Files that have no name any more and are still open: the engine's count of a layer misses them.
//!
//! Only where the engine is on this machine and we are root can they be seen, through the
//! processes that hold them.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Bytes in nameless files of the container, on the file system of its root. Nothing where it
/// cannot be told.
pub(crate) fn bytes(pid: i64, key: &str) -> Option<u64> {
    if pid <= 0 || !is_its_first(pid, key) {
        return None;
    }
    let root = fs::metadata(format!("/proc/{pid}/root")).ok()?;
    let space = namespace(pid)?;
    let mut seen = HashSet::new();
    let mut total = 0;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(other) = name.to_str().and_then(|name| name.parse::<i64>().ok()) else {
            continue;
        };
        if namespace(other) != Some(space) {
            continue;
        }
        for open in fs::read_dir(entry.path().join("fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            // Follows the kernel's own link to the open file, not a path.
            let Ok(found) = fs::metadata(open.path()) else {
                continue;
            };
            let hidden = found.is_file() && found.nlink() == 0 && found.dev() == root.dev();
            if hidden && seen.insert(found.ino()) {
                total += found.blocks() * 512;
            }
        }
    }
    Some(total)
}

/// A number means a process of this machine only if its groups carry the container's name.
pub(crate) fn is_its_first(pid: i64, key: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|groups| groups.contains(key))
}

fn namespace(pid: i64) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/pid"))
        .ok()
        .map(|found| found.ino())
}
