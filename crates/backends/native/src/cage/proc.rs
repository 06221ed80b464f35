//! `/proc` for the sandbox's own processes, without the host's insides.
//!
//! Not `hidepid`: the warden finds what a command left behind by reading `/proc`, and a process
//! that makes itself undumpable would be hidden from it. All of them belong to one conversation.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_bind};

use super::limits;
use super::step_failure::{FailingStep, StepFailure};
use super::sys::mounts::{MountDepth, NO_DEV, NO_EXEC, NO_SUID, READ_ONLY, restrict};
use crate::plan::ProcessBounds;

/// Knobs of the kernel: to be read, never to be turned, also when root built this.
const READ_ONLY_PARTS: [&str; 4] = ["sys", "irq", "bus", "fs"];

/// Folders that say too much about the hardware.
const HIDDEN_FOLDERS: [&str; 5] = ["acpi", "asound", "scsi", "driver", "tty"];

/// Files that leak the host's memory layout, keys, timings or configuration, or act on it.
const HIDDEN_FILES: [&str; 24] = [
    "cmdline",
    "config.gz",
    "interrupts",
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "modules",
    "mtrr",
    "partitions",
    "sched_debug",
    "schedstat",
    "slabinfo",
    "softirqs",
    "sysrq-trigger",
    "timer_list",
    "vmallocinfo",
];

pub(crate) fn mount_masked(bounds: &ProcessBounds) -> Result<(), StepFailure> {
    std::fs::create_dir("proc").step("make /proc")?;
    mount(
        "proc",
        "proc",
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )
    .step("mount /proc")?;
    limits::share_tables(Path::new("proc"), bounds)?;
    for part in READ_ONLY_PARTS {
        let path = below_proc(part);
        if present(mount_bind(&path, &path)).step(&format!("bind /proc/{part}"))? {
            harden(&path)?;
        }
    }
    for part in HIDDEN_FOLDERS {
        let path = below_proc(part);
        // An empty folder of ours.
        if present(mount_bind("sys", &path)).step(&format!("hide /proc/{part}"))? {
            harden(&path)?;
        }
    }
    for part in HIDDEN_FILES {
        // The null device, in place by now: nothing comes out of it and nothing stays in it.
        present(mount_bind("dev/null", below_proc(part))).step(&format!("hide /proc/{part}"))?;
    }
    Ok(())
}

fn harden(path: &Path) -> Result<(), StepFailure> {
    restrict(
        path,
        READ_ONLY | NO_SUID | NO_DEV | NO_EXEC,
        MountDepth::Tree,
    )
    .step(&format!("make /{} read-only", path.display()))
}

/// Which of these a kernel has depends on its configuration.
fn present(mounted: rustix::io::Result<()>) -> rustix::io::Result<bool> {
    match mounted {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn below_proc(part: &str) -> PathBuf {
    Path::new("proc").join(part)
}
