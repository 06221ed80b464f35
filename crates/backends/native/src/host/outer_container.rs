//! The container around a cage that is not built straight on this host.
//!
//! Another program makes it (a container runtime, say), with an image as its root, and starts the
//! cage's program in it. That program connects to a socket which was put into the container. From there on
//! everything goes as on the bare host: the cage is built inside, and ends its container when it ends.

use std::fmt;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use hermetic_sandbox::host::InsideProgram;
use hermetic_sandbox::{BackendError, SandboxSpec};
use hermetic_types::SandboxId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{PidfdFlags, pidfd_open};

use super::container_processes::ContainerProcesses;
use super::folder::SandboxFolder;
use super::waiting_cage::{ContainerKeeper, WaitingCage};
use crate::control_socket::ControlSocket;
use crate::plan::{BindMount, CONTROL_DIR};

/// The arguments of the cage's program in an outer container.
pub const CONTAINED_CAGE: [&str; 2] = ["cage", "--housed"];

/// Makes containers for cages, and clears away what a cage could not.
pub trait OuterContainer: Send + Sync + fmt::Debug {
    /// Starts to make a container for this sandbox, and does not wait: the cage in it will connect. What is
    /// written on the standard error is shown when it does not.
    fn start(&self, spec: &SandboxSpec, layout: ContainerLayout<'_>)
    -> Result<Child, BackendError>;

    /// Ends what may be left of a container of which nothing was written down but its sandbox's id, and
    /// forgets it. Nobody makes it meanwhile.
    fn clear(&self, id: &SandboxId) -> Result<(), BackendError>;

    /// Returns the folder that is to hold a new sandbox's files, somewhere on a disk. It need not exist.
    fn files(&self, id: &SandboxId) -> PathBuf;

    /// Tells which limits the container keeps for all that is in it.
    fn keeps(&self) -> KeptLimits;
}

/// The folders and files that an outer container is made of.
#[derive(Debug)]
pub struct ContainerLayout<'a> {
    /// A folder to be shown as [`Self::CONTROL_DIR`], read-only.
    pub control_dir: PathBuf,
    /// The upper side of the root, with the sandbox's files in it; nothing where they are to be in
    /// memory.
    pub overlay: Option<PathBuf>,
    /// Held by whoever makes the container, for as long as that takes.
    pub lock: Stdio,
    binds: &'a [BindMount],
}

/// The limits that an outer container keeps for all that is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptLimits {
    pub memory: bool,
    pub cpu: bool,
}

impl ContainerLayout<'_> {
    pub const CONTROL_DIR: &'static str = CONTROL_DIR;

    /// Lists what else is to be shown, and where, for the cage to put in place.
    pub fn shows(&self) -> impl Iterator<Item = (&Path, PathBuf)> {
        let numbered = self.binds.iter().enumerate();
        numbered.map(|(number, bind)| (bind.source.as_path(), place_of(number)))
    }
}

/// Returns the path at which the cage finds a folder that the operator lets in.
pub(super) fn place_of(number: usize) -> PathBuf {
    PathBuf::from(format!("{CONTROL_DIR}.{number}"))
}

/// How long a container may take to start: images may lie on a slow disk.
const CONTAINER_START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a cage may take to connect once its container has started.
const CAGE_CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long an error may be that is shown to a person.
const MOST_ERROR_BYTES: u64 = 4 << 10;

/// Starts a container with a cage in it that waits for its plan. The container is written down before the
/// cage is told anything, so that a crash leaves none that nobody knows.
pub(super) fn start(
    program: &InsideProgram,
    outer_container: &dyn OuterContainer,
    folder: &SandboxFolder,
    spec: &SandboxSpec,
    binds: &[BindMount],
    overlay: Option<PathBuf>,
    lock: &OwnedFd,
) -> Result<WaitingCage, BackendError> {
    let listener = folder
        .listen_for_cage()
        .map_err(|source| BackendError::failed("open a door for the cage", source))?;
    let held = lock
        .try_clone()
        .map_err(|source| BackendError::failed("hold the sandbox's lock", source))?;
    let layout = ContainerLayout {
        control_dir: folder.control_dir(),
        overlay,
        lock: held.into(),
        binds,
    };
    let mut maker = outer_container.start(spec, layout)?;
    let admitted = admit(&listener, &mut maker).and_then(|control| {
        let keeper = settle(program, folder, &control)?;
        Ok((control, keeper))
    });
    match admitted {
        Ok((control, keeper)) => Ok(WaitingCage::in_container(
            ControlSocket::from_fd(control),
            maker,
            keeper,
        )),
        Err(error) => {
            // Only the one who makes it. The container itself is cleared away by its name, by the
            // teardown that a failed start ends in.
            let _ = maker.kill();
            let _ = maker.wait();
            Err(error)
        }
    }
}

/// Writes the container down and ties it to the cage: from here on it ends with the process that connected.
fn settle(
    program: &InsideProgram,
    folder: &SandboxFolder,
    control: &OwnedFd,
) -> Result<Option<ContainerKeeper>, BackendError> {
    // The number is the kernel's, translated to how we count; whoever connects has no say in it.
    let cage = socket_peercred(control)
        .map_err(|errno| BackendError::failed("see who knocked", io::Error::from(errno)))?;
    let container = ContainerProcesses::around(cage.pid.as_raw_nonzero().get());
    folder
        .note_container(&container)
        .map_err(|source| BackendError::failed("write down the container", source))?;
    // Opened after the container was written down: where the cage has ended meanwhile this fails,
    // and what was written leads to what is left.
    let (Ok(cage), Some(init)) = (pidfd_open(cage.pid, PidfdFlags::empty()), container.init())
    else {
        return Err(BackendError::failed(
            "see the instance",
            io::Error::from(io::ErrorKind::NotFound),
        ));
    };
    ContainerKeeper::start(program, cage, init).map(Some)
}

/// Waits for the cage to connect.
fn admit(listener: &OwnedFd, maker: &mut Child) -> Result<OwnedFd, BackendError> {
    // It looks up this often, as a listener does not tell when the maker dies.
    let beat = Timespec::try_from(Duration::from_millis(5)).ok();
    let mut deadline = Instant::now() + CONTAINER_START_TIMEOUT;
    loop {
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        if matches!(poll(&mut fds, beat.as_ref()), Ok(1..)) {
            return accept_with(listener.as_fd(), SocketFlags::CLOEXEC)
                .map_err(|errno| BackendError::failed("let the cage in", io::Error::from(errno)));
        }
        match maker.try_wait() {
            Ok(Some(status)) if !status.success() => return Err(failed(maker)),
            // The container has started, and connecting is the first thing that a cage does.
            Ok(Some(_)) => deadline = deadline.min(Instant::now() + CAGE_CONNECT_TIMEOUT),
            _ => {}
        }
        if Instant::now() > deadline {
            return Err(failed(maker));
        }
    }
}

/// Reads what the maker said, if it has ended: one that still runs may hold its end of the pipe for long.
fn failed(maker: &mut Child) -> BackendError {
    let mut said = Vec::new();
    if matches!(maker.try_wait(), Ok(Some(_)))
        && let Some(stderr) = maker.stderr.take()
    {
        let _ = stderr.take(MOST_ERROR_BYTES).read_to_end(&mut said);
    }
    let said = String::from_utf8_lossy(&said);
    let lines = said.lines().map(str::trim);
    let said: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let why = if said.is_empty() {
        "its cage did not come to the door in time".to_owned()
    } else {
        said.join("; ")
    };
    BackendError::failed("start the instance", io::Error::other(why))
}
