//! The calls in the gateway that the compiler cannot check.

pub(crate) mod quota;
pub(crate) mod read_only;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor that becomes readable: a pidfd does when its process ends.
pub(crate) fn readable(fd: Arc<OwnedFd>) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    // SAFETY: the runtime needs the same open descriptor for as long as it is registered. An
    // `OwnedFd` behind an `Arc` can neither be closed nor replaced while the `AsyncFd` holds it.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
}
