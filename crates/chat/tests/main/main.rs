//! The platforms against servers on loopback.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed"
)]

mod lab;
mod telegram_hook;
mod telegram_in;
mod telegram_out;
mod telegram_test_api;
mod webhook;
