//! The Daytona backend against a service of our own, which speaks as the provider documents it and
//! runs what it is asked to run. That it is no mirror of our client is shown by the provider's own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and skips by saying so"
)]

mod conformance;
mod crash;
mod lab;
mod life;
mod links;
mod server;
mod troubles;
mod vendor;
