//! What stays outside: nothing, or one small process where the sandbox must die with its creator or
//! stands in an outer container, and one more outside that container.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::control_socket::ControlSocket;
use crate::plan::{CagePlan, CageReport};

/// Reports pid 1 and leaves it to the gateway, or stands by it when the
/// sandbox is tied.
///
/// The guard is not part of the sandbox, which can neither see nor signal it: the promise to die
/// with the creator does not rest on the warden's good will.
pub(crate) fn outside(
    control: &ControlSocket,
    pidfd: &OwnedFd,
    plan: &CagePlan,
    lock: OwnedFd,
) -> ExitCode {
    // The gateway first: our share of the lock goes only when it can know of the new process, which
    // keeps a share of its own until that is written down.
    if control.send(&CageReport::Born, &[pidfd.as_fd()]).is_err() {
        let _ = pidfd_send_signal(pidfd, Signal::KILL);
        return ExitCode::from(super::ABANDONED);
    }
    drop(lock);
    if plan.in_container {
        keep_one_power();
    }
    match (plan.tied, plan.in_container) {
        (true, _) => stand_by(control, pidfd),
        // In an outer container this process is what that container lives by: when it ends, the
        // container does.
        (false, true) => wait_for(pidfd.as_fd()),
        (false, false) => {}
    }
    ExitCode::SUCCESS
}

/// Outside an outer container: ends it when the process that tends its cage has ended. Both come as
/// descriptors, the tender on stdin and the outer container's first process on stdout, and neither can be
/// mistaken for another.
pub(crate) fn keep_container() -> ExitCode {
    // Not to be stopped with the gateway, from whose terminal or session a signal may come.
    let _ = rustix::process::setsid();
    wait_for(rustix::stdio::stdin());
    match pidfd_send_signal(rustix::stdio::stdout(), Signal::KILL) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// As root the sandbox is somebody else, and ending it takes this.
fn keep_one_power() {
    let kill = CapabilitySet::KILL;
    let with = |permitted: CapabilitySet| CapabilitySets {
        effective: permitted,
        permitted,
        inheritable: CapabilitySet::empty(),
    };
    if set_capabilities(None, with(kill)).is_err() {
        // A plain user never had it and does not need it.
        let _ = set_capabilities(None, with(CapabilitySet::empty()));
    }
}

fn wait_for(pidfd: BorrowedFd<'_>) {
    loop {
        let mut fds = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
        if poll(&mut fds, None).is_ok() {
            return;
        }
    }
}

fn stand_by(control: &ControlSocket, pidfd: &OwnedFd) {
    loop {
        // Only the hang-up matters: what arrives on the control socket is for pid 1.
        let mut fds = [
            PollFd::new(control, PollFlags::RDHUP),
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
