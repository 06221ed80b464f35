//! The program as somebody at a keyboard meets it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod configuration;
mod gateway;
mod hermetic;
mod surface;
