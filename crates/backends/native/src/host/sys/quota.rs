//! Project quotas of a file system, by the kernel's own calls: no crate of ours wraps them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// What a project uses and may use. Blocks are of a kilobyte; zero is no limit.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProjectBlock {
    pub(crate) block_limit: u64,
    block_soft: u64,
    pub(crate) bytes: u64,
    pub(crate) inode_limit: u64,
    inode_soft: u64,
    pub(crate) inodes: u64,
    block_time: u64,
    inode_time: u64,
    valid: u32,
    padding: u32,
}

/// The kernel's `struct fsxattr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct FileAttributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    copy_extent_size: u32,
    padding: [u8; 8],
}

/// The kernel's `struct fs_quota_statv`, of which two fields are of use here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct QuotaState {
    version: i8,
    padding: u8,
    flags: u16,
    rest: [u32; 39],
}

const PROJECTS: u32 = 2;
const GET: u32 = 0x80_0007;
const SET: u32 = 0x80_0008;
const GET_STATE: u32 = ((b'X' as u32) << 8) + 8;
const STATE_VERSION: i8 = 1;
const PROJECT_LIMITS_ENFORCED: u16 = 1 << 5;
/// Which fields of a [`ProjectBlock`] are to be set: both limits.
const LIMITS: u32 = 1 | 4;

const FS_IOC_FSGETXATTR: libc::c_ulong = 0x801c_581f;
const FS_IOC_FSSETXATTR: libc::c_ulong = 0x401c_5820;
/// What is made in such a folder belongs to the folder's project.
const INHERITED: u32 = 0x200;

/// Whether the file system keeps projects to their limits.
pub(crate) fn enforces_projects(on: BorrowedFd<'_>) -> io::Result<bool> {
    let mut state = QuotaState {
        version: STATE_VERSION,
        padding: 0,
        flags: 0,
        rest: [0; 39],
    };
    // SAFETY: for this command the kernel reads the version and fills one `fs_quota_statv`, whose size
    // and layout `QuotaState` has; it outlives the call.
    unsafe { control(on, GET_STATE, 0, (&raw mut state).cast()) }?;
    Ok(state.flags & PROJECT_LIMITS_ENFORCED != 0)
}

/// Nothing of a project that nobody ever used.
pub(crate) fn project(on: BorrowedFd<'_>, number: u32) -> io::Result<ProjectBlock> {
    let mut block = ProjectBlock::default();
    // SAFETY: for this command the kernel fills one `if_dqblk`, whose size and layout `ProjectBlock`
    // has; it outlives the call.
    let asked = unsafe { control(on, GET, number, (&raw mut block).cast()) };
    match asked {
        // XFS has no entry for a project without files.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(ProjectBlock::default()),
        asked => asked.map(|()| block),
    }
}

pub(crate) fn set_limits(
    on: BorrowedFd<'_>,
    number: u32,
    blocks: u64,
    inodes: u64,
) -> io::Result<()> {
    let mut block = ProjectBlock {
        block_limit: blocks,
        inode_limit: inodes,
        valid: LIMITS,
        ..ProjectBlock::default()
    };
    // SAFETY: for this command the kernel reads one `if_dqblk`, whose size and layout `ProjectBlock`
    // has; it outlives the call.
    unsafe { control(on, SET, number, (&raw mut block).cast()) }
}

/// The project that a file or folder belongs to; zero is none.
pub(crate) fn project_of(file: impl AsFd) -> io::Result<u32> {
    Ok(attributes(file.as_fd())?.project)
}

/// Gives it to a project. What is made in a folder afterwards belongs to that project too.
pub(crate) fn give_to_project(file: impl AsFd, number: u32, is_folder: bool) -> io::Result<()> {
    let file = file.as_fd();
    let mut wanted = attributes(file)?;
    wanted.project = number;
    if is_folder {
        wanted.flags |= INHERITED;
    }
    // SAFETY: the request reads one `fsxattr`, whose size and layout `FileAttributes` has; it outlives
    // the call.
    let set = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FSSETXATTR, &raw const wanted) };
    result(set.into())
}

fn attributes(file: BorrowedFd<'_>) -> io::Result<FileAttributes> {
    let mut found = FileAttributes::default();
    // SAFETY: the request fills one `fsxattr`, whose size and layout `FileAttributes` has; it outlives
    // the call.
    let asked = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FSGETXATTR, &raw mut found) };
    result(asked.into()).map(|()| found)
}

/// # Safety
///
/// `data` points to what the command reads or fills.
unsafe fn control(
    on: BorrowedFd<'_>,
    command: u32,
    number: u32,
    data: *mut libc::c_void,
) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as it is borrowed; for `data` the caller vouches.
    let done = unsafe {
        libc::syscall(
            libc::SYS_quotactl_fd,
            on.as_raw_fd(),
            (command << 8) | PROJECTS,
            number,
            data,
        )
    };
    result(done)
}

fn result(code: libc::c_long) -> io::Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_the_size_that_the_kernel_reads() {
        assert_eq!(size_of::<ProjectBlock>(), 72);
        assert_eq!(size_of::<FileAttributes>(), 28);
        assert_eq!(size_of::<QuotaState>(), 160);
    }
}
