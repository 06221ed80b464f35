//! Matrix against Synapse, which nobody here wrote. Where there is none, every test says so.

#![expect(
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed, and a skip is said aloud"
)]

mod conformance;
mod faults;
mod files;
mod histories;
mod inbound;
mod lab;
mod outbound;
mod rooms;
#[cfg(feature = "e2ee")]
mod sealed;
mod sessions;
mod stock_limits;
