//! What the gateway can ask for.

use std::time::Duration;

use hermetic_types::{HolderEpoch, RunId};
use serde::{Deserialize, Serialize};

use super::{ByteString, FileVersion};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WardenRequest {
    Run(RunRequest),
    Shell(ShellRequest),
    Attach(AttachRequest),
    Runs,
    Kill(KillRequest),
    Read(ReadRequest),
    Write(WriteRequest),
    Stat(PathAt),
    Resolve(ResolveRequest),
    ListDir(PathAt),
    MakeDir(PathAt),
    Remove(PathAt),
    Listen(ListenRequest),
    Info,
    /// What is kept of a run's output, for somebody who only looks: nobody loses the run to him.
    Look(AttachRequest),
    /// Whose link this is from here on.
    Hold(HoldRequest),
}

/// Who has the sandbox, by what the caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HoldRequest {
    /// The caller, since this epoch. Whoever has it by a lower one is cut off.
    As(HolderEpoch),
    /// Whoever has it now: the caller only looks in, and goes when that holder does.
    Visit,
}

/// The descriptor on which a command that leads writes the path it ended in.
pub const PLACE: i32 = 63;

/// A command of its own process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRequest {
    pub id: RunId,
    /// The first word is looked up in the command's `PATH` unless it has a slash.
    pub argv: Vec<ByteString>,
    /// The warden's working directory if absent.
    pub cwd: Option<ByteString>,
    /// Set on top of the sandbox's environment.
    pub env: Vec<(ByteString, ByteString)>,
    pub stdin: StdinMode,
    pub output: OutputStreams,
    /// It stands in for the shell of this name: where it says it has ended, on [`PLACE`], is where
    /// that shell is from then on.
    pub leads: Option<String>,
    pub timeout: Option<Duration>,
    /// Goes on when the gateway goes away, and keeps its output (head and tail) meanwhile.
    pub detach: bool,
    pub leftovers: LeftoverPolicy,
    /// From SIGTERM to SIGKILL when it is ended from outside.
    pub grace: Duration,
}

/// A command for the persistent bash of this name, which is started when it is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellRequest {
    pub id: RunId,
    /// 1 to 63 of `a-z0-9-`.
    pub shell: String,
    pub text: ByteString,
    /// Where a shell that has to be started begins. A running one stays where it is.
    pub cwd: Option<ByteString>,
    pub timeout: Option<Duration>,
    /// Goes on when the gateway goes away; otherwise it is interrupted then.
    pub detach: bool,
}

/// Picks up a run again. The newest caller gets the output; an earlier one is told so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachRequest {
    pub id: RunId,
    /// How many bytes of output the caller has already.
    pub from: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillRequest {
    /// The run and everything it started.
    Run(RunId),
    /// The shell, its jobs and all.
    Shell(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StdinMode {
    /// `/dev/null`.
    Empty,
    /// Written while the command runs.
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputStreams {
    /// Two pipes.
    Apart,
    /// One pipe for both, in the order of writing.
    Merged,
    /// A terminal of this size.
    Pty(WindowSize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    pub columns: u16,
    pub rows: u16,
}

/// What becomes of background processes when the command itself has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeftoverPolicy {
    Keep,
    End,
}

/// A path, and the directory it must not lead out of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathAt {
    /// If there, `path` is relative to it and symlinks that lead out of it are refused.
    pub root: Option<ByteString>,
    pub links: SymlinkPolicy,
    pub path: ByteString,
}

/// What becomes of a symlink on the way, or at the end of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SymlinkPolicy {
    Follow,
    /// For a path that was resolved and judged: what it named then is what it names now.
    Refuse,
}

/// Where a path leads, as whoever works in the sandbox would write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveRequest {
    /// Absolute, relative, or beginning with `~/`.
    pub path: ByteString,
    /// A relative one begins where this shell is; without such a shell, where the warden is.
    pub shell: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadRequest {
    pub at: PathAt,
    pub offset: u64,
    /// To the end if absent.
    pub length: Option<u64>,
}

/// The file appears whole or not at all: it is written aside and renamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteRequest {
    pub at: PathAt,
    /// For a file that is new; an old one keeps its mode.
    pub mode: u32,
    /// Missing directories on the way are made.
    pub parents: bool,
    /// The file is replaced only if it is still this one.
    pub replaces: Option<FileVersion>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenRequest {
    /// Chosen by the gateway, so that it knows the listener before the first connection arrives.
    pub listener: u32,
    pub endpoint: ListenEndpoint,
    /// Connections relayed at once; further ones wait in the kernel's queue.
    pub concurrent: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListenEndpoint {
    /// A socket file that only its owner may use.
    Unix(ByteString),
    /// A port on the sandbox's own 127.0.0.1; 0 picks one.
    Tcp(u16),
}

impl RunRequest {
    pub fn new<W: Into<ByteString>>(argv: impl IntoIterator<Item = W>) -> Self {
        Self {
            id: RunId::random(),
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: None,
            env: Vec::new(),
            stdin: StdinMode::Empty,
            output: OutputStreams::Apart,
            leads: None,
            timeout: None,
            detach: false,
            leftovers: LeftoverPolicy::Keep,
            grace: Duration::from_secs(1),
        }
    }
}

impl ShellRequest {
    pub fn new(shell: impl Into<String>, text: impl Into<ByteString>) -> Self {
        Self {
            id: RunId::random(),
            shell: shell.into(),
            text: text.into(),
            cwd: None,
            timeout: None,
            detach: false,
        }
    }
}

impl PathAt {
    pub fn anywhere(path: impl Into<ByteString>) -> Self {
        Self {
            root: None,
            links: SymlinkPolicy::Follow,
            path: path.into(),
        }
    }

    pub fn beneath(root: impl Into<ByteString>, path: impl Into<ByteString>) -> Self {
        Self {
            root: Some(root.into()),
            links: SymlinkPolicy::Follow,
            path: path.into(),
        }
    }

    /// A path that [`ResolveRequest`] gave.
    pub fn resolved(path: impl Into<ByteString>) -> Self {
        Self {
            root: None,
            links: SymlinkPolicy::Refuse,
            path: path.into(),
        }
    }
}

impl ReadRequest {
    pub fn whole(at: PathAt) -> Self {
        Self {
            at,
            offset: 0,
            length: None,
        }
    }
}

impl WriteRequest {
    pub fn new(at: PathAt) -> Self {
        Self {
            at,
            mode: 0o644,
            parents: false,
            replaces: None,
        }
    }
}
