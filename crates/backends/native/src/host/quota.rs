//! A disk limit that the kernel keeps: each sandbox is a project of the file system's own.
//!
//! What is made in a folder of a project belongs to that project until its last reader lets go of
//! it, whatever name it has or has no more. A process in a user namespace can neither leave its
//! project nor raise its limits.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hermetic_sandbox::host::DiskUsage;
use hermetic_types::{SandboxId, SandboxLimits};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::process::getuid;

use super::planning;
use super::sys::quota;

/// A file system that keeps projects to their limits.
#[derive(Debug)]
pub(super) struct ProjectQuotas(OwnedFd);

/// Why there is none.
#[derive(Debug)]
pub(super) enum NoQuotas {
    NotRoot,
    /// The file system has no project quotas, they are not switched on, or the kernel (before 5.14,
    /// or built without them) has none.
    SwitchedOff,
    /// Use is counted, and nobody is stopped.
    NotEnforced,
    /// Root without the power to set limits, as in a container.
    Denied(io::Error),
}

/// How many numbers are looked at for one that nobody uses.
const CANDIDATES: u32 = 64;
/// How long a file may take to go after its last process has.
const LINGERING: Duration = Duration::from_secs(2);
/// Deeper than anybody's work, and as many descriptors as we want to spend.
const DEEPEST: usize = 200;
/// The kernel counts in these.
const BLOCK: u64 = 1024;

impl ProjectQuotas {
    /// Of the file system that this folder is on.
    pub(super) fn of(folder: &Path) -> Result<Self, NoQuotas> {
        if !getuid().is_root() {
            return Err(NoQuotas::NotRoot);
        }
        let on = openat(CWD, folder, FOLDER, Mode::empty())
            .map_err(|error| NoQuotas::Denied(error.into()))?;
        match quota::enforces_projects(on.as_fd()) {
            Ok(true) => {}
            Ok(false) => return Err(NoQuotas::NotEnforced),
            Err(_) => return Err(NoQuotas::SwitchedOff),
        }
        let quotas = Self(on);
        // Asking about any project but one's own takes the same power as setting limits.
        match quotas.used(planning::FIRST_ASSUMED) {
            Ok(_) => Ok(quotas),
            Err(error) => Err(NoQuotas::Denied(error)),
        }
    }

    /// The number that a sandbox gets unless somebody has it.
    pub(super) fn usual(id: &SandboxId) -> u32 {
        planning::unused_id(planning::spread(id))
    }

    /// A number that no file belongs to. The same sandbox begins at the same one.
    pub(super) fn choose(&self, id: &SandboxId) -> io::Result<u32> {
        let first = planning::spread(id);
        // Neighbours are tried, as two ids may fall on one number; more than a few in a row mean
        // that something else uses the range.
        for step in 0..CANDIDATES {
            let number = planning::unused_id(first.wrapping_add(step));
            if self.used(number)?.inodes == 0 {
                return Ok(number);
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// Gives whole trees to a project. A tree's top comes last: if it belongs to the project, so does
    /// all that is below.
    pub(super) fn give(&self, trees: &[PathBuf], project: u32) -> io::Result<()> {
        trees.iter().try_for_each(|tree| give_tree(tree, project))
    }

    /// Both limits at once. None is ever zero, which would be no limit.
    pub(super) fn limit(&self, project: u32, limits: &SandboxLimits) -> io::Result<()> {
        let blocks = (limits.disk_bytes / BLOCK).max(1);
        quota::set_limits(self.0.as_fd(), project, blocks, limits.inodes.max(1))
    }

    pub(super) fn used(&self, project: u32) -> io::Result<DiskUsage> {
        let found = quota::project(self.0.as_fd(), project)?;
        Ok(DiskUsage {
            bytes: found.bytes,
            inodes: found.inodes,
        })
    }

    /// Takes the limits off a project whose files are gone, and with them its last trace. One that
    /// still has files is somebody's, and keeps them.
    pub(super) fn release(&self, project: u32) -> io::Result<()> {
        let deadline = Instant::now() + LINGERING;
        while self.used(project)?.inodes > 0 {
            if Instant::now() > deadline {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            thread::sleep(Duration::from_millis(2));
        }
        quota::set_limits(self.0.as_fd(), project, 0, 0)
    }
}

/// Whether all of these belong to the project.
pub(super) fn belong_to(trees: &[PathBuf], project: u32) -> bool {
    trees.iter().all(|tree| {
        let top = openat(CWD, tree, FOLDER, Mode::empty());
        top.is_ok_and(|top| quota::project_of(top).is_ok_and(|number| number == project))
    })
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn give_tree(top: &Path, project: u32) -> io::Result<()> {
    let top = openat(CWD, top, FOLDER, Mode::empty())?;
    let mut open = vec![Dir::new(top)?];
    while let depth @ 1.. = open.len() {
        let folder = &mut open[depth - 1];
        let Some(entry) = folder.next() else {
            // On the way out, when all below it belongs: a crash in between leaves a top that does
            // not, and the next start begins anew.
            quota::give_to_project(folder.fd()?, project, true)?;
            open.pop();
            continue;
        };
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let fd = folder.fd()?;
        let found = statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory if depth >= DEEPEST => {
                return Err(io::ErrorKind::InvalidFilename.into());
            }
            FileType::Directory => {
                let inner = openat(fd, name, FOLDER, Mode::empty())?;
                open.push(Dir::new(inner)?);
            }
            FileType::RegularFile => {
                // Without waiting and without following: the tree may be a sandbox's earlier work,
                // with pipes and links where we expect files.
                let file = openat(fd, name, FILE, Mode::empty())?;
                quota::give_to_project(file, project, false)?;
            }
            // A link, a pipe or a socket holds nothing worth a limit, and cannot be opened for this.
            _ => {}
        }
    }
    Ok(())
}

impl fmt::Display for NoQuotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRoot => f.write_str("only root can set a quota"),
            Self::SwitchedOff => f.write_str("the file system has no project quotas switched on"),
            Self::NotEnforced => {
                f.write_str("the file system counts projects and keeps none to a limit")
            }
            Self::Denied(error) => write!(f, "quotas may not be set here ({error})"),
        }
    }
}
