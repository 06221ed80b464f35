//! Signals as something to read, so that the one thread of the warden never runs a handler.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A descriptor from which blocked signals are read.
pub(crate) struct SignalReader(OwnedFd);

/// The signals that a warden reacts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrivedSignal {
    ChildChanged,
    AskedToStop,
}

impl SignalReader {
    /// Blocks what it will report. Children start with a clean mask of their own.
    pub(crate) fn take_over() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set, sigaddset and sigprocmask get a valid one, and
        // signalfd returns a new descriptor that nobody else owns.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT] {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// The next one that arrived; `WouldBlock` when there is none.
    pub(crate) fn read(&self) -> io::Result<ArrivedSignal> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer is exactly one siginfo long, and the kernel writes whole ones only.
        let signal = unsafe {
            let read = libc::read(self.0.as_raw_fd(), info.as_mut_ptr().cast(), size);
            if read < 0 {
                return Err(io::Error::last_os_error());
            }
            if read.unsigned_abs() != size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            info.assume_init().ssi_signo
        };
        Ok(if signal == libc::SIGCHLD.unsigned_abs() {
            ArrivedSignal::ChildChanged
        } else {
            ArrivedSignal::AskedToStop
        })
    }
}

impl AsFd for SignalReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for SignalReader {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}
