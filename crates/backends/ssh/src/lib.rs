//! A remote host over one kept ssh connection. No boundary: commands there are judged.
//!
//! Two programs share this crate. The gateway (`host`) keeps the connection, by the user's own `ssh`
//! with his configuration, keys and agent, and places the embedded program in a private folder of
//! the remote account. There (`remote`) it looks after the wardens of this installation: one order
//! on its stdin, one answer on its stdout, and after some answers the bytes of a warden's link.

#![forbid(unsafe_code)]

#[cfg(feature = "host")]
mod host;
mod order;
#[cfg(feature = "remote")]
pub mod remote;

#[cfg(feature = "host")]
pub use host::{SshBackend, SshConfig};
