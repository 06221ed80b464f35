//! The seam, with platforms that are made up.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics is a test that failed"
)]

mod lost_events;
