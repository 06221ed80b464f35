//! The backend itself.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_sandbox::host::{self, InsideProgram, ProcessHandle};
use hermetic_sandbox::{
    Backend, BackendError, BackendReadiness, FoundSandbox, FoundState, LayerState, LiveUse,
    SandboxLifeline, SandboxPersistence, SandboxProcess, SandboxSpec, SealLayer, WardenLink,
};
use hermetic_types::{BackendDescription, BackendKind, SandboxId};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use tokio::process::{Child, Command};

use crate::folder::LocalFolder;

#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// A folder of ours alone.
    pub state: PathBuf,
    /// The embedded warden program.
    pub program: &'static [u8],
    /// Where commands start that name no directory.
    pub workdir: PathBuf,
    /// What a login on this host has and a command cannot do without: `PATH`, `HOME`, `USER`,
    /// `LANG`. A sandbox's own variables are set on top.
    pub env: BTreeMap<String, String>,
    /// The soft limit on open files that commands are to have: ours may be raised, and some programs walk
    /// through every number up to it. `None` leaves it.
    pub open_files: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct LocalBackend(Arc<LocalState>);

#[derive(Debug)]
struct LocalState {
    config: LocalConfig,
    program: InsideProgram,
}

impl LocalBackend {
    pub fn open(config: LocalConfig) -> Result<Self, BackendError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(config.state.join("local"))
            .map_err(|source| BackendError::failed("make the state folder", source))?;
        let program = InsideProgram::seal(config.program)
            .map_err(|source| BackendError::failed("hold the warden program", source))?;
        Ok(Self(Arc::new(LocalState { config, program })))
    }
}

impl LocalBackend {
    /// Commands act on this machine.
    pub const DESCRIPTION: BackendDescription = BackendDescription::judged(BackendKind::Local);
}

impl Backend for LocalBackend {
    fn description(&self) -> BackendDescription {
        Self::DESCRIPTION
    }

    fn readiness(&self) -> BoxFuture<'_, BackendReadiness> {
        let layer = SealLayer {
            name: "boundary",
            state: LayerState::Missing,
            detail: "none: commands run on this host as this user, and are judged first".to_owned(),
            remedy: Some("choose native, which is sealed".to_owned()),
        };
        async move {
            BackendReadiness {
                layers: vec![layer],
            }
        }
        .boxed()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        let (host, spec) = (Arc::clone(&self.0), spec.clone());
        async move {
            let stream = blocking(move || {
                let folder = host.folder(&spec.id);
                // Held until the warden is there or gone: whoever lists meanwhile is told that
                // somebody is at it.
                let _lock = folder
                    .make(&spec)
                    .map_err(|source| BackendError::failed("write the sandbox down", source))?;
                host.start(&spec, &folder)
                    .inspect_err(|_| drop(host.destroy(&spec.id)))
            })
            .await?;
            linked(stream)
        }
        .boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        let folder = self.0.folder(id);
        async move {
            folder.living().ok_or_else(|| missing(id))?;
            let stream = folder
                .connect()
                .map_err(|source| BackendError::failed("reach the warden", source))?;
            linked(stream)
        }
        .boxed()
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        let (host, id) = (Arc::clone(&self.0), id.clone());
        blocking(move || {
            if !host.folder(&id).exists() {
                return Err(missing(&id));
            }
            host.end(&id)
        })
        .boxed()
    }

    fn resume<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        let (host, spec) = (Arc::clone(&self.0), spec.clone());
        async move {
            let stream = blocking(move || {
                let folder = host.folder(&spec.id);
                if !folder.exists() {
                    return Err(missing(&spec.id));
                }
                let _lock = folder
                    .lock()
                    .map_err(|source| BackendError::failed("lock the sandbox", source))?;
                // One that another caller brought back meanwhile, or that never ended: two wardens
                // would have its commands, and one of them no record.
                host.end(&spec.id)?;
                host.start(&spec, &folder)
            })
            .await?;
            linked(stream)
        }
        .boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        let (host, id) = (Arc::clone(&self.0), id.clone());
        blocking(move || host.destroy(&id)).boxed()
    }

    fn live_use<'a>(&'a self, ids: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, LiveUse>> {
        let folders: Vec<_> = ids
            .iter()
            .map(|id| (id.clone(), self.0.folder(id)))
            .collect();
        async move {
            let look = move || {
                let living = folders.into_iter().filter_map(|(id, folder)| {
                    let (process, _alive) = folder.living()?;
                    let tree = host::process_tree(process.pid);
                    let uses = LiveUse {
                        cpu_time: Some(host::cpu_time(&tree)),
                        memory_bytes: Some(host::resident_bytes(&tree)),
                        pids: Some(tree.len() as u64),
                    };
                    Some((id, uses))
                });
                living.collect()
            };
            tokio::task::spawn_blocking(look).await.unwrap_or_default()
        }
        .boxed()
    }

    fn processes<'a>(
        &'a self,
        id: &'a SandboxId,
        most: usize,
    ) -> BoxFuture<'a, Option<Vec<SandboxProcess>>> {
        let folder = self.0.folder(id);
        async move {
            let look = move || {
                let (process, _alive) = folder.living()?;
                let tree = host::process_tree(process.pid);
                Some(host::describe_processes(&tree, most))
            };
            tokio::task::spawn_blocking(look).await.ok().flatten()
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
        let host = Arc::clone(&self.0);
        blocking(move || host.list()).boxed()
    }
}

impl LocalState {
    fn folder(&self, id: &SandboxId) -> LocalFolder {
        LocalFolder::new(&self.config.state.join("local"), id)
    }

    /// Starts the warden with a socket that was made here; the link is there before it is.
    fn start(
        &self,
        spec: &SandboxSpec,
        folder: &LocalFolder,
    ) -> Result<std::os::unix::net::UnixStream, BackendError> {
        let socket = folder
            .listen()
            .map_err(|source| BackendError::failed("make the socket", source))?;
        let mut child = self
            .spawn(spec, socket.into())
            .map_err(|source| BackendError::failed("start the warden", source))?;
        self.write_down(&child, folder).inspect_err(|_| {
            // By no record would anybody find it again.
            let _ = child.start_kill();
        })?;
        folder
            .connect()
            .map_err(|source| BackendError::failed("reach the warden", source))
    }

    fn write_down(&self, child: &Child, folder: &LocalFolder) -> Result<(), BackendError> {
        // Before there is a link: no command has started yet.
        self.limit_files(child)
            .map_err(|source| BackendError::failed("limit the warden's open files", source))?;
        // Dropping the child does not end it: the runtime collects it when it ends by itself.
        child
            .id()
            .and_then(|pid| ProcessHandle::observe(i32::try_from(pid).ok()?))
            .ok_or_else(|| io::Error::other("the warden ended at once"))
            .and_then(|process| folder.note_life(&process))
            .map_err(|source| BackendError::failed("write the warden's process down", source))
    }

    fn spawn(&self, spec: &SandboxSpec, socket: OwnedFd) -> io::Result<Child> {
        let mut command = Command::new(self.program.path());
        command.args(["serve", "--listen-fd", "0", "--lifetime"]);
        command.arg(spec.lifetime.as_secs().to_string());
        if spec.lifeline == SandboxLifeline::Creator {
            command.arg("--tied");
        }
        command
            // Nothing of the gateway's own environment, which holds its keys, gets to a command.
            .env_clear()
            .envs(&self.config.env)
            .envs(&spec.env)
            .current_dir(&self.config.workdir)
            .stdin(Stdio::from(socket))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals of the terminal are the gateway's, not the sandbox's.
            .process_group(0)
            .spawn()
    }

    fn limit_files(&self, child: &Child) -> io::Result<()> {
        let (Some(wanted), Some(pid)) = (self.config.open_files, child.id()) else {
            return Ok(());
        };
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let own = getrlimit(Resource::Nofile);
        let ordinary = Rlimit {
            current: Some(own.maximum.map_or(wanted, |hard| hard.min(wanted))),
            maximum: own.maximum,
        };
        match prlimit(pid, Resource::Nofile, ordinary) {
            // It ended already, which the next step will tell.
            Err(Errno::SRCH) => Ok(()),
            limited => Ok(limited.map(drop)?),
        }
    }

    fn end(&self, id: &SandboxId) -> Result<(), BackendError> {
        let Some((process, pidfd)) = self.folder(id).living() else {
            return Ok(());
        };
        if host::end(process.pid, pidfd.as_fd()) {
            return Ok(());
        }
        let late = io::Error::from(io::ErrorKind::TimedOut);
        Err(BackendError::failed(
            format!("end process {}", process.pid),
            late,
        ))
    }

    fn destroy(&self, id: &SandboxId) -> Result<(), BackendError> {
        self.end(id)?;
        self.folder(id)
            .remove()
            .map_err(|source| BackendError::failed("remove the sandbox's folder", source))
    }

    fn list(&self) -> Result<Vec<FoundSandbox>, BackendError> {
        let unreadable = |source: io::Error| BackendError::failed("read the state folder", source);
        let mut found = Vec::new();
        for entry in fs::read_dir(self.config.state.join("local")).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let folder = self.folder(&id);
            let spec = folder.spec();
            let state = match (&spec, folder.living()) {
                (Some(_), Some(_)) => FoundState::Running,
                (Some(spec), None)
                    if spec.persistence == SandboxPersistence::Kept && folder.was_alive() =>
                {
                    FoundState::Stopped
                }
                // After the process was looked for: one that runs is running, whoever holds the
                // lock.
                _ if folder.is_locked() => FoundState::Busy,
                _ => FoundState::Broken,
            };
            found.push(FoundSandbox {
                id,
                lifeline: spec.as_ref().map(|spec| spec.lifeline),
                conversation: spec.map(|spec| spec.conversation),
                state,
            });
        }
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }
}

fn linked(stream: std::os::unix::net::UnixStream) -> Result<WardenLink, BackendError> {
    tokio::net::UnixStream::from_std(stream)
        .map(WardenLink::new)
        .map_err(|source| BackendError::failed("wait for the warden", source))
}

fn missing(id: &SandboxId) -> BackendError {
    BackendError::NoSuchSandbox { id: id.clone() }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackendError> + Send + 'static,
) -> Result<T, BackendError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|source| Err(BackendError::failed("finish the work", source)))
}
