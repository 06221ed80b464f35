//! What backends on this machine share: the warden program as something to execute, processes that
//! are told from others that took their number, what those use and what they hold that no folder shows, and
//! trees of files that are removed whatever is in them.

mod blame;
pub mod held;
mod process_use;
mod program;
mod usage;

pub use blame::UsageBlame;
pub use hermetic_warden::machine::{
    ProcessHandle, end, has_ended, kill, reap, remove, wait_for_end,
};
pub use process_use::{cpu_time, describe_processes, process_tree, resident_bytes};
pub use program::InsideProgram;
pub use usage::DiskUsage;
