//! Pages that are given back, and pages that are better kept.

use std::ffi::c_void;

unsafe extern "C" {
    /// The first and the last byte of what is mapped read-only from the program's file, as the
    /// linker names them.
    static __executable_start: u8;
    static etext: u8;
}

/// Code is mapped sixteen pages at a time around each one that is touched, so a start leaves much
/// more of it resident than serving needs. What is needed is mapped again when it is.
pub fn let_go_of_startup_code() {
    let page = rustix::param::page_size();
    let from = (&raw const __executable_start)
        .addr()
        .next_multiple_of(page);
    let to = (&raw const etext).addr() / page * page;
    if from < to {
        // SAFETY: the range lies within the program's own mapping of its file, is never written
        // (tables that are relocated lie behind it) and is read again from that file on the next
        // touch. A kernel that refuses changes nothing.
        unsafe {
            libc::madvise(
                std::ptr::with_exposed_provenance_mut::<c_void>(from),
                to - from,
                libc::MADV_DONTNEED,
            );
        }
    }
}

/// What was allocated for a start and freed since stays with the C library, in pieces between what lives on.
/// Asked for it, the library gives whole pages of it back to the kernel.
pub fn give_back_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the allocator takes its own locks; nothing that is in use is moved or freed.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Every frame is a piece of memory of its own, and one that carries much is 128 KiB: as it comes,
/// the C library asks the kernel for each and gives it back after it, cleared and charged anew.
#[cfg(feature = "serve")]
pub(crate) fn keep_freed_frames() {
    #[cfg(target_env = "gnu")]
    {
        const KEPT: i32 = 512 << 10;
        // SAFETY: two numbers for the allocator, before there is a second thread.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
        }
    }
}
