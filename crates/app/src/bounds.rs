//! How many sandboxes this machine can have, where the configuration does not say.

use std::fs;

use hermetic_config::Config;
use hermetic_listen::descriptors;

/// Descriptors of ours for one sandbox: four while it rests, more while it is made or works. All of them
/// together may have a quarter; connections out of them have half, our own ports three sixteenths.
const FILES_EACH: u64 = 8;

/// What a resting sandbox takes, with a margin: a warden, a shell, and what we know of it.
const MEMORY_EACH: u64 = 16 << 20;

/// However large the machine is.
const MOST_FITTING: u64 = 4096;
/// However small.
const LEAST_FITTING: u64 = 4;

/// How many may live at once, and how many of them may be one person's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxBounds {
    pub max_sandboxes: usize,
    pub max_sandboxes_per_user: usize,
}

impl SandboxBounds {
    pub fn of(config: &Config) -> Self {
        let gateway = config.gateway();
        let max_sandboxes = gateway.max_sandboxes;
        let max_sandboxes =
            max_sandboxes.unwrap_or_else(|| fitting(descriptors::available(), machine_memory()));
        let per_user = gateway.max_sandboxes_per_user;
        Self {
            max_sandboxes,
            // At least two, so that nobody's second conversation ends the first.
            max_sandboxes_per_user: per_user
                .unwrap_or_else(|| (max_sandboxes / 4).max(2))
                .min(max_sandboxes),
        }
    }
}

fn fitting(files: u64, memory: Option<u64>) -> usize {
    let by_files = files / 4 / FILES_EACH;
    let by_memory = memory.map_or(u64::MAX, |memory| memory / MEMORY_EACH);
    let fits = by_files.min(by_memory).clamp(LEAST_FITTING, MOST_FITTING);
    usize::try_from(fits).unwrap_or(usize::MAX)
}

/// Bytes of the machine, or of the container that we are in.
pub fn machine_memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        kib.checked_mul(1024)
    });
    // `max` where there is no limit.
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse().ok());
    // The smaller one: a container may be allowed more than its machine has.
    machine.into_iter().chain(container).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_fits_descriptors_and_memory() {
        const GIB: u64 = 1 << 30;
        assert_eq!(fitting(1024, Some(64 * GIB)), 32);
        assert_eq!(fitting(4096, Some(64 * GIB)), 128);
        assert_eq!(fitting(524_288, Some(4 * GIB)), 256);
        assert_eq!(fitting(524_288, None), 4096);
        assert_eq!(fitting(64, Some(GIB / 64)), 4);
    }
}
