//! The modal backend against a Modal of our own, which Modal's own client drives too.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and skips by saying so"
)]

mod conformance;
mod faults;
mod lab;
mod life;
mod service;
mod vendor;
