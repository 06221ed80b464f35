//! What the sandbox may use up: cgroups that the plan names, and rlimits under them.

use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, UnshareFlags, sched_getaffinity, sched_setaffinity};

use super::step_failure::{FailingStep, StepFailure};
use super::sys;
use crate::plan::{CgroupPlan, CgroupSetting, CpuPinning, ProcessBounds};

/// Signals and timers that wait: counted for each user, and a plain user's sandboxes share one.
const PENDING_SIGNALS: u64 = 4096;

/// How large the buffers of one TCP connection grow, each way. All connections of the host share one
/// sum (`net.ipv4.tcp_mem`); as the kernel comes, one of them may take ten megabytes of it.
const TCP_BUFFER: &str = "1048576";

/// Of a thousand: how much of the machine's memory a process of a sandbox is taken to have besides.
const GOES_FIRST: &str = "500";

/// Makes and sets each group; returns the file that counts kills for memory.
pub(crate) fn make_groups(groups: &[CgroupPlan]) -> Result<Option<OwnedFd>, StepFailure> {
    let mut oom_counter = None;
    for group in groups {
        let folder = group.folder.display();
        fs::create_dir_all(&group.folder).step(&format!("make the cgroup {folder}"))?;
        if let Some(parent) = group.folder.parent() {
            share(parent, &group.shared);
        }
        // Set while nobody is in the group: a bound that comes after its processes is one they may
        // have passed.
        for setting in &group.settings {
            let written = fs::write(group.folder.join(&setting.file), &setting.value);
            if setting.required {
                written.step(&format!("set {} in {folder}", setting.file))?;
            }
        }
        if let Some(file) = &group.oom_counter {
            // Opened here and carried along: inside the cage there is no path to the host's
            // cgroups.
            let counter = fs::File::open(group.folder.join(file)).step("open the oom counter")?;
            oom_counter = Some(counter.into());
        }
    }
    Ok(oom_counter)
}

/// Most often another sandbox has set it already, and reading costs the kernel less than setting.
fn share(parent: &Path, settings: &[CgroupSetting]) {
    for setting in settings {
        let file = parent.join(&setting.file);
        let before = fs::read_to_string(&file).unwrap_or_default();
        if before.trim() != setting.value {
            let _ = fs::write(file, &setting.value);
        }
    }
}

/// Enters each group. A single thread that moves itself, by the number 0, spares the kernel the lock
/// for which a move of any other process waits on every CPU, some ten milliseconds on a busy one.
pub(crate) fn enter_groups(groups: &[CgroupPlan]) -> Result<(), StepFailure> {
    for group in groups {
        // Version 1 moves threads by `tasks`; version 2 has no such file.
        let tasks = group.folder.join("tasks");
        let entered = match fs::OpenOptions::new().write(true).open(tasks) {
            Ok(mut tasks) => tasks.write_all(b"0"),
            Err(_) => fs::write(group.folder.join("cgroup.procs"), "0"),
        };
        entered.step(&format!("enter the cgroup {}", group.folder.display()))?;
    }
    Ok(())
}

/// After entering, so that the group we are in is the root of what the sandbox can see.
pub(crate) fn hide_groups() -> Result<(), StepFailure> {
    sys::clone::unshare(UnshareFlags::NEWCGROUP).step("make the cgroup namespace")
}

/// Bounds what would be taken from tables that the whole host shares. Through the new `/proc`, while
/// it can be written: each of these files is the namespace's own.
pub(crate) fn share_tables(proc: &Path, bounds: &ProcessBounds) -> Result<(), StepFailure> {
    let set = |name: &str, value: &str| match fs::write(proc.join("sys").join(name), value) {
        // A kernel built without it has no such table.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written.step(&format!("bound {name}")),
    };
    if let Some(inotify) = &bounds.inotify {
        set("user/max_inotify_instances", &inotify.instances.to_string())?;
        set("user/max_inotify_watches", &inotify.watches.to_string())?;
    }
    // These only slow down who fills the host's sum: the watch bounds it, with or without them.
    let _ = set("net/ipv4/tcp_rmem", &format!("4096 131072 {TCP_BUFFER}"));
    let _ = set("net/ipv4/tcp_wmem", &format!("4096 16384 {TCP_BUFFER}"));
    Ok(())
}

pub(crate) fn apply(bounds: &ProcessBounds) -> Result<(), StepFailure> {
    // Where memory runs out for more than one sandbox, a sandbox goes before the gateway does. A
    // kernel that does not take it keeps its own order.
    let _ = fs::write("/proc/self/oom_score_adj", GOES_FIRST);
    limit(Resource::Core, 0)?;
    limit(Resource::Nofile, bounds.open_files)?;
    limit(Resource::Nproc, bounds.processes)?;
    limit(Resource::Fsize, bounds.file_bytes)?;
    limit(Resource::Data, bounds.data_bytes)?;
    limit(Resource::Memlock, 64 << 10)?;
    limit(Resource::Msgqueue, 800 << 10)?;
    limit(Resource::Sigpending, PENDING_SIGNALS)?;
    limit(Resource::Rtprio, 0)?;
    limit(Resource::Nice, 0)?;
    match &bounds.pin {
        Some(pin) => pin_to(pin).step("pin to the allowed cpus"),
        None => Ok(()),
    }
}

/// What each process of a container may hold and write.
pub(crate) fn files(open: u64, bytes: u64) -> Result<(), StepFailure> {
    limit(Resource::Core, 0)?;
    limit(Resource::Nofile, open)?;
    limit(Resource::Fsize, bytes)
}

/// Only ever down: raising a hard limit takes a capability that even root may lack.
fn limit(resource: Resource, wanted: u64) -> Result<(), StepFailure> {
    let bound = getrlimit(resource)
        .maximum
        .map_or(wanted, |hard| hard.min(wanted));
    let limit = Rlimit {
        current: Some(bound),
        maximum: Some(bound),
    };
    setrlimit(resource, limit).step(&format!("limit {resource:?}"))
}

fn pin_to(pin: &CpuPinning) -> rustix::io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let numbers: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .collect();
    if numbers.is_empty() || pin.cpus >= numbers.len() {
        return Ok(());
    }
    let mut chosen = CpuSet::new();
    for step in 0..pin.cpus {
        chosen.set(numbers[(pin.first + step) % numbers.len()]);
    }
    sched_setaffinity(None, &chosen)
}
