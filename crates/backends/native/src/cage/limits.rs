//! What the sandbox may use up: cgroups that the plan names, and rlimits under them.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, UnshareFlags, sched_getaffinity, sched_setaffinity};

use super::snag::{Snag, Step};
use super::sys;
use crate::plan::{Bounds, Group, Pin};

/// Makes, sets and enters each group; returns the file that counts kills for memory.
pub(crate) fn enter_groups(groups: &[Group]) -> Result<Option<OwnedFd>, Snag> {
    let mut oom_counter = None;
    for group in groups {
        enter(group)?;
        if let Some(file) = &group.oom_counter {
            let counter = fs::File::open(group.folder.join(file)).step("open the oom counter")?;
            oom_counter = Some(counter.into());
        }
    }
    // After entering, so that the group we are in is the root of what the sandbox can see.
    sys::clone::unshare(UnshareFlags::NEWCGROUP).step("make the cgroup namespace")?;
    Ok(oom_counter)
}

fn enter(group: &Group) -> Result<(), Snag> {
    let folder = group.folder.display();
    match fs::create_dir(&group.folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Snag::new(format!("make the cgroup {folder}"), error));
        }
        _ => {}
    }
    for setting in &group.settings {
        let written = fs::write(group.folder.join(&setting.file), &setting.value);
        if setting.required {
            written.step(&format!("set {} in {folder}", setting.file))?;
        }
    }
    // Zero is whoever writes it.
    fs::write(group.folder.join("cgroup.procs"), "0").step(&format!("enter the cgroup {folder}"))
}

pub(crate) fn apply(bounds: &Bounds) -> Result<(), Snag> {
    limit(Resource::Core, 0)?;
    limit(Resource::Nofile, bounds.open_files)?;
    limit(Resource::Nproc, bounds.processes)?;
    limit(Resource::Fsize, bounds.file_bytes)?;
    limit(Resource::Data, bounds.data_bytes)?;
    limit(Resource::Memlock, 64 << 10)?;
    limit(Resource::Msgqueue, 800 << 10)?;
    limit(Resource::Rtprio, 0)?;
    limit(Resource::Nice, 0)?;
    match &bounds.pin {
        Some(pin) => pin_to(pin).step("pin to the allowed cpus"),
        None => Ok(()),
    }
}

/// Only ever down: raising a hard limit takes a capability that even root may lack.
fn limit(resource: Resource, wanted: u64) -> Result<(), Snag> {
    let bound = getrlimit(resource)
        .maximum
        .map_or(wanted, |hard| hard.min(wanted));
    let limit = Rlimit {
        current: Some(bound),
        maximum: Some(bound),
    };
    setrlimit(resource, limit).step(&format!("limit {resource:?}"))
}

fn pin_to(pin: &Pin) -> rustix::io::Result<()> {
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
