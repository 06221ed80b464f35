//! Raising `lo`, which a new network namespace has but keeps down.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub(crate) fn raise() -> io::Result<()> {
    // SAFETY: plain integers in, a new descriptor or -1 out.
    let raw = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: checked above; nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };

    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo\0") {
        // A C character has a sign on x86_64 and none on aarch64.
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    let up = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(io::Error::other)?;
    request.ifr_ifru.ifru_flags = up;
    // SAFETY: SIOCSIFFLAGS reads one ifreq, which `request` is.
    let set = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw mut request,
        )
    };
    if set == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
