//! A mount of one file through which nobody writes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

const EMPTY_PATH: &std::ffi::CStr = c"";

/// Returns the same file, reached through a mount of its own that is read-only and in no folder. Whoever finds
/// it by that mount (`/proc/self/exe` of a process that executes it) can neither write it nor change its
/// mode, also where the file is theirs. Needs root's rights.
pub(crate) fn read_only_mount_of(file: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let clone = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC;
    let at_file = clone | libc::AT_EMPTY_PATH.cast_unsigned();
    // SAFETY: plain integers and a C string that outlives the call in, a new descriptor or -1 out.
    let made = unsafe {
        libc::syscall(
            libc::SYS_open_tree,
            file.as_raw_fd(),
            EMPTY_PATH.as_ptr(),
            at_file,
        )
    };
    let raw = RawFd::try_from(made).map_err(io::Error::other)?;
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: checked above; the kernel has just made it and nobody else owns it.
    let mount = unsafe { OwnedFd::from_raw_fd(raw) };
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path is a C string and the struct is of the size given; both outlive the call.
    let set = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            EMPTY_PATH.as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            std::mem::size_of::<libc::mount_attr>(),
        )
    };
    match set {
        0 => Ok(mount),
        _ => Err(io::Error::last_os_error()),
    }
}
