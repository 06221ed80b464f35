//! The singularity backend with a real runtime.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and skips by saying so"
)]

mod attack;
mod conformance;
mod crash;
mod images;
mod lab;
mod life;
mod limits;
mod registry;
mod seal;
