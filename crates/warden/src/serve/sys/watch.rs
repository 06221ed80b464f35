//! Descriptors that the event loop waits for.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

use super::SignalReader;

/// A descriptor of ours, in the event loop.
pub(crate) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` refers to the same open description for as long as it lives.
    Ok(unsafe { AsyncFd::register(fd) }?)
}

pub(crate) fn watch_signals(signals: SignalReader) -> io::Result<AsyncFd<SignalReader>> {
    // SAFETY: `SignalReader` holds one `OwnedFd` and never replaces it.
    Ok(unsafe { AsyncFd::register(signals) }?)
}
