//! The docker backend on a real engine.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and skips by saying so"
)]

mod conformance;
mod disk_use;
mod engine;
mod far;
mod lab;
mod life;
mod limits;
mod live_use;
mod moments;
mod podman;
mod retold;
mod rootless;
mod seal;
