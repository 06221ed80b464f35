//! Signal against a daemon on loopback.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed"
)]

mod conformance;
mod daemon;
mod full_disk;
mod hostile;
mod inbound;
mod lab;
mod leaving;
mod outbound;
mod presses;
mod real_daemon;
