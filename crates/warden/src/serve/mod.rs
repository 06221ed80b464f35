//! The end inside the sandbox.
//!
//! One thread, one loop. Commands run below keepers (`sys/keeper.rs`), output goes out as fast as
//! its reader takes it, and a reader who stalls holds up his own command only. Nothing here decides
//! what may run: that happened outside, before the request was sent.

mod backlog;
mod cli;
mod client;
mod command_streams;
mod cwd_report;
mod files;
mod holder;
mod known_run;
mod life;
mod listen;
mod oom;
mod output;
mod process_tree;
mod pump;
mod run;
mod runs;
mod shell;
mod state;
mod stdin;
mod sys;
mod tree;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

pub use cli::main;
pub use life::serve;

/// What a warden starts with. All of it is owned: nothing is looked up later.
#[derive(Debug)]
pub struct ServeConfig {
    /// A Unix socket that listens already. Where the backend can, it was made outside.
    pub listener: OwnedFd,
    /// A stream that is connected already: the creator's own link.
    pub first: Option<CreatorLink>,
    /// How long to live with nobody connected and nothing asked.
    pub lifetime: Duration,
    /// `memory.events` (cgroup v2) or `memory.oom_control` (v1), opened before it went out of sight.
    pub oom_counter: Option<OwnedFd>,
    /// Whether this is pid 1 of its own pid namespace.
    pub is_init: bool,
    /// The whole environment of every command.
    pub env: Vec<(OsString, OsString)>,
    /// Where commands start that name no directory.
    pub cwd: PathBuf,
    /// End when the `first` stream closes, or the first that is accepted where none was given.
    pub tied: bool,
}

/// The stream of the creator's own link.
#[derive(Debug)]
pub enum CreatorLink {
    Socket(OwnedFd),
    /// One for each direction, as a container's stdin and stdout are.
    Pipes {
        from: OwnedFd,
        to: OwnedFd,
    },
}
