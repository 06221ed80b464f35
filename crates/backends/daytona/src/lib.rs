//! Sandboxes at Daytona, over its REST and toolbox API.
//!
//! Two programs share this crate. The gateway (`host`) makes, finds and ends sandboxes by the
//! provider's API, places the embedded program by its toolbox and keeps one terminal open, which is
//! the only byte stream the toolbox has. In the sandbox (`inside`) the program sits at the end of
//! that terminal and carries the bytes on to the warden's socket.
//!
//! The provider is the only memory: a sandbox's labels say whose it is and for which conversation,
//! its disk holds the files, stopping it keeps them. What carries no label of this installation is
//! never touched. A gateway that never comes back leaves no bill: the provider stops what nobody
//! uses, and deletes what was not to be kept.

#![forbid(unsafe_code)]

mod frame;
#[cfg(feature = "host")]
mod host;
#[cfg(feature = "inside")]
pub mod inside;

#[cfg(feature = "host")]
pub use host::{DaytonaBackend, DaytonaConfig, DaytonaTimeouts, DiskWish};
