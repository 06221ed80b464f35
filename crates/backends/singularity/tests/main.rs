//! The singularity backend with a real runtime.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and skips by saying so"
)]

mod conformance;
mod crash;
mod lab;
mod life;
mod seal;
