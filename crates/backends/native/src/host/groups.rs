//! Which cgroups can be had here, and what they are set to.
//!
//! Always below our own group: what bounds the gateway bounds its sandboxes, and a delegated
//! subtree is all we may touch. Version 2 where it has the controllers, else version 1.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hermetic_sandbox::BackendError;
use hermetic_types::{InstallationId, Limits, SandboxId};

use super::tables;
use super::total::Total;
use crate::plan::{Group, Setting};

/// The scheduler's period, in microseconds.
const PERIOD: u64 = 100_000;

#[derive(Debug)]
pub(super) struct Groups {
    /// Version 2: one group for all three.
    unified: Option<PathBuf>,
    pub(super) pids: Result<PathBuf, String>,
    pub(super) memory: Result<PathBuf, String>,
    pub(super) cpu: Result<PathBuf, String>,
    /// What all sandboxes may use together.
    pub(super) total: Total,
}

impl Groups {
    pub(super) fn detect(installation: &InstallationId) -> Self {
        let name = format!("hermetic-{installation}");
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        if let Some(base) = unified(&own, &mounts).and_then(|own| delegate(&own, &name).ok()) {
            return Self {
                pids: Ok(base.clone()),
                memory: Ok(base.clone()),
                cpu: Ok(base.clone()),
                unified: Some(base),
                total: Total::default(),
            };
        }
        let version_1 = |controller: &str| {
            let own = single(&own, &mounts, controller)
                .ok_or_else(|| format!("no cgroup controller {controller}"))?;
            let base = own.join(&name);
            usable(&base).map_err(|error| format!("{}: {error}", base.display()))?;
            Ok(base)
        };
        Self {
            unified: None,
            pids: version_1("pids"),
            memory: version_1("memory"),
            cpu: version_1("cpu"),
            total: Total::default(),
        }
    }

    /// Where somebody else bounds what a sandbox uses.
    pub(super) fn none() -> Self {
        let elsewhere = || Err("bounded by the house it stands in".to_owned());
        Self {
            unified: None,
            pids: elsewhere(),
            memory: elsewhere(),
            cpu: elsewhere(),
            total: Total::default(),
        }
    }

    pub(super) fn with_total(self, total: Total) -> Self {
        Self { total, ..self }
    }

    pub(super) fn version(&self) -> u8 {
        if self.unified.is_some() { 2 } else { 1 }
    }

    pub(super) fn bound_cpu(&self) -> bool {
        self.cpu.is_ok()
    }

    pub(super) fn bound_memory(&self) -> bool {
        self.memory.is_ok()
    }

    pub(super) fn of(&self, id: &SandboxId, limits: &Limits) -> Vec<Group> {
        if let Some(base) = &self.unified {
            let mut group = version_2(base.join(id.as_str()), limits);
            group.shared = self.total.processes(base);
            group.shared.extend(self.total.memory(base, 2));
            return vec![group];
        }
        let folder = |base: &PathBuf| base.join(id.as_str());
        let mut groups = Vec::new();
        if let Ok(base) = &self.pids {
            groups.push(Group {
                folder: folder(base),
                shared: self.total.processes(base),
                settings: vec![required("pids.max", limits.pids)],
                oom_counter: None,
            });
        }
        if let Ok(base) = &self.memory {
            groups.push(Group {
                folder: folder(base),
                shared: self.total.memory(base, 1),
                settings: vec![
                    required("memory.limit_in_bytes", limits.memory_bytes),
                    // Absent where swap is not counted.
                    wished("memory.memsw.limit_in_bytes", limits.memory_bytes),
                    // Counted apart in this version; newer kernels may have it no more.
                    wished(
                        "memory.kmem.tcp.limit_in_bytes",
                        tables::tcp_bytes(limits.memory_bytes),
                    ),
                ],
                oom_counter: Some("memory.oom_control".to_owned()),
            });
        }
        if let Ok(base) = &self.cpu {
            groups.push(Group {
                folder: folder(base),
                shared: Vec::new(),
                settings: vec![
                    required("cpu.cfs_period_us", PERIOD),
                    required("cpu.cfs_quota_us", quota(limits)),
                ],
                oom_counter: None,
            });
        }
        groups
    }

    /// Takes the installation's own groups away if they are empty. One that another process of
    /// ours still needs is made again by the cage that needs it.
    pub(super) fn leave(&self) {
        if self.unified.is_none() {
            for base in [&self.pids, &self.memory, &self.cpu].into_iter().flatten() {
                let _ = fs::remove_dir(base);
            }
        }
    }

    /// Refuses where the operator insists on cgroups and one is not to be had.
    pub(super) fn check(&self, insisted: bool) -> Result<(), BackendError> {
        let lacking = [&self.pids, &self.memory, &self.cpu]
            .into_iter()
            .find_map(|group| group.as_ref().err());
        match lacking {
            Some(why) if insisted => Err(BackendError::Unavailable {
                what: format!("limits by cgroups are required and cannot be had ({why})"),
                remedy: "run as root, or as a systemd service with Delegate=yes".to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// The groups that bear this very process's number, in every hierarchy: made for it alone.
pub(super) fn own_of(pid: i32) -> Vec<PathBuf> {
    let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    own.lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (names, path) = (parts.next()?, parts.next()?);
            if path.rsplit('/').next() != Some(pid.to_string().as_str()) {
                return None;
            }
            place(&mounts, path, |kind, options| match names {
                "" => kind == "cgroup2",
                _ => {
                    kind == "cgroup"
                        && names
                            .split(',')
                            .all(|name| options.split(',').any(|o| o == name))
                }
            })
        })
        .collect()
}

fn version_2(folder: PathBuf, limits: &Limits) -> Group {
    Group {
        folder,
        shared: Vec::new(),
        settings: vec![
            required("pids.max", limits.pids),
            required("memory.max", limits.memory_bytes),
            wished("memory.swap.max", 0_u64),
            wished("memory.oom.group", 0_u64),
            Setting {
                file: "cpu.max".to_owned(),
                value: format!("{} {PERIOD}", quota(limits)),
                required: true,
            },
        ],
        oom_counter: Some("memory.events".to_owned()),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a float cast saturates, and the kernel asks for at least a millisecond"
)]
fn quota(limits: &Limits) -> u64 {
    ((limits.cpu * PERIOD as f64) as u64).max(1000)
}

fn required(file: &str, value: impl Into<u64>) -> Setting {
    Setting {
        file: file.to_owned(),
        value: value.into().to_string(),
        required: true,
    }
}

fn wished(file: &str, value: impl Into<u64>) -> Setting {
    Setting {
        required: false,
        ..required(file, value)
    }
}

/// Our own group in the unified hierarchy, if it offers what we need.
fn unified(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = place(mounts, path, |kind, _| kind == "cgroup2")?;
    let controllers = fs::read_to_string(folder.join("cgroup.controllers")).ok()?;
    let offered: Vec<&str> = controllers.split_whitespace().collect();
    ["cpu", "memory", "pids"]
        .iter()
        .all(|wanted| offered.contains(wanted))
        .then_some(folder)
}

/// Our own group in the hierarchy of one version 1 controller.
fn single(own: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let named = parts.next()?.split(',').any(|name| name == controller);
        parts.next().filter(|_| named)
    })?;
    place(mounts, path, |kind, options| {
        kind == "cgroup" && options.split(',').any(|option| option == controller)
    })
}

/// Where a group's path is to be found among the mounts.
fn place(mounts: &str, path: &str, wanted: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1)?);
        if !wanted(kind, options) {
            return None;
        }
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(point).join(below))
    })
}

fn usable(base: &Path) -> io::Result<()> {
    match fs::create_dir(base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Ours to write, not only to see: it may be what another user left.
    rustix::fs::access(base, rustix::fs::Access::WRITE_OK)?;
    Ok(())
}

/// Hands the controllers down. A group with processes of its own cannot, except the root, so where
/// we are alone in ours we step aside into a leaf.
fn delegate(own: &Path, name: &str) -> io::Result<PathBuf> {
    const CONTROLLERS: &str = "+cpu +memory +pids";
    let subtree = own.join("cgroup.subtree_control");
    if fs::write(&subtree, CONTROLLERS).is_err() {
        let members = fs::read_to_string(own.join("cgroup.procs"))?;
        if members.trim() != std::process::id().to_string() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let leaf = own.join("hermetic-gateway");
        usable(&leaf)?;
        fs::write(leaf.join("cgroup.procs"), "0")?;
        fs::write(&subtree, CONTROLLERS)?;
    }
    let base = own.join(name);
    usable(&base)?;
    fs::write(base.join("cgroup.subtree_control"), CONTROLLERS)?;
    Ok(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 25 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
31 25 0:27 /docker/abc /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

    #[test]
    fn our_own_group_is_found_below_its_mount() {
        let own = "4:memory:/a/b\n8:pids:/docker/abc/inner\n0::/user.slice";
        assert_eq!(
            single(own, MOUNTS, "memory"),
            Some("/sys/fs/cgroup/memory/a/b".into())
        );
        assert_eq!(
            single(own, MOUNTS, "pids"),
            Some("/sys/fs/cgroup/pids/inner".into())
        );
        assert_eq!(single(own, MOUNTS, "cpu"), None);
    }

    #[test]
    fn a_group_outside_the_mount_is_not_guessed() {
        assert_eq!(single("8:pids:/elsewhere", MOUNTS, "pids"), None);
    }
}
