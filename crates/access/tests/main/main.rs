//! Who gets in, who does not, and what pairing stands against.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed"
)]

mod door;
mod lab;
mod pairing;
