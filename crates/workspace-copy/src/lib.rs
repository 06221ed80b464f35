//! Keeps a copy of a workspace, so that a turn can be taken back.
//!
//! It runs inside the sandbox, as one process of the program that every sandbox has: a script needs a dozen
//! processes for the same, and every turn that may write waits for it. It can do nothing that a command there
//! could not. The copy lies in a folder of the workspace: on the same file system, so that blocks can be shared
//! and bringing it back is a rename.

#![forbid(unsafe_code)]

mod attributes;
mod duplicate;
mod keep;
mod survey;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

pub use keep::{CopyOutcome, CopyRequest, keep};

/// The program's first word that means this.
pub const ROLE: &str = "keep-workspace";

/// sysexits(3): the command line makes no sense.
const USAGE: u8 = 64;

/// Keeps the folder it is started in. Words: the workspace's path, the number of the turn, the most kilobytes, the
/// most entries.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(request) = CopyRequest::of_words(words) else {
        return ExitCode::from(USAGE);
    };
    ExitCode::from(keep(Path::new("."), &request).code())
}
