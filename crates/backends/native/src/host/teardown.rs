//! Seeing a sandbox out: by its name, and finished only when it is seen to be gone.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hermetic_sandbox::BackendError;
use hermetic_types::SandboxId;

use super::folder::{LOCK_TIMEOUT, SandboxFolder};
use super::native::NativeHost;
use super::record::SandboxRecord;
use hermetic_sandbox::host as process;

/// How long processes get to vanish after SIGKILL. Only an unresponsive disk makes them need it.
const CAGE_KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Ends every process, and keeps the files.
pub(super) fn stop(host: &NativeHost, id: &SandboxId) -> Result<(), BackendError> {
    let Some(_lock) = lock(&host.folder(id))? else {
        return Ok(());
    };
    halt(host, id)
}

/// [`stop`] for one who holds the lock.
pub(super) fn halt(host: &NativeHost, id: &SandboxId) -> Result<(), BackendError> {
    let folder = host.folder(id);
    let record = folder.record();
    // First: a watch that still looks would take our kill for an end of its own, or end what comes
    // next.
    host.watch.forget(id);
    if let Some(outer_container) = &host.outer_container {
        if let Some(container) = folder.container() {
            container.end()?;
        }
        // By its name as well: one whose cage never knocked was not written down.
        outer_container.clear(id)?;
        folder.forget_container();
    }
    if let Some(record) = &record {
        end_processes(record)?;
    }
    // After its end was seen: what is dropped here waits for its guard, which waits for that end.
    host.children.remove(id);
    // Last, as a group with a process in it cannot be removed.
    record.map_or(Ok(()), |record| remove_groups(id, &record))
}

pub(super) fn destroy(host: &NativeHost, id: &SandboxId) -> Result<(), BackendError> {
    let Some(_lock) = lock(&host.folder(id))? else {
        return Ok(());
    };
    remove(host, id)
}

/// [`destroy`] for one who holds the lock.
pub(super) fn remove(host: &NativeHost, id: &SandboxId) -> Result<(), BackendError> {
    let folder = host.folder(id);
    // Processes before files, or what runs goes on writing into what is being removed.
    halt(host, id)?;
    release_project(host, &folder)?;
    match folder.remove() {
        // Somebody else's destroy was faster.
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(BackendError::failed("remove the sandbox's files", source))
        }
        _ => Ok(()),
    }
}

/// Between the files and the record: a project that still has files is not let go, and one that no
/// record names any more could not be.
fn release_project(host: &NativeHost, folder: &SandboxFolder) -> Result<(), BackendError> {
    let Some(project) = folder.record().and_then(|record| record.made.project) else {
        return Ok(());
    };
    folder
        .remove_files()
        .map_err(|source| BackendError::failed("remove the sandbox's files", source))?;
    // Where quotas were switched off since, there is nothing to let go.
    if let Ok(quotas) = host.project_quotas()
        && let Err(error) = quotas.release(project)
    {
        // Not an error: the sandbox is gone, and a number whose limits stay is passed over by the
        // next who chooses.
        tracing::warn!(sandbox = %folder.id, project, %error, "its project keeps its limits");
    }
    Ok(())
}

/// Nothing where there is no such sandbox.
fn lock(folder: &SandboxFolder) -> Result<Option<OwnedFd>, BackendError> {
    match folder.lock(LOCK_TIMEOUT) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BackendError::failed("lock the sandbox", source)),
    }
}

fn end_processes(record: &SandboxRecord) -> Result<(), BackendError> {
    let Some((process, pidfd)) = record.living() else {
        return Ok(());
    };
    if process::kill(pidfd.as_fd(), CAGE_KILL_TIMEOUT) {
        return Ok(());
    }
    Err(BackendError::failed(
        format!("end process {}", process.pid),
        io::Error::from(io::ErrorKind::TimedOut),
    ))
}

fn remove_groups(id: &SandboxId, record: &SandboxRecord) -> Result<(), BackendError> {
    for group in &record.made.groups {
        // What the folder says is believed only for groups that carry this sandbox's name.
        if group.file_name().and_then(|name| name.to_str()) == Some(id.as_str()) {
            remove_group(group).map_err(|source| {
                BackendError::failed(format!("remove the cgroup {}", group.display()), source)
            })?;
        }
    }
    Ok(())
}

/// A group stays busy for a moment after its last process is gone. A process that never got as far
/// as being written down may still be in it; it is ours by the group's name.
fn remove_group(group: &Path) -> io::Result<()> {
    let deadline = Instant::now() + CAGE_KILL_TIMEOUT;
    loop {
        match fs::remove_dir(group) {
            Err(error) if error.raw_os_error() == Some(16) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => return other,
        }
        if Instant::now() > deadline {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        // Only when the kernel has said that somebody is in it, which is rare.
        kill_members(group);
        thread::sleep(Duration::from_millis(2));
    }
}

fn kill_members(group: &Path) {
    let Ok(members) = fs::read_to_string(group.join("cgroup.procs")) else {
        return;
    };
    for pid in members.lines().filter_map(|line| line.parse().ok()) {
        let Some(pid) = rustix::process::Pid::from_raw(pid) else {
            continue;
        };
        let flags = rustix::process::PidfdFlags::empty();
        let Ok(pidfd) = rustix::process::pidfd_open(pid, flags) else {
            continue;
        };
        // Read again with the process held: the number may have passed on in between.
        let still = fs::read_to_string(group.join("cgroup.procs"))
            .is_ok_and(|members| members.lines().any(|line| line == pid.to_string()));
        if still {
            let _ = rustix::process::pidfd_send_signal(&pidfd, rustix::process::Signal::KILL);
            process::reap(pidfd.as_fd());
        }
    }
}
