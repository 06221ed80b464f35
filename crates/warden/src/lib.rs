//! The small program inside every sandbox, and the protocol to it.

#[cfg(feature = "serve")]
pub mod connect;
#[cfg(feature = "serve")]
pub mod serve;
