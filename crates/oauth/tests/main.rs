//! Logins against an authorization server of our own that can be made to lie.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed"
)]

mod authority;
mod login;
mod renewal;
