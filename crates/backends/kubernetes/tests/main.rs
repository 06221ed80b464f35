//! The kubernetes backend against a cluster of our own, which other people's clients drive too.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and skips by saying so"
)]

mod conformance;
mod faults;
mod figures;
mod front;
mod lab;
mod life;
mod real;
mod seal;
mod server;
mod vendor;
