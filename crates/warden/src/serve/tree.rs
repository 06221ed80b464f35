//! Finding and ending everything below a process.
//!
//! The walk goes down through `/proc`. It can miss a process that is being forked or handed to a
//! new parent at that moment, so ending is repeated until nothing is found; processes are stopped
//! before they are killed, which leaves a fork bomb nobody to go on forking. A process is signalled
//! by a descriptor taken before its parent was checked again, so a number that was given to
//! somebody else meanwhile is never hit.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// More than any sandbox may run; a bound for the host itself.
const MOST_LISTED_PROCESSES: usize = 65_536;

/// One process below another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FoundProcess {
    pub(crate) pid: u32,
    parent: u32,
}

/// Everything below `root` except what is in `spared` and below that.
pub(crate) fn below(root: u32, spared: &HashSet<u32>) -> Vec<FoundProcess> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for pid in children(parent) {
            // A process handed to a new parent during the walk can be met twice.
            if found.len() < MOST_LISTED_PROCESSES && !spared.contains(&pid) && seen.insert(pid) {
                found.push(FoundProcess { pid, parent });
                parents.push(pid);
            }
        }
    }
    found
}

/// How many live below; the dead that nobody has waited for yet do not count.
pub(crate) fn count_below(root: u32) -> u32 {
    let living = below(root, &HashSet::new())
        .into_iter()
        .filter(|found| stat(found.pid).is_some_and(|stat| stat.state != b'Z'))
        .count();
    u32::try_from(living).unwrap_or(u32::MAX)
}

/// Signals all of these that are still where they were found. Says whether any was.
pub(crate) fn signal(found: &[FoundProcess], signal: Signal) -> bool {
    let mut any = false;
    for FoundProcess { pid, parent } in found {
        any |= signal_child(*pid, *parent, signal);
    }
    any
}

/// One round of ending: stops what it finds until it finds nothing new, then kills all of it. Says
/// whether there was anything.
pub(crate) fn sweep(root: u32, spared: &HashSet<u32>) -> bool {
    let mut stopped = HashSet::new();
    let mut all = Vec::new();
    // A tree that forks faster than this is met again in the next round.
    for _ in 0..32 {
        let fresh: Vec<FoundProcess> = below(root, spared)
            .into_iter()
            .filter(|found| stopped.insert(*found))
            .collect();
        if !signal(&fresh, Signal::STOP) {
            break;
        }
        all.extend(fresh);
    }
    signal(&all, Signal::KILL)
}

/// Sweeps, without a runtime, until nothing is left or it takes too long.
pub(crate) fn end_below(root: u32) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while sweep(root, &HashSet::new()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn signal_child(pid: u32, parent: u32, signal: Signal) -> bool {
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    let Ok(handle) = pidfd_open(number, PidfdFlags::empty()) else {
        return false;
    };
    // Looked at with the descriptor in hand: if it is still that parent's child, the number still
    // means the same process.
    stat(pid).is_some_and(|stat| stat.parent == parent && stat.state != b'Z')
        && pidfd_send_signal(&handle, signal).is_ok()
}

/// What `/proc/PID/stat` tells of a process.
struct ProcessStat {
    state: u8,
    parent: u32,
}

fn stat(pid: u32) -> Option<ProcessStat> {
    let text = fs::read(proc_path(pid, "stat")).ok()?;
    // The name in parentheses may hold anything, parentheses included.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = text.get(end + 2..)?.split(|byte| *byte == b' ');
    let state = *fields.next()?.first()?;
    let parent = number(fields.next()?)?;
    Some(ProcessStat {
        state,
        parent: u32::try_from(parent).ok()?,
    })
}

/// Direct children. Kernels without the `children` file are searched the long way.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(proc_path(parent, "task")) else {
        return Vec::new();
    };
    let mut pids = Vec::new();
    for thread in threads.flatten() {
        match fs::read(thread.path().join("children")) {
            Ok(list) => pids.extend(
                list.split(|byte| *byte == b' ')
                    .filter_map(number)
                    .filter_map(|pid| u32::try_from(pid).ok()),
            ),
            Err(_) if thread.path().exists() => return children_by_search(parent),
            Err(_) => {}
        }
    }
    pids
}

fn children_by_search(parent: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent))
        .collect()
}

fn number(digits: &[u8]) -> Option<u64> {
    str::from_utf8(digits).ok()?.trim().parse().ok()
}

fn proc_path(pid: u32, file: &str) -> String {
    format!("/proc/{pid}/{file}")
}
