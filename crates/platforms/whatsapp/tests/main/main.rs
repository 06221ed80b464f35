//! WhatsApp against servers on loopback.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed"
)]

mod conformance;
mod lab;
