//! What all sandboxes of an installation may use together.
//!
//! Each has limits of its own, and a hundred of them may add up to more than the machine. So their
//! common parent group carries a sum that leaves a reserve: the gateway, and whoever else lives here,
//! are outside of it.

use std::fs;
use std::path::Path;

use crate::plan::CgroupSetting;

/// As the operator wants it; what is not given is chosen to fit the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TotalLimits {
    pub memory_bytes: Option<u64>,
    pub processes: Option<u64>,
}

/// Of the machine, for the gateway and everybody else: one part in so many, and no less than this.
const RESERVED_PART: u64 = 8;
const RESERVED_BYTES: u64 = 256 << 20;
const RESERVED_PROCESSES: u64 = 1024;

impl TotalLimits {
    /// For the parent of all sandboxes' groups in the hierarchy that counts memory.
    pub(super) fn memory(self, parent: &Path, version: u8) -> Vec<CgroupSetting> {
        let bytes = self
            .memory_bytes
            .unwrap_or_else(|| leaving(available_memory(parent), RESERVED_BYTES));
        // As the kernel will say it: a sum that stands is not set again.
        let bytes = bytes - bytes % rustix::param::page_size() as u64;
        if version == 2 {
            return vec![wished("memory.max", bytes), wished("memory.swap.max", 0)];
        }
        vec![
            // Before Linux 5.11 a parent counted its children only if it was told to.
            wished("memory.use_hierarchy", 1),
            wished("memory.limit_in_bytes", bytes),
            wished("memory.memsw.limit_in_bytes", bytes),
            // Once more: it may not be larger than the one before, nor that smaller than it.
            wished("memory.limit_in_bytes", bytes),
        ]
    }

    pub(super) fn processes(self, parent: &Path) -> Vec<CgroupSetting> {
        let most = self
            .processes
            .unwrap_or_else(|| leaving(available_processes(parent), RESERVED_PROCESSES));
        vec![wished("pids.max", most)]
    }
}

/// What is left of it for sandboxes. A machine too small for the reserve is halved.
fn leaving(all: u64, reserve: u64) -> u64 {
    let reserve = (all / RESERVED_PART).max(reserve).min(all / 2);
    all - reserve
}

/// The machine's, or less where a group above bounds us, as in a container.
fn available_memory(parent: &Path) -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(u64::MAX, |kib| kib << 10);
    let above = least_above(parent, &["memory.max", "memory.limit_in_bytes"]);
    above.map_or(machine, |bound| bound.min(machine))
}

fn available_processes(parent: &Path) -> u64 {
    let number = |name: &str| fs::read_to_string(name).ok()?.trim().parse::<u64>().ok();
    [
        number("/proc/sys/kernel/pid_max"),
        number("/proc/sys/kernel/threads-max"),
        least_above(parent, &["pids.max"]),
    ]
    .into_iter()
    .flatten()
    .min()
    .unwrap_or(32_768)
}

/// The least bound that a group above this one has, in one of these files.
fn least_above(group: &Path, files: &[&str]) -> Option<u64> {
    group
        .ancestors()
        .skip(1)
        .take_while(|group| group.join("cgroup.procs").exists())
        .flat_map(|group| files.iter().map(move |file| group.join(file)))
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
        .min()
}

/// Not required: a parent that is full already takes no smaller sum, and each sandbox has its own
/// limits either way. `doctor` reads what really holds.
fn wished(file: &str, value: u64) -> CgroupSetting {
    CgroupSetting {
        file: file.to_owned(),
        value: value.to_string(),
        required: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_left_and_a_small_machine_is_halved() {
        assert_eq!(leaving(16 << 30, RESERVED_BYTES), 14 << 30);
        assert_eq!(leaving(1 << 30, RESERVED_BYTES), 768 << 20);
        assert_eq!(leaving(256 << 20, RESERVED_BYTES), 128 << 20);
    }

    #[test]
    fn a_bound_of_a_group_above_counts() {
        let top = tempfile::tempdir().unwrap();
        let parent = top.path().join("ours/hermetic-x");
        fs::create_dir_all(&parent).unwrap();
        fs::write(top.path().join("cgroup.procs"), "").unwrap();
        fs::write(top.path().join("ours/cgroup.procs"), "").unwrap();
        fs::write(top.path().join("memory.max"), "1073741824\n").unwrap();
        fs::write(top.path().join("ours/memory.max"), "max\n").unwrap();
        assert_eq!(least_above(&parent, &["memory.max"]), Some(1 << 30));
        let given = TotalLimits {
            memory_bytes: Some((5 << 20) + 1),
            processes: Some(7),
        };
        assert_eq!(given.memory(&parent, 2)[0].value, "5242880");
        assert_eq!(given.processes(&parent)[0].value, "7");
        assert_eq!(
            TotalLimits::default().memory(&parent, 2)[0].value,
            (768_u64 << 20).to_string()
        );
    }
}
