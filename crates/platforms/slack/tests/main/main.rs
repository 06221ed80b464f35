//! Slack against servers on loopback.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed"
)]

mod conformance;
mod events_api;
mod files;
mod full_disk;
mod hostile;
mod inbound;
mod lab;
mod outbound;
mod presses;
mod reconnects;
mod sweeps;
mod vendors;
