//! Which cgroups can be had here, and what they are set to.
//!
//! In a delegated subtree, which is all we may touch: below our own group, or beside it where systemd keeps
//! one for sandboxes (`placement.rs`). Version 2 where it has the controllers, else version 1.

mod hierarchy;

use std::env;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hermetic_sandbox::BackendError;
use hermetic_types::{InstallationId, SandboxId, SandboxLimits};

use self::hierarchy::{is_unified, single, unified};
use super::placement::{self, CgroupParent, usable};
use super::scope;
use super::tables;
use super::total::TotalLimits;
use crate::plan::{CgroupPlan, CgroupSetting};

pub(super) use self::hierarchy::own_of;

/// The scheduler's period, in microseconds.
const PERIOD: u64 = 100_000;

/// The cgroups below which sandboxes get theirs, by controller, or the reason why there is none.
#[derive(Debug)]
pub(super) struct SandboxCgroups {
    /// Version 2: one group for all three.
    unified: Option<PathBuf>,
    pub(super) pids: Result<PathBuf, String>,
    pub(super) memory: Result<PathBuf, String>,
    pub(super) cpu: Result<PathBuf, String>,
    /// What all sandboxes may use together.
    pub(super) total: TotalLimits,
}

/// The groups that are there without asking anybody, or those that systemd gave when it was asked.
#[derive(Debug)]
pub(super) struct OwnGroups {
    found: SandboxCgroups,
    /// The name of the scope to ask for, where that could help.
    scope: Option<String>,
    asked: OnceLock<SandboxCgroups>,
}

impl OwnGroups {
    pub(super) fn detect(installation: &InstallationId) -> Self {
        let name = format!("hermetic-{installation}");
        let found = SandboxCgroups::detect(&name);
        // Version 1 is not systemd's to hand out.
        let lacking = found.unified.is_none() && found.pids.is_err();
        // A service's process stays in its service: systemd keeps it by that.
        let by_hand = env::var_os(placement::SANDBOXES_UNIT).is_none() && !scope::is_a_service();
        let helps = lacking && by_hand && is_unified() && scope::systemd_is_there();
        let scope = helps.then_some(name);
        Self {
            found,
            scope,
            asked: OnceLock::new(),
        }
    }

    pub(super) fn with_total(mut self, total: TotalLimits) -> Self {
        self.found = self.found.with_total(total);
        self
    }

    pub(super) fn none() -> Self {
        Self {
            found: SandboxCgroups::none(),
            scope: None,
            asked: OnceLock::new(),
        }
    }

    /// Whether this process stays in the group that it is in.
    pub(super) fn are_settled(&self) -> bool {
        self.scope.is_none() || self.asked.get().is_some()
    }

    /// Asks systemd for a group, once and only where it can help. Moves this process; not for those who only
    /// look.
    pub(super) fn settle(&self) {
        let Some(name) = &self.scope else {
            return;
        };
        self.asked.get_or_init(|| {
            let scope = format!("{name}-{}.scope", std::process::id());
            match scope::enter(&scope) {
                Ok(()) => SandboxCgroups::detect(name).with_total(self.found.total),
                // Without systemd's help it goes on with what there is; why nothing better was had
                // is kept for whoever insists.
                Err(why) => self.found.lacking_also(&why),
            }
        });
    }
}

impl Deref for OwnGroups {
    type Target = SandboxCgroups;

    fn deref(&self) -> &SandboxCgroups {
        self.asked.get().unwrap_or(&self.found)
    }
}

impl SandboxCgroups {
    fn detect(name: &str) -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let unit = env::var(placement::SANDBOXES_UNIT).ok();
        let unified =
            unified(&own, &mounts).map(|own| placement::find(&own, name, unit.as_deref()));
        let why_not = match unified {
            Some(Ok(placement)) => return Self::below(placement),
            Some(Err(why)) => Some(why),
            None => None,
        };
        let version_1 = |controller: &str| {
            let own = single(&own, &mounts, controller).ok_or_else(|| {
                let none = || format!("no cgroup controller {controller}");
                why_not.clone().unwrap_or_else(none)
            })?;
            let base = own.join(name);
            usable(&base).map_err(|error| format!("{}: {error}", base.display()))?;
            Ok(base)
        };
        Self {
            unified: None,
            pids: version_1("pids"),
            memory: version_1("memory"),
            cpu: version_1("cpu"),
            total: TotalLimits::default(),
        }
    }

    fn below(placement: CgroupParent) -> Self {
        let CgroupParent { base, controllers } = placement;
        let of = |controller: &str| {
            if controllers.contains(&controller) {
                Ok(base.clone())
            } else {
                Err(format!(
                    "{controller} is not handed down to {}",
                    base.display()
                ))
            }
        };
        Self {
            pids: of("pids"),
            memory: of("memory"),
            cpu: of("cpu"),
            unified: Some(base),
            total: TotalLimits::default(),
        }
    }

    fn lacking_also(&self, why: &str) -> Self {
        let also = |group: &Result<PathBuf, String>| match group {
            Ok(base) => Ok(base.clone()),
            Err(before) => Err(format!("{before}; {why}")),
        };
        Self {
            unified: self.unified.clone(),
            pids: also(&self.pids),
            memory: also(&self.memory),
            cpu: also(&self.cpu),
            total: self.total,
        }
    }

    /// Where somebody else bounds what a sandbox uses.
    pub(super) fn none() -> Self {
        let elsewhere = || Err("bounded by the container it stands in".to_owned());
        Self {
            unified: None,
            pids: elsewhere(),
            memory: elsewhere(),
            cpu: elsewhere(),
            total: TotalLimits::default(),
        }
    }

    pub(super) fn with_total(self, total: TotalLimits) -> Self {
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

    pub(super) fn of(&self, id: &SandboxId, limits: &SandboxLimits) -> Vec<CgroupPlan> {
        if let Some(base) = &self.unified {
            let mut group = self.version_2(base.join(id.as_str()), limits);
            if self.pids.is_ok() {
                group.shared.extend(self.total.processes(base));
            }
            if self.memory.is_ok() {
                group.shared.extend(self.total.memory(base, 2));
            }
            return vec![group];
        }
        let folder = |base: &PathBuf| base.join(id.as_str());
        let mut groups = Vec::new();
        if let Ok(base) = &self.pids {
            groups.push(CgroupPlan {
                folder: folder(base),
                shared: self.total.processes(base),
                settings: vec![required("pids.max", limits.pids)],
                oom_counter: None,
            });
        }
        if let Ok(base) = &self.memory {
            groups.push(CgroupPlan {
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
            groups.push(CgroupPlan {
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

    fn version_2(&self, folder: PathBuf, limits: &SandboxLimits) -> CgroupPlan {
        let mut settings = Vec::new();
        if self.pids.is_ok() {
            settings.push(required("pids.max", limits.pids));
        }
        if self.memory.is_ok() {
            settings.extend([
                required("memory.max", limits.memory_bytes),
                // `memory.max` counts no swap: at its limit a sandbox would go on in the host's.
                wished("memory.swap.max", 0_u64),
                // One process goes, and not the whole group: the warden is in it.
                wished("memory.oom.group", 0_u64),
            ]);
        }
        if self.cpu.is_ok() {
            settings.push(CgroupSetting {
                file: "cpu.max".to_owned(),
                value: format!("{} {PERIOD}", quota(limits)),
                required: true,
            });
        }
        CgroupPlan {
            folder,
            shared: Vec::new(),
            settings,
            oom_counter: self.memory.is_ok().then(|| "memory.events".to_owned()),
        }
    }

    /// What a person does who wants the limits that are lacking.
    pub(super) fn remedy(&self) -> String {
        if !scope::systemd_is_there() && is_a_container() {
            return "a container whose cgroups are writable: HERMETIC_CGROUPS=writable-cgroups=true in the .env \
                    beside a file of `hermetic compose` (Docker 28 or later, cgroup version 2); or \
                    terminal.backend docker, whose engine keeps the limits"
                .to_owned();
        }
        if !scope::systemd_is_there() {
            return "start hermetic as root, or where a cgroup of its own is writable to it"
                .to_owned();
        }
        if self.unified.is_some() {
            return "let systemd hand down every controller: `[Service]` and `Delegate=cpu memory pids` in \
                    /etc/systemd/system/user@.service.d/delegate.conf, then log in anew"
                .to_owned();
        }
        if rustix::process::getuid().is_root() {
            return "`systemd-run --scope -p Delegate=yes hermetic ...`, or `hermetic gateway install`".to_owned();
        }
        "`loginctl enable-linger`, then `systemd-run --user --scope -p Delegate=yes hermetic ...`, or \
         `hermetic gateway install`"
            .to_owned()
    }

    /// Takes the installation's own groups away if they are empty. One that another process of
    /// ours still needs is made again by the cage that needs it.
    pub(super) fn leave(&self) {
        if self.unified.is_none() {
            // Empty or not is for the kernel to say: it removes no group that has a process or a
            // group in it.
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
                remedy: self.remedy(),
            }),
            _ => Ok(()),
        }
    }
}

/// Docker and Podman each leave a file.
fn is_a_container() -> bool {
    ["/.dockerenv", "/run/.containerenv"]
        .iter()
        .any(|mark| Path::new(mark).exists())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a float cast saturates, and the kernel asks for at least a millisecond"
)]
fn quota(limits: &SandboxLimits) -> u64 {
    ((limits.cpu * PERIOD as f64) as u64).max(1000)
}

fn required(file: &str, value: impl Into<u64>) -> CgroupSetting {
    CgroupSetting {
        file: file.to_owned(),
        value: value.into().to_string(),
        required: true,
    }
}

fn wished(file: &str, value: impl Into<u64>) -> CgroupSetting {
    CgroupSetting {
        required: false,
        ..required(file, value)
    }
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
