//! Finds and ends what makes up one outer container: its first process, the one that looks after it, and its
//! cgroups.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use hermetic_sandbox::BackendError;
use hermetic_sandbox::host::{ProcessHandle, kill, wait_for_end};
use serde::{Deserialize, Serialize};

use super::groups;

/// Killed processes vanish at once, except from an unresponsive disk.
const CONTAINER_KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a keeper may tidy up after its outer container.
const KEEPER_EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The processes and cgroups of one outer container, as written down in its folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ContainerProcesses {
    /// The first process: its end is the end of all in the container.
    init: Option<ProcessHandle>,
    /// The program outside that tidies up after it.
    keeper: Option<ProcessHandle>,
    /// The cgroups of the container, which the keeper removes if it lives.
    groups: Vec<PathBuf>,
}

impl ContainerProcesses {
    /// The outer container that the process stands in, seen from outside.
    pub(super) fn around(cage: i32) -> Self {
        let init = parent_of(cage);
        let program = |pid: i32| fs::read_link(format!("/proc/{pid}/exe")).ok();
        // Of one program with the outer container's first process, or it is somebody who adopted it.
        let keeper = init.and_then(|init| {
            parent_of(init)
                .filter(|&keeper| program(keeper).is_some_and(|it| Some(it) == program(init)))
        });
        Self {
            init: init.and_then(ProcessHandle::observe),
            keeper: keeper.and_then(ProcessHandle::observe),
            groups: init.map(groups::own_of).unwrap_or_default(),
        }
    }

    pub(super) fn init(&self) -> Option<OwnedFd> {
        self.init.as_ref().and_then(ProcessHandle::open)
    }

    pub(super) fn end(&self) -> Result<(), BackendError> {
        if let Some(init) = self.init()
            && !kill(init.as_fd(), CONTAINER_KILL_TIMEOUT)
        {
            let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
            return Err(BackendError::failed("end the instance", late));
        }
        if let Some(keeper) = self.keeper.as_ref().and_then(ProcessHandle::open)
            && !wait_for_end(keeper.as_fd(), KEEPER_EXIT_TIMEOUT)
        {
            kill(keeper.as_fd(), CONTAINER_KILL_TIMEOUT);
        }
        for group in &self.groups {
            let _ = fs::remove_dir(group);
        }
        Ok(())
    }
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets; what follows the last bracket is well-formed.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ')
        .nth(1)?
        .parse()
        .ok()
        .filter(|&parent| parent > 1)
}
