//! How much memory a sandbox's processes hold, where no cgroup counts it.

use std::fs;

/// Memory that belongs to these processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ResidentMemory {
    /// Theirs alone, in memory or swapped out, and files they have mapped.
    pub(super) own: u64,
    /// Files in memory and shared memory, as far as they have it mapped.
    pub(super) shared: u64,
}

/// The sum of their resident memory. Where that is too much, what they share is counted once.
pub(super) fn resident(pids: &[i32], limit: u64) -> ResidentMemory {
    let quick: ResidentMemory = pids.iter().filter_map(|&pid| status(pid)).sum();
    // The exact figure makes the kernel walk every page table of every process; it is asked for
    // only where the rough one says too much.
    if quick.own.saturating_add(quick.shared) <= limit {
        return quick;
    }
    pids.iter()
        .filter_map(|&pid| proportional(pid).or_else(|| status(pid)))
        .sum()
}

impl std::iter::Sum for ResidentMemory {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            own: sum.own.saturating_add(one.own),
            shared: sum.shared.saturating_add(one.shared),
        })
    }
}

/// Memory in use on this host that is no process's own and no cache: the kernel's, buffers of
/// sockets and pipes, files in memory. The most that a sandbox's hidden memory can have grown by.
pub(super) fn owned_by_nobody() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    Some(without_owner(&text))
}

fn without_owner(text: &str) -> u64 {
    let field = |name: &str| kib(text, name);
    let cache =
        field("Buffers:") + field("Cached:") + field("SwapCached:") + field("SReclaimable:");
    let others = field("MemFree:") + field("AnonPages:") + cache;
    // The kernel counts shared memory as cache.
    let used = field("MemTotal:") + field("Shmem:");
    used.saturating_sub(others)
}

fn status(pid: i32) -> Option<ResidentMemory> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let shared = kib(&text, "RssShmem:");
    let all = kib(&text, "VmRSS:") + kib(&text, "VmSwap:");
    Some(ResidentMemory {
        own: all.saturating_sub(shared),
        shared,
    })
}

fn proportional(pid: i32) -> Option<ResidentMemory> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let shared = kib(&text, "Pss_Shmem:");
    let all = kib(&text, "Pss:") + kib(&text, "SwapPss:");
    Some(ResidentMemory {
        own: all.saturating_sub(shared),
        shared,
    })
}

/// A field of the kernel's tables, which say kilobytes; nothing where it is not there.
fn kib(text: &str, field: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or_default() << 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermetic_sandbox::host::process_tree;

    #[test]
    fn we_hold_memory() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let family = process_tree(pid);
        assert!(resident(&family, u64::MAX).own > 1 << 16);
        assert!(resident(&family, 0).own > 1 << 16);
    }

    #[test]
    fn what_is_no_cache_and_no_process_is_owned_by_nobody() {
        let text = "MemTotal: 1000 kB\nMemFree: 300 kB\nBuffers: 10 kB\nCached: 200 kB\n\
            SwapCached: 0 kB\nAnonPages: 250 kB\nShmem: 120 kB\nSReclaimable: 40 kB\n";
        // 120 of shared memory, and 200 that the table does not speak of.
        assert_eq!(without_owner(text), 320 << 10);
    }
}
