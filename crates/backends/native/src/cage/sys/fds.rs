//! Descriptors.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Closes everything above stderr but these.
pub(crate) fn close_all_but(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut numbers: Vec<u32> = kept
        .iter()
        .filter_map(|fd| u32::try_from(fd.as_raw_fd()).ok())
        .collect();
    numbers.sort_unstable();
    let mut from = 3;
    for number in numbers {
        if number > from {
            close_range(from, number - 1)?;
        }
        from = from.max(number + 1);
    }
    close_range(from, u32::MAX)
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: the callers own no descriptor in the range beyond what they mean to lose: this runs
    // before anything is opened, and once more when only `kept` is used from there on.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if closed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
