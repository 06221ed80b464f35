//! What backends on this machine share: the warden program as something to execute, and processes
//! that are told from others that took their number.

mod process;
mod program;

pub use process::{Process, collect, has_ended, kill, reap, wait_for_end};
pub use program::Program;
