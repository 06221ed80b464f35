//! The native sandbox, attacked from inside and killed from outside, as root and as a plain user.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and speaks to a terminal"
)]

mod brim;
mod conformance;
mod container_groups;
mod crash;
mod escape;
mod exit;
mod lab;
mod leaks;
mod life;
mod limits;
mod live_use;
mod old_kernel;
mod quota;
mod trees;
mod work;
