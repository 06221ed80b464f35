//! The store on a disk that fills, fails and loses power.

#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed, and one that is skipped says so"
)]

mod disk;
mod every_write;
mod full_disk;
mod owners;
mod postgres;
#[path = "../postgres_server/mod.rs"]
mod postgres_server;
mod power_cut;
mod tls;
