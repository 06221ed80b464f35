//! Files of a container that have no name any more and are still held: the engine's count of a layer
//! misses them.
//!
//! Only where the engine is on this machine and we are root can they be seen, through the processes
//! that hold them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hermetic_sandbox::host::held::{self, OnDevice};
use hermetic_sandbox::host::{DiskUsage, UsageBlame};

/// What is charged to a container besides the files in its layer: nameless ones that are open, mapped
/// or running, and the growth of the whole file system while something waits in a socket that nobody
/// can weigh.
#[derive(Debug, Default)]
pub(crate) struct HiddenUsage(UsageBlame);

impl HiddenUsage {
    /// Bytes, where `named` is what the engine counts. Nothing where it cannot be told.
    pub(crate) fn bytes(&mut self, pid: i64, key: &str, layer: Option<&Path>, named: u64) -> u64 {
        if pid <= 0 || !is_its_first(pid, key) {
            return 0;
        }
        let root = fs::metadata(format!("/proc/{pid}/root")).ok();
        // Mapped files go by the number of the file system below the overlay.
        let below = layer.and_then(|layer| fs::metadata(layer).ok());
        let Some(number) = below.or(root).map(|found| found.dev()) else {
            return 0;
        };
        let device = OnDevice {
            number,
            overlaid: true,
        };
        let held = held::look(&family(pid), device);
        let counted = DiskUsage {
            bytes: named.saturating_add(held.unnamed.bytes),
            inodes: 0,
        };
        if let Some(whole) = layer.and_then(|layer| DiskUsage::of_all(layer).ok()) {
            self.0.weigh(counted, whole, held.disk_doubt);
        }
        held.unnamed.bytes.saturating_add(self.0.charged().bytes)
    }
}

/// A number means a process of this machine only if its groups carry the container's name.
pub(crate) fn is_its_first(pid: i64, key: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|groups| groups.contains(key))
}

/// All processes of its namespace, the first one first.
fn family(pid: i64) -> Vec<i32> {
    let Ok(first) = i32::try_from(pid) else {
        return Vec::new();
    };
    let space = namespace(first);
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        // By its namespace and not by descent: a process that was entered into the container is
        // nobody's child in it.
        .filter(|&other| other != first && space.is_some() && namespace(other) == space);
    std::iter::once(first).chain(others).collect()
}

fn namespace(pid: i32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/pid"))
        .ok()
        .map(|found| found.ino())
}
