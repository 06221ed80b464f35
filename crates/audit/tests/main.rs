//! One binary for all stories about the record.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod bounds;
mod crash;
mod lab;
mod seals;
mod tampering;
mod witnesses;
mod writers;
