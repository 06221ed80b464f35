//! How many sandboxes this machine can have, where the configuration does not say.
//!
//! What a sandbox takes on another machine is not this one's: there its memory does not count, and what the place
//! has no room for it refuses itself.

use std::fs;
use std::path::Path;

use hermetic_config::{Config, resolve_gateway_backend};
use hermetic_listen::descriptors;

use super::shared_work::{is_distant, used_backends};

/// Descriptors of ours for one sandbox: four while it rests, more while it is made or works. All of them
/// together may have a quarter; connections out of them have half, our own ports three sixteenths.
const FILES_EACH: u64 = 8;

/// What a resting sandbox takes, with a margin: a warden, a shell, and what we know of it.
const MEMORY_EACH: u64 = 16 << 20;

/// The same of one that is elsewhere: a link and its buffers, and what we know of it.
const DISTANT_MEMORY_EACH: u64 = 2 << 20;

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
        let max_sandboxes = max_sandboxes.unwrap_or_else(|| {
            fitting(
                descriptors::available(),
                machine_memory(),
                memory_each(config),
            )
        });
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

/// Of this machine's.
fn memory_each(config: &Config) -> u64 {
    // One that cannot be resolved does not start, and says why there.
    let Ok(resolved) = resolve_gateway_backend(config) else {
        return MEMORY_EACH;
    };
    let mut used = used_backends(config, &resolved).into_values();
    match used.all(is_distant) {
        true => DISTANT_MEMORY_EACH,
        false => MEMORY_EACH,
    }
}

fn fitting(files: u64, memory: Option<u64>, memory_each: u64) -> usize {
    let by_files = files / 4 / FILES_EACH;
    let by_memory = memory.map_or(u64::MAX, |memory| memory / memory_each);
    let fits = by_files.min(by_memory).clamp(LEAST_FITTING, MOST_FITTING);
    usize::try_from(fits).unwrap_or(usize::MAX)
}

/// Bytes of the machine, or of the container or unit that we are in.
pub fn machine_memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        kib.checked_mul(1024)
    });
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    // The smallest: a container may be allowed more than its machine has.
    let group = group_memory(Path::new("/sys/fs/cgroup"), &groups);
    machine.into_iter().chain(group).min()
}

/// The least that a group allows of those that this process is in, which is what `MemoryMax=` of a unit is: a
/// limit above holds for all below it.
fn group_memory(mounted: &Path, groups: &str) -> Option<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        // The number of a hierarchy, its controllers, the path; version 2 has no controllers there.
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (root, file) = match controllers {
            "" => (mounted.to_owned(), "memory.max"),
            "memory" => (mounted.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        let own = root.join(path.trim_start_matches('/'));
        // In a container the path may be that of the host, of which only the root is shown here.
        for group in own.ancestors().take_while(|group| group.starts_with(&root)) {
            let text = fs::read_to_string(group.join(file)).ok();
            // `max` where there is no limit.
            limits.extend(text.and_then(|text| text.trim().parse::<u64>().ok()));
        }
    }
    limits.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_fits_descriptors_and_memory() {
        const GIB: u64 = 1 << 30;
        let here = |files, memory| fitting(files, memory, MEMORY_EACH);
        assert_eq!(here(1024, Some(64 * GIB)), 32);
        assert_eq!(here(4096, Some(64 * GIB)), 128);
        assert_eq!(here(524_288, Some(4 * GIB)), 256);
        assert_eq!(here(524_288, None), 4096);
        assert_eq!(here(64, Some(GIB / 64)), 4);
        // A pod's memory is its node's.
        assert_eq!(fitting(524_288, Some(2 * GIB), DISTANT_MEMORY_EACH), 1024);
    }

    #[test]
    #[cfg(feature = "telegram")]
    fn the_memory_of_other_machines_is_not_counted() {
        let each = |text: &str| memory_each(&crate::platforms::tests::config(text));
        assert_eq!(each("gateway: {terminal_backend: local}\n"), MEMORY_EACH);
        let elsewhere = "telegram: {token: '1:a-token-of-the-bot'}\n\
             terminal: {ssh_host: host.example, ssh_user: someone}\n\
             gateway: {terminal_backend: ssh}\n";
        assert_eq!(each(elsewhere), DISTANT_MEMORY_EACH);
        let both = elsewhere.replace("{token", "{terminal_backend: native, token");
        assert_eq!(each(&both), MEMORY_EACH);
    }

    #[test]
    fn the_least_limit_of_the_groups_above_us_counts() {
        let mounted = tempfile::tempdir().unwrap();
        let limit = |path: &str, text: &str| {
            let path = mounted.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let of = |groups: &str| group_memory(mounted.path(), groups);
        assert_eq!(of("0::/system.slice/hermetic.service\n"), None);
        limit("system.slice/hermetic.service/memory.max", "1000\n");
        limit("system.slice/memory.max", "max\n");
        assert_eq!(of("0::/system.slice/hermetic.service\n"), Some(1000));
        limit("memory.max", "500\n");
        assert_eq!(of("0::/system.slice/hermetic.service\n"), Some(500));
        assert_eq!(of("0::/a/path/of/the/host\n"), Some(500));
        limit("memory/unit/memory.limit_in_bytes", "300\n");
        let version_1 = "4:memory:/unit\n3:cpu,cpuacct:/unit\n";
        assert_eq!(of(version_1), Some(300));
    }
}
