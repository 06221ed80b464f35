//! The seam: what a backend promises.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::net::TcpListener;
use std::path::Path;

use futures::future::{BoxFuture, FutureExt};
use hermetic_types::{BackendDescription, BackendKind, ConversationKey, SandboxId};
use serde::Serialize;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::guarded::GuardedStream;
use crate::{LiveUse, SandboxLifeline, SandboxProcess, SandboxSpec};

/// Brings sandboxes into the world and sees them out.
///
/// What an implementer promises:
/// - `create` either returns a link to a living warden or leaves nothing behind;
/// - `destroy` may be called twice, while commands run, and for an id that never came to be; after
///   it returns `Ok`, no process, mount, cgroup or ephemeral file of that sandbox exists;
/// - `list` names only sandboxes of this installation;
/// - nothing here opens by path something the sandbox could have replaced.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Which one it is, and whether its sandboxes are a boundary. Where they are not, commands are judged
    /// before they run.
    fn description(&self) -> BackendDescription;

    fn kind(&self) -> BackendKind {
        self.description().kind
    }

    /// Whether the link may break while the sandbox lives on, as one over a network does. Commands
    /// there go on without it and are picked up again.
    fn is_distant(&self) -> bool {
        false
    }

    /// Which layers hold on this host, and what to do about those that do not.
    fn readiness(&self) -> BoxFuture<'_, BackendReadiness>;

    /// What bounds memory and disk of the sandboxes here, by the same names and words as in
    /// [`readiness`](Self::readiness). Cheap: nothing is tried. Empty where only trying would tell.
    fn memory_and_disk(&self) -> BoxFuture<'_, Vec<SealLayer>> {
        std::future::ready(Vec::new()).boxed()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>>;

    /// Reaches the warden of a sandbox that lives already.
    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<WardenLink, BackendError>>;

    /// Ends every process and keeps the files, where the sandbox is a kept one.
    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>>;

    /// Brings a stopped sandbox back with its files.
    fn resume<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>>;

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>>;

    /// How many bytes the files of these sandboxes take, for those that lie on a disk of this machine and
    /// can be counted.
    fn disk_use<'a>(&'a self, _ids: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        std::future::ready(HashMap::new()).boxed()
    }

    /// The same, for those whose files take room from the file system of this folder. All of them, unless the
    /// backend knows better.
    fn disk_use_on<'a>(
        &'a self,
        ids: &'a [SandboxId],
        _folder: &'a Path,
    ) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        self.disk_use(ids)
    }

    /// What these sandboxes use at this moment, for those that run and can be asked. Cheap: it is asked again
    /// every few seconds while somebody looks.
    fn live_use<'a>(&'a self, _ids: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, LiveUse>> {
        std::future::ready(HashMap::new()).boxed()
    }

    /// What runs in a sandbox, at most `most` processes. `None` where the backend cannot tell.
    fn processes<'a>(
        &'a self,
        _id: &'a SandboxId,
        _most: usize,
    ) -> BoxFuture<'a, Option<Vec<SandboxProcess>>> {
        std::future::ready(None).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>>;
}

/// One byte stream to a warden. Bytes from it are hostile.
pub struct WardenLink {
    stream: Box<dyn DuplexStream>,
    exit: Option<TcpListener>,
}

trait DuplexStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> DuplexStream for T {}

/// A sandbox that exists, whatever the ledger says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundSandbox {
    pub id: SandboxId,
    /// Absent where the backend could not keep it.
    pub conversation: Option<ConversationKey>,
    /// Whose death takes it along; absent where the backend could not keep that either.
    pub lifeline: Option<SandboxLifeline>,
    pub state: FoundState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FoundState {
    Running,
    /// No process; files kept.
    Stopped,
    /// Somebody is making or unmaking it at this moment.
    Busy,
    /// A create or destroy that never finished, or the rest of one whose creator died.
    Broken,
}

/// What the host has to offer, layer by layer.
#[derive(Clone, Debug, Serialize)]
pub struct BackendReadiness {
    pub layers: Vec<SealLayer>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SealLayer {
    /// As a person would name it: "user namespace", "memory limit", "seccomp".
    pub name: &'static str,
    pub state: LayerState,
    /// How it is kept here, or why it is not.
    pub detail: String,
    /// The command or setting that mends it.
    pub remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerState {
    Active,
    /// Kept by a weaker means, which `detail` names.
    Weaker,
    /// Missing, and the sandbox is still a boundary without it.
    Missing,
    /// Missing, and nothing may run without it.
    Required,
}

#[derive(Debug, Error)]
pub enum BackendError {
    /// The host lacks something. `remedy` is the line a person reads next.
    #[error("{what}")]
    Unavailable { what: String, remedy: String },
    #[error("no sandbox {id}")]
    NoSuchSandbox { id: SandboxId },
    #[error("{what} is refused: {why}")]
    Refused { what: String, why: String },
    #[error("cannot {step}")]
    Failed {
        /// The step, as a verb: "mount /proc", "write the pids limit".
        step: String,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl BackendReadiness {
    /// The first layer without which nothing may run.
    pub fn missing(&self) -> Option<&SealLayer> {
        self.layers
            .iter()
            .find(|layer| layer.state == LayerState::Required)
    }
}

impl SealLayer {
    pub const MEMORY_LIMIT: &'static str = "memory limit";
    pub const DISK_LIMIT: &'static str = "disk limit";

    /// Whether it bounds what one sandbox takes of memory or disk.
    pub fn bounds_memory_or_disk(&self) -> bool {
        [Self::MEMORY_LIMIT, Self::DISK_LIMIT].contains(&self.name)
    }

    /// One that holds.
    pub fn active(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            name,
            state: LayerState::Active,
            detail: detail.into(),
            remedy: None,
        }
    }

    /// One that is kept by a weaker means.
    pub fn weaker(
        name: &'static str,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            name,
            state: LayerState::Weaker,
            detail: detail.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// One without which nothing may run, and why it is not there, with every cause.
    pub fn broken(name: &'static str, error: &BackendError) -> Self {
        Self {
            name,
            state: LayerState::Required,
            detail: error.with_causes(),
            remedy: match error {
                BackendError::Unavailable { remedy, .. } => Some(remedy.clone()),
                _ => None,
            },
        }
    }
}

impl BackendError {
    pub fn failed(
        step: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Failed {
            step: step.into(),
            source: source.into(),
        }
    }
}

impl BackendError {
    /// In one line.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = Error::source(self);
        while let Some(source) = cause {
            text = format!("{text}: {source}");
            cause = source.source();
        }
        text
    }
}

impl WardenLink {
    pub fn new(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            exit: None,
        }
    }

    /// With the sandbox's way out, where the backend could make it before anything ran inside: a socket
    /// that listens on the sandbox's loopback and that nobody in there holds. Elsewhere the warden
    /// listens, and carries connections over the stream.
    #[must_use]
    pub fn with_exit(mut self, exit: Option<TcpListener>) -> Self {
        self.exit = exit;
        self
    }

    /// Nothing more goes in once whoever writes may not.
    #[must_use]
    pub fn guarded(mut self, may_write: impl Fn() -> bool + Send + Unpin + 'static) -> Self {
        self.stream = Box::new(GuardedStream::new(self.stream, may_write));
        self
    }

    pub(crate) fn take_exit(&mut self) -> Option<TcpListener> {
        self.exit.take()
    }

    pub fn into_stream(self) -> impl AsyncRead + AsyncWrite + Send + Unpin {
        self.stream
    }
}

impl fmt::Debug for WardenLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}
