//! What is done to a warden from beside it, on the machine it runs on: telling its process from
//! another that took its number, ending it with all that hangs below it, removing what its commands
//! wrote.

mod end;
mod process;
mod remove;

pub use end::end;
pub use process::{ProcessHandle, has_ended, kill, reap, wait_for_end};
pub use remove::remove;
