//! Wardens as plain processes of the remote account, each with a folder of its own.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use hermetic_types::SandboxId;
use hermetic_warden::machine::{self, ProcessHandle};

use super::folder::{ALL, RemoteFolder};
use super::marked;
use crate::order::{ListedSandbox, RemoteAnswer, RemoteSandbox, RemoteState};

/// What a login has and a command cannot do without. A sandbox's own variables are set on top.
const LOGIN_VARIABLES: [&str; 6] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "SHELL"];

/// More than anybody has; a bound for the answer.
const MOST_LISTED_SANDBOXES: usize = 4096;

pub(super) enum RemoteTrouble {
    NoSuchSandbox,
    Failed { step: &'static str, why: io::Error },
}

pub(super) fn create(lodging: &RemoteSandbox) -> Result<UnixStream, RemoteTrouble> {
    let folder = RemoteFolder::of(&lodging.id);
    let _lock = folder.make(lodging).map_err(at("write the sandbox down"))?;
    start(lodging, &folder).inspect_err(|_| {
        // A create that failed leaves nothing.
        let _ = end(&lodging.id, &folder)
            .and_then(|()| folder.remove().map_err(at("remove the folder")));
    })
}

pub(super) fn connect(id: &SandboxId) -> Result<UnixStream, RemoteTrouble> {
    let folder = RemoteFolder::of(id);
    folder.living().ok_or(RemoteTrouble::NoSuchSandbox)?;
    folder.connect().map_err(at("reach the warden"))
}

pub(super) fn resume(lodging: &RemoteSandbox) -> Result<UnixStream, RemoteTrouble> {
    let folder = RemoteFolder::of(&lodging.id);
    let _lock = locked(&folder)?.ok_or(RemoteTrouble::NoSuchSandbox)?;
    // Under the lock: another may have brought it back while we waited for it.
    match folder.living() {
        Some(_) => folder.connect().map_err(at("reach the warden")),
        None => start(lodging, &folder),
    }
}

pub(super) fn stop(id: &SandboxId) -> Result<(), RemoteTrouble> {
    let folder = RemoteFolder::of(id);
    let _lock = locked(&folder)?.ok_or(RemoteTrouble::NoSuchSandbox)?;
    end(id, &folder)
}

pub(super) fn destroy(id: &SandboxId) -> Result<(), RemoteTrouble> {
    let folder = RemoteFolder::of(id);
    let Some(_lock) = locked(&folder)? else {
        return Ok(());
    };
    end(id, &folder)?;
    folder.remove().map_err(at("remove the sandbox's folder"))
}

pub(super) fn list() -> Result<Vec<ListedSandbox>, RemoteTrouble> {
    let entries = match fs::read_dir(ALL) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(at("read the folder of sandboxes"))?,
    };
    let ids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(ids.take(MOST_LISTED_SANDBOXES).map(look).collect())
}

/// Nothing where there is no such sandbox.
fn locked(folder: &RemoteFolder) -> Result<Option<OwnedFd>, RemoteTrouble> {
    match folder.lock() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        lock => lock.map(Some).map_err(at("lock the sandbox's folder")),
    }
}

fn look(id: SandboxId) -> ListedSandbox {
    let folder = RemoteFolder::of(&id);
    let lodging = folder.lodging();
    let state = match (&lodging, folder.living()) {
        (Some(_), Some(_)) => RemoteState::Running,
        (Some(lodging), None) if lodging.kept && folder.was_alive() => RemoteState::Stopped,
        _ if folder.is_locked() => RemoteState::Busy,
        _ => RemoteState::Broken,
    };
    // The environment is of no use to a listing, and may be long.
    let lodging = lodging.map(|lodging| RemoteSandbox {
        env: Vec::new(),
        ..lodging
    });
    ListedSandbox { id, state, lodging }
}

/// Starts the warden with a socket that was made here; the link is there before it is.
fn start(lodging: &RemoteSandbox, folder: &RemoteFolder) -> Result<UnixStream, RemoteTrouble> {
    let socket = folder.listen().map_err(at("make the socket"))?;
    let process = spawn(lodging, folder, socket.into()).map_err(at("start the warden"))?;
    folder
        // Written down before there is a link: a warden that nobody wrote down can be found by its
        // mark alone.
        .note_life(&process)
        .map_err(at("write the warden's process down"))?;
    folder.connect().map_err(at("reach the warden"))
}

fn spawn(
    lodging: &RemoteSandbox,
    folder: &RemoteFolder,
    socket: OwnedFd,
) -> io::Result<ProcessHandle> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["serve", "--listen-fd", "0", "--lifetime"]);
    command.arg(lodging.lifetime.as_secs().to_string());
    if lodging.tied {
        command.arg("--tied");
    }
    command.env_clear();
    for name in LOGIN_VARIABLES {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let own = folder.work();
    let workdir = lodging.workdir.as_deref().map(std::path::Path::new);
    let child = command
        .envs(lodging.env.iter().map(|(name, value)| (name, value)))
        // Set last, over whatever the sandbox's own variables say: by this it is found and ended.
        .env(mark(&lodging.id).0, mark(&lodging.id).1)
        .current_dir(workdir.unwrap_or(&own))
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // It outlives the connection that started it.
        .process_group(0)
        .spawn()?;
    i32::try_from(child.id())
        .ok()
        .and_then(ProcessHandle::observe)
        .ok_or_else(|| io::Error::other("the warden ended at once"))
}

fn end(id: &SandboxId, folder: &RemoteFolder) -> Result<(), RemoteTrouble> {
    let ended = match folder.living() {
        Some((process, pidfd)) => machine::end(process.pid, pidfd.as_fd()),
        None => true,
    };
    // A warden that was killed with its keepers could end nobody.
    if ended && marked::end(mark(id)) {
        return Ok(());
    }
    Err(at("end the sandbox's processes")(
        io::ErrorKind::TimedOut.into(),
    ))
}

/// What everything that a sandbox started carries in its environment.
fn mark(id: &SandboxId) -> (&'static str, &str) {
    ("HERMETIC_SANDBOX", id.as_str())
}

fn at(step: &'static str) -> impl Fn(io::Error) -> RemoteTrouble {
    move |why| RemoteTrouble::Failed { step, why }
}

impl From<RemoteTrouble> for RemoteAnswer {
    fn from(trouble: RemoteTrouble) -> Self {
        match trouble {
            RemoteTrouble::NoSuchSandbox => Self::NoSuchSandbox,
            RemoteTrouble::Failed { step, why } => Self::Failed {
                step: step.to_owned(),
                why: why.to_string(),
            },
        }
    }
}
