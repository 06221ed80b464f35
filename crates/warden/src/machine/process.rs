//! A process that can be told from another that took its number.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessHandle {
    pub pid: i32,
    /// In clock ticks since boot.
    start: u64,
    boot: String,
}

impl ProcessHandle {
    pub fn observe(pid: i32) -> Option<Self> {
        Some(Self {
            pid,
            start: start_time(pid)?,
            boot: boot()?,
        })
    }

    /// Whether it ran on this machine since it was started. Of one that did not, nobody here can tell
    /// whether it still runs.
    pub fn is_of_this_boot(&self) -> bool {
        boot().is_some_and(|boot| boot == self.boot)
    }

    /// A descriptor of exactly this process, if it still runs.
    pub fn open(&self) -> Option<OwnedFd> {
        if !self.is_of_this_boot() {
            return None;
        }
        let pidfd = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Checked after opening: from here on the number cannot change its owner unnoticed.
        let same = start_time(self.pid)? == self.start && !has_ended(pidfd.as_fd());
        same.then_some(pidfd)
    }
}

pub fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    wait_for_end(pidfd, Duration::ZERO)
}

/// Kills and waits. False when it is not seen to be gone in time.
///
/// A pid namespace's first process ends only after all others in it have: seeing it gone is seeing
/// the sandbox empty.
pub fn kill(pidfd: BorrowedFd<'_>, patience: Duration) -> bool {
    let _ = pidfd_send_signal(pidfd, Signal::KILL);
    let gone = wait_for_end(pidfd, patience);
    reap(pidfd);
    gone
}

/// Collects it, where it is a child of ours; otherwise that is its parent's to do.
pub fn reap(pidfd: BorrowedFd<'_>) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let _ = waitid(WaitId::PidFd(pidfd), options);
}

pub fn wait_for_end(pidfd: BorrowedFd<'_>, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        let mut fds = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            // A child of somebody else's in this process has ended.
            Err(Errno::INTR) => {}
            polled => return matches!(polled, Ok(1..)),
        }
    }
}

fn start_time(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets; what follows the last bracket is well-formed.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}
