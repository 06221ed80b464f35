//! What a warden answers. To the gateway all of it is hearsay: data, never a decision.

use std::time::Duration;

use hermetic_types::{HolderEpoch, RunId};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::ByteString;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WardenReply {
    Done,
    Runs(Vec<RunSummary>),
    Metadata(FileMetadata),
    Resolved(ResolvedName),
    Entries(Vec<FolderEntry>),
    Listening(ListenReply),
    Info(WardenInfo),
    /// To [`Hold`](super::WardenRequest::Hold) alone: a later holder was greeted, by this epoch.
    HeldBy(HolderEpoch),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    pub status: ExitState,
    /// Set when it did not end by itself.
    pub cut: Option<CutReason>,
    pub usage: CommandUsage,
    /// The kernel ended something in this sandbox for want of memory while the command ran.
    pub killed_for_memory: bool,
    /// Processes it left running in the background.
    pub leftovers: u32,
    /// Persistent shell only: where it is now.
    pub cwd: Option<ByteString>,
    /// Persistent shell only: the command met a fresh shell.
    pub shell_fresh: bool,
    /// Persistent shell only: the next command meets a fresh shell.
    pub shell_lost: Option<ShellLost>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitState {
    Exited(i32),
    Signalled(i32),
    /// Its supervisor was killed; all that is known is that nothing of it is left.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CutReason {
    TimedOut,
    /// By request, or because the caller went away.
    Killed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShellLost {
    /// The command ended the shell itself: `exit`, `exec`, `set -e`.
    Exited,
    /// Something killed it.
    Killed,
    /// It did not come back after an interrupt, so it was killed.
    Stuck,
}

/// Of the command and those of its children that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandUsage {
    pub user: Duration,
    pub system: Duration,
    pub max_rss_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    pub id: RunId,
    pub argv: Vec<ByteString>,
    pub pid: Option<u32>,
    pub detached: bool,
    pub age: Duration,
    /// Bytes of output so far.
    pub output: u64,
    /// Absent while it runs.
    pub ended: Option<CommandEnd>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMetadata {
    pub kind: FileKind,
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Seconds since the epoch.
    pub modified: i64,
    pub modified_nanos: u32,
    pub inode: u64,
    pub uid: u32,
    pub gid: u32,
}

/// Tells whether a file is still the one it was: writing to it changes the time, replacing it the
/// inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    pub inode: u64,
    pub size: u64,
    pub modified: i64,
    pub modified_nanos: u32,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedName {
    /// Absolute, without symlinks as far as it exists.
    pub path: ByteString,
    /// How many names at its end do not exist.
    pub missing: u32,
    /// Of what is there.
    pub metadata: Option<FileMetadata>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileKind {
    File,
    Directory,
    Symlink,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderEntry {
    pub name: ByteString,
    pub kind: FileKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenReply {
    /// The port that was picked, for TCP.
    pub port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WardenInfo {
    pub version: u16,
    pub pid: u32,
    pub rss_bytes: u64,
    pub uptime: Duration,
    pub clients: u32,
    pub runs: u32,
    pub shells: u32,
    pub listeners: u32,
}

impl FileMetadata {
    pub fn stamp(&self) -> FileVersion {
        FileVersion {
            inode: self.inode,
            size: self.size,
            modified: self.modified,
            modified_nanos: self.modified_nanos,
        }
    }
}

/// Why the warden did not do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("{text}")]
pub struct WardenFailure {
    pub kind: FailureKind,
    /// The system's word for it, where there is one.
    pub errno: Option<i32>,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// The working directory cannot be entered.
    WorkingDirectory,
    /// The program is not there.
    ProgramNotFound,
    /// The program is there and cannot be started.
    ProgramNotStarted,
    /// bash is needed and missing.
    NoShell,
    /// The named shell is busy with another command.
    ShellBusy,
    NoSuchRun,
    /// That run id is taken.
    RunExists,
    /// Another caller attached to the run.
    Superseded,
    /// A path, or what it leads to, is not acceptable.
    Refused,
    /// The file is not the one that was to be replaced.
    Changed,
    /// A system call failed.
    System,
    /// Too many at once.
    TooMany,
    /// The request makes no sense.
    BadRequest,
}
