//! Into new namespaces, by a child or by ourselves.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use rustix::thread::UnshareFlags;

/// The two sides of a clone: the process that goes on outside, and the new one inside.
pub(crate) enum CloneSide {
    Outside { pidfd: OwnedFd },
    Inside,
}

/// Forks into the namespaces named. The child is our sibling: its parent is whoever started us, so
/// that the gateway, and not a process of ours that stays around, sees it end.
pub(crate) fn clone_into(namespaces: UnshareFlags) -> io::Result<CloneSide> {
    let mut pidfd: RawFd = -1;
    // The exit signal must be zero here: with CLONE_PARENT the child takes over ours.
    let flags = libc::CLONE_PARENT as u64 | libc::CLONE_PIDFD as u64 | u64::from(namespaces.bits());
    // SAFETY: all-zero is a valid clone_args: no stack, no tid pointers, no signal.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = flags;
    args.pidfd = &raw mut pidfd as u64;
    // SAFETY: without CLONE_VM this is a fork: the child gets a copy of our memory and returns
    // here on its copy of the stack. We are single-threaded, so no lock can be held by a thread
    // that does not exist in the child. `args` and `pidfd` outlive the call.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut args,
            std::mem::size_of::<libc::clone_args>(),
        )
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(CloneSide::Inside),
        _ => Ok(CloneSide::Outside {
            // SAFETY: on success the kernel has stored a new descriptor that nobody else owns.
            pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) },
        }),
    }
}

pub(crate) fn unshare(namespace: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: no CLONE_FILES among our callers' flags, so no descriptor changes its meaning.
    unsafe { rustix::thread::unshare_unsafe(namespace) }
}
