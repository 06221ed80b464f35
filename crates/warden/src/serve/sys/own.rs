//! What the warden sets on itself, and descriptors that it was started with.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Children inherit what is ignored, so everything is as a fresh process has it. SIGPIPE stays
/// ignored for ourselves and is put back for commands.
pub(crate) fn uncatch_signals() {
    for signal in 1..libc::SIGRTMIN() {
        if ![libc::SIGKILL, libc::SIGSTOP, libc::SIGPIPE].contains(&signal) {
            // SAFETY: SIG_DFL is a valid disposition for each of these, and no handler of ours is
            // replaced because we have none.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Takes ownership of a descriptor number from the command line.
///
/// Only descriptors that nothing in this process can own are accepted: the standard three are
/// refused, and the caller does this before it opens anything.
pub(crate) fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD only looks the number up.
    let open = unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
    if fd <= 2 || !open {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: it is open, and called before anything else in this process opened a descriptor, so
    // it was inherited and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
