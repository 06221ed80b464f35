//! Takes secrets out of whatever leaves: replies, tool output, logs.
//!
//! One pass from left to right finds two kinds of things. *Known values* are the secrets the
//! configuration holds; they are looked for as they are and in the forms a command would print them
//! in ([`Redactor::new`] lists them). *Shapes* are what keys look like when nobody told us about
//! them: vendor prefixes, headers, private keys, passwords in URLs, assignments. What was recognised
//! once is gone from the rest of that text as well, and from a text given whole everywhere.
//!
//! A filter over every three bytes decides whether a place deserves a closer look, so that ordinary
//! text costs about a memory access per byte. Keys that begin in no known way are looked for where a
//! long run of their characters begins. Each rule sees a bounded window ahead of its place and
//! a few bytes behind it and nothing else. That makes the result independent of how a stream was cut
//! into chunks: whole text and stream run the same code.
//!
//! This is a net for accidents. A program that wants to smuggle a value out can always spell it in a
//! way nobody foresaw; what keeps it from having the value is the sandbox, not this crate.

#![forbid(unsafe_code)]

mod byte_class;
mod filter;
mod forms;
mod learned;
mod long_runs;
mod redacted;
mod redactor;
mod rules;
mod secret_matcher;
mod stream;
mod value_index;
mod window;

pub use redacted::{Redacted, SpokenText};
pub use redactor::{Redactor, RedactorSettings};
pub use stream::StreamRedactor;

/// What stands where a secret stood.
pub const MASK: &str = "[redacted]";
