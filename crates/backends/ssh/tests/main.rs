//! The ssh backend against a real sshd on loopback.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "these are tests"
)]

mod conformance;
mod drops;
mod keys;
mod kills;
mod lab;
mod life;
mod own;
mod placing;
mod plain;
