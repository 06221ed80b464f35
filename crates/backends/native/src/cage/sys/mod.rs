//! The few system calls that no safe crate wraps. Nothing else in this crate is unsafe.

pub(crate) mod clone;
pub(crate) mod doors;
pub(crate) mod fds;
pub(crate) mod loopback;
pub(crate) mod mounts;
pub(crate) mod signals;
