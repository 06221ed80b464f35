//! Changing what a mount allows.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(crate) const NO_SUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(crate) const NO_DEV: u64 = libc::MOUNT_ATTR_NODEV;
pub(crate) const NO_EXEC: u64 = libc::MOUNT_ATTR_NOEXEC;

/// How far below the path a change reaches.
#[derive(Clone, Copy)]
pub(crate) enum MountDepth {
    This,
    Tree,
}

/// Adds restrictions and takes none away, so that flags locked by an outer namespace stay.
pub(crate) fn restrict(path: &Path, restrictions: u64, reach: MountDepth) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let attributes = libc::mount_attr {
        attr_set: restrictions,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let recursive = match reach {
        MountDepth::This => 0,
        MountDepth::Tree => libc::AT_RECURSIVE,
    };
    // SAFETY: the path is a C string and the struct is of the size given; both outlive the call.
    let set = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            recursive | libc::AT_SYMLINK_NOFOLLOW,
            &raw const attributes,
            std::mem::size_of::<libc::mount_attr>(),
        )
    };
    if set == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
