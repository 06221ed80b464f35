//! Looks through files, by what they hold or by what they are called.
//!
//! The looking happens inside the sandbox, in a process of its own that is started like any command
//! (`walk`, built into the one program that every sandbox has). So it is bounded by the sandbox's own
//! limits, can be ended like any command, and cannot see more than one could. Outside there is a
//! [`SearchQuery`] to send and [`RecordParser`] to read, which trust nothing of what comes.

#![forbid(unsafe_code)]

mod query;
mod record;
#[cfg(feature = "walk")]
mod walk;

pub use query::{SearchQuery, SearchTarget, ShownMatches};
pub use record::{MalformedRecord, MatchRow, RecordParser, SearchRecord};
#[cfg(feature = "walk")]
pub use walk::main;

/// The program's first word that means this.
pub const ROLE: &str = "search";
