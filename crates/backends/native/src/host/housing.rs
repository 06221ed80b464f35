//! A house: what stands around a cage that is not built straight on this host.
//!
//! Another program makes it (a container runtime, say), with an image as its root, and starts the
//! cage's program in it. That one knocks at a door which was put into the house, and from there on
//! everything goes as on the bare host: the cage is built inside, and ends its house when it ends.

use std::fmt;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use hermetic_sandbox::host::Program;
use hermetic_sandbox::{BackendError, Spec};
use hermetic_types::SandboxId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{PidfdFlags, pidfd_open};

use super::folder::Folder;
use super::house::House;
use super::waiting::{Keeper, Waiting};
use crate::cord::Cord;
use crate::plan::{Bind, PORCH};

/// What the cage's program is told in a house.
pub const HOUSED: [&str; 2] = ["cage", "--housed"];

/// Makes houses, and clears away what a cage could not.
pub trait Housing: Send + Sync + fmt::Debug {
    /// Starts to make a house for this sandbox, and goes on: the cage in it will knock. What is
    /// written on the standard error is shown when it does not.
    fn raise(&self, spec: &Spec, site: Site<'_>) -> Result<Child, BackendError>;

    /// Ends what may be left of a house of which nothing was written down but its sandbox's id, and
    /// forgets it. Nobody makes it meanwhile.
    fn clear(&self, id: &SandboxId) -> Result<(), BackendError>;

    /// The folder that is to hold a new sandbox's files, somewhere on a disk. It need not exist.
    fn files(&self, id: &SandboxId) -> PathBuf;

    /// Which limits the house keeps for all that is in it.
    fn keeps(&self) -> Keeps;
}

/// What a house is made of.
#[derive(Debug)]
pub struct Site<'a> {
    /// To be shown as [`Self::PORCH`], read-only.
    pub porch: PathBuf,
    /// The upper side of the root, with the sandbox's files in it; nothing where they are to be in
    /// memory.
    pub overlay: Option<PathBuf>,
    /// Held by whoever makes the house, for as long as he does.
    pub lock: Stdio,
    binds: &'a [Bind],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keeps {
    pub memory: bool,
    pub cpu: bool,
}

impl Site<'_> {
    pub const PORCH: &'static str = PORCH;

    /// What else is to be shown, and where, for the cage to put in place.
    pub fn shows(&self) -> impl Iterator<Item = (&Path, PathBuf)> {
        let numbered = self.binds.iter().enumerate();
        numbered.map(|(number, bind)| (bind.source.as_path(), place_of(number)))
    }
}

/// Where the cage finds a folder that the operator lets in.
pub(super) fn place_of(number: usize) -> PathBuf {
    PathBuf::from(format!("{PORCH}.{number}"))
}

/// Images may lie on a slow disk.
const PATIENCE: Duration = Duration::from_secs(60);
const KNOCKING: Duration = Duration::from_secs(20);
/// How long an error may be that is shown to a person.
const MOST_SAID: u64 = 4 << 10;

/// A house with a cage in it that waits for its plan. Written down before it is told anything.
pub(super) fn raise(
    program: &Program,
    housing: &dyn Housing,
    folder: &Folder,
    spec: &Spec,
    binds: &[Bind],
    overlay: Option<PathBuf>,
    lock: &OwnedFd,
) -> Result<Waiting, BackendError> {
    let door = folder
        .open_door()
        .map_err(|source| BackendError::failed("open a door for the cage", source))?;
    let held = lock
        .try_clone()
        .map_err(|source| BackendError::failed("hold the sandbox's lock", source))?;
    let site = Site {
        porch: folder.porch(),
        overlay,
        lock: held.into(),
        binds,
    };
    let mut maker = housing.raise(spec, site)?;
    let admitted = admit(&door, &mut maker).and_then(|cord| {
        let keeper = settle(program, folder, &cord)?;
        Ok((cord, keeper))
    });
    match admitted {
        Ok((cord, keeper)) => Ok(Waiting::housed(Cord::from_fd(cord), maker, keeper)),
        Err(error) => {
            let _ = maker.kill();
            let _ = maker.wait();
            Err(error)
        }
    }
}

/// From here on the house ends with the process that knocked.
fn settle(
    program: &Program,
    folder: &Folder,
    cord: &OwnedFd,
) -> Result<Option<Keeper>, BackendError> {
    let cage = socket_peercred(cord)
        .map_err(|errno| BackendError::failed("see who knocked", io::Error::from(errno)))?;
    let house = House::around(cage.pid.as_raw_nonzero().get());
    folder
        .note_house(&house)
        .map_err(|source| BackendError::failed("write down the house", source))?;
    let (Ok(cage), Some(init)) = (pidfd_open(cage.pid, PidfdFlags::empty()), house.init()) else {
        return Err(BackendError::failed(
            "see the instance",
            io::Error::from(io::ErrorKind::NotFound),
        ));
    };
    Keeper::start(program, cage, init).map(Some)
}

fn admit(door: &OwnedFd, maker: &mut Child) -> Result<OwnedFd, BackendError> {
    let beat = Timespec::try_from(Duration::from_millis(5)).ok();
    let mut deadline = Instant::now() + PATIENCE;
    loop {
        let mut fds = [PollFd::new(door, PollFlags::IN)];
        if matches!(poll(&mut fds, beat.as_ref()), Ok(1..)) {
            return accept_with(door.as_fd(), SocketFlags::CLOEXEC)
                .map_err(|errno| BackendError::failed("let the cage in", io::Error::from(errno)));
        }
        match maker.try_wait() {
            Ok(Some(status)) if !status.success() => return Err(failed(maker)),
            // Its work is done, and knocking is the first thing that a cage does.
            Ok(Some(_)) => deadline = deadline.min(Instant::now() + KNOCKING),
            _ => {}
        }
        if Instant::now() > deadline {
            return Err(failed(maker));
        }
    }
}

/// By a maker that has ended; one that still runs may hold its end of the pipe for long.
fn failed(maker: &mut Child) -> BackendError {
    let mut said = Vec::new();
    if matches!(maker.try_wait(), Ok(Some(_)))
        && let Some(stderr) = maker.stderr.take()
    {
        let _ = stderr.take(MOST_SAID).read_to_end(&mut said);
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
