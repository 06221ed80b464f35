//! WhatsApp against servers on loopback.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed"
)]

mod bridge;
mod conformance;
mod delivery;
mod files;
mod full_disk;
mod inbound;
mod intake;
mod lab;
mod outbound;
mod people;
mod pywa;
