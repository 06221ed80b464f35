//! What stays outside: nothing, or one small process where the sandbox must die with its creator.

use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};

use crate::cord::Cord;
use crate::plan::{Plan, Report};

/// Reports pid 1 and leaves it to the gateway, or stands by it when the
/// sandbox is tied.
///
/// The guard is not part of the sandbox, which can neither see nor signal it: the promise to die
/// with the creator does not rest on the warden's good will.
pub(crate) fn outside(
    cord: &Cord,
    pid: i32,
    pidfd: &OwnedFd,
    plan: &Plan,
    lock: OwnedFd,
) -> ExitCode {
    if cord.send(&Report::Born { pid }, &[pidfd.as_fd()]).is_err() {
        let _ = pidfd_send_signal(pidfd, Signal::KILL);
        return ExitCode::from(super::ABANDONED);
    }
    drop(lock);
    if plan.tied {
        stand_by(cord, pidfd);
    }
    ExitCode::SUCCESS
}

fn stand_by(cord: &Cord, pidfd: &OwnedFd) {
    loop {
        // Only the hang-up matters: what arrives on the cord is for pid 1.
        let mut fds = [
            PollFd::new(cord, PollFlags::RDHUP),
            PollFd::new(pidfd, PollFlags::IN),
        ];
        if poll(&mut fds, None).is_err() {
            continue;
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        if !fds[0].revents().is_empty() {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
            return;
        }
    }
}
