//! The small program inside every sandbox, and the protocol to it.
//!
//! One byte stream leads into a sandbox, whatever its backend, and everything crosses it: commands
//! and their output, files, the tool socket, egress. [`protocol`] says what the bytes mean,
//! [`client`] is the gateway's end and trusts none of them, [`serve`] is the end in the sandbox and
//! [`connect`] lays the stream where a backend can only offer a pair of pipes.
//!
//! `unsafe` is confined to `sys` and `serve/sys`.

#![deny(unsafe_code)]

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "serve")]
pub mod connect;
#[cfg(feature = "machine")]
pub mod machine;
mod mux;
pub mod protocol;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(feature = "stand-in")]
pub mod stand_in;
#[cfg(any(feature = "machine", feature = "serve"))]
pub mod sys;
