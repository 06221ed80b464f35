//! How much memory a sandbox's processes hold, where no cgroup counts it.

use std::fs;

/// More processes than any limit allows: a bound on the work of one look.
const MOST: usize = 4096;

/// The process and all that descend from it. Pid 1 of a sandbox is the reaper of everything in it,
/// so nothing escapes this.
pub(super) fn family(first: i32) -> Vec<i32> {
    let mut family = vec![first];
    let mut next = 0;
    while next < family.len() && family.len() < MOST {
        family.extend(children(family[next]));
        next += 1;
    }
    family
}

/// The sum of their resident memory. Where that is too much, what they share is counted once.
pub(super) fn resident(pids: &[i32], limit: u64) -> u64 {
    let quick: u64 = pids.iter().filter_map(|&pid| status(pid)).sum();
    if quick <= limit {
        return quick;
    }
    pids.iter()
        .filter_map(|&pid| proportional(pid).or_else(|| status(pid)))
        .sum()
}

fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect()
}

fn status(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

fn proportional(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_of_our_own_family_and_hold_memory() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let family = family(pid);
        assert_eq!(family.first(), Some(&pid));
        assert!(resident(&family, u64::MAX) > 1 << 16);
    }
}
