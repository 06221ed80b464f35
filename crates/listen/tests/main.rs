//! Ports under half-open connections, with real sockets on loopback.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod exhaustion;
mod half_open;
mod lab;
