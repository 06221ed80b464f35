//! The tools as a model would use them, in real sandboxes.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::panic,
    reason = "a test may end by panicking and says aloud what it skips"
)]
#![forbid(unsafe_code)]

mod background;
mod code;
mod files;
mod hour;
mod lab;
mod mcp;
mod places;
mod room;
mod shell;
mod terminal;
mod web;
