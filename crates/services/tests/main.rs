//! The services against servers of our own that speak the real shapes.

#![allow(clippy::unwrap_used, reason = "a test may end by panicking")]
#![forbid(unsafe_code)]

mod media;
mod origin;
mod search;
