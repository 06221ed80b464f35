//! May this command run? Pure decisions: no clock, no I/O, no memory between two calls.

#![forbid(unsafe_code)]

mod verdict;

pub use verdict::{Cleared, Grounds};
