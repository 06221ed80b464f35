//! Discord against servers on loopback.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed"
)]

mod commands;
mod conformance;
mod files;
mod full_disk;
mod histories;
mod hostile;
mod inbound;
mod lab;
mod outbound;
mod presses;
mod sessions;
mod threads;
mod vendor_client;
