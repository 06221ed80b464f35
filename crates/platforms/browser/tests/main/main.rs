//! The chat in the browser, against its store.

#![forbid(unsafe_code)]
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed"
)]

mod conformance;
mod talking;
