//! The real program, as a plain process, driven by the real client.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    reason = "a test stops at the first surprise, and says aloud what it skips"
)]

mod ending;
mod files;
mod holders;
mod lab;
mod links;
mod protocol;
mod runs;
mod shell;
mod stdio;
