//! From a path in a request to an open descriptor, within its root where it names one.

use std::borrow::Cow;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat2};
use rustix::io::Errno;

use super::refused;
use crate::protocol::{FailureKind, PathAt, SymlinkPolicy, WardenFailure};
use crate::serve::state::{bad_request, system};

pub(super) fn open(at: &PathAt, flags: OFlags) -> Result<OwnedFd, WardenFailure> {
    PathRoot::of(at)?.open(path_within(at), flags)
}

/// The directory that holds the path's last name, and that name.
pub(super) fn open_parent(at: &PathAt) -> Result<(OwnedFd, Vec<u8>), WardenFailure> {
    let (parent, name) = split(path_within(at))?;
    let folder = PathRoot::of(at)?.open(parent, OFlags::PATH | OFlags::DIRECTORY)?;
    Ok((folder, name.to_vec()))
}

/// As [`open_parent`], making the directories that are missing.
pub(super) fn open_parent_making(at: &PathAt) -> Result<(OwnedFd, Vec<u8>), WardenFailure> {
    let path = path_within(at);
    let (parent, name) = split(path)?;
    let base = PathRoot::of(at)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    if let Ok(folder) = base.open(parent, flags) {
        return Ok((folder, name.to_vec()));
    }
    let start: &[u8] = if parent.first() == Some(&b'/') {
        b"/"
    } else {
        b"."
    };
    let mut folder = base.open(start, flags)?;
    let mut so_far = start.to_vec();
    for step in parent
        .split(|byte| *byte == b'/')
        .filter(|step| !step.is_empty())
    {
        so_far.push(b'/');
        so_far.extend_from_slice(step);
        match mkdirat(&folder, step, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            // A read-only parent of a directory that is there already is no obstacle.
            Err(Errno::ROFS | Errno::ACCESS | Errno::PERM) => {}
            Err(error) => return Err(system("make a directory", &error.into())),
        }
        // Opened again from the root, so that the whole path is judged each time and not only its
        // last step.
        folder = base.open(&so_far, flags)?;
    }
    Ok((folder, name.to_vec()))
}

/// The name under which the kernel opens again what a descriptor holds.
pub(super) fn by_descriptor(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Where paths begin.
enum PathRoot {
    Anywhere,
    /// From `/`, and not by any symlink.
    Straight,
    /// Nothing outside this directory is reached.
    Beneath(OwnedFd),
}

impl PathRoot {
    fn of(at: &PathAt) -> Result<Self, WardenFailure> {
        let root = match (&at.root, at.links) {
            (None, SymlinkPolicy::Follow) => return Ok(Self::Anywhere),
            (None, SymlinkPolicy::Refuse) => return Ok(Self::Straight),
            (Some(root), _) => root,
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(root.as_path(), flags, Mode::empty())
            .map_err(|error| system("open the root directory", &error.into()))?;
        Ok(Self::Beneath(root))
    }

    fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, WardenFailure> {
        let flags = flags | OFlags::CLOEXEC;
        let opened = match self {
            Self::Anywhere => rustix::fs::openat(CWD, path, flags, Mode::empty()),
            Self::Straight => open_straight(path, flags),
            Self::Beneath(root) => {
                // Links of `/proc` lead out of any root without being paths.
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
                openat2(root, path, flags, Mode::empty(), resolve)
            }
        };
        opened.map_err(|error| match error {
            Errno::XDEV => refused("the path leads out of its root"),
            Errno::LOOP => refused("too many symlinks, or one where none may be"),
            Errno::NXIO => refused("not a regular file"),
            error => WardenFailure {
                kind: FailureKind::System,
                errno: Some(error.raw_os_error()),
                text: format!("cannot open {}: {error}", shown(path)),
            },
        })
    }
}

/// Step by step, because older kernels and gVisor know no flag that says "no symlinks".
fn open_straight(path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let step_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = rustix::fs::open("/", step_flags, Mode::empty())?;
    let mut steps = path
        .split(|byte| *byte == b'/')
        .filter(|step| !step.is_empty() && *step != b".")
        .peekable();
    while let Some(step) = steps.next() {
        if steps.peek().is_none() {
            let file = rustix::fs::openat(&folder, step, flags | OFlags::NOFOLLOW, Mode::empty())?;
            let stat = rustix::fs::fstat(&file)?;
            // Opened as a mere path, a symlink opens as itself.
            return match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => Err(Errno::LOOP),
                _ => Ok(file),
            };
        }
        folder = rustix::fs::openat(&folder, step, step_flags, Mode::empty())?;
    }
    Ok(folder)
}

/// With a root, an absolute path below it is taken as relative to it.
fn path_within(at: &PathAt) -> &[u8] {
    let path = at.path.0.as_slice();
    let Some(root) = &at.root else { return path };
    match at.path.as_path().strip_prefix(root.as_path()) {
        Ok(rest) if rest == Path::new("") => b".",
        Ok(rest) => std::os::unix::ffi::OsStrExt::as_bytes(rest.as_os_str()),
        Err(_) => path,
    }
}

fn split(path: &[u8]) -> Result<(&[u8], &[u8]), WardenFailure> {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (&path[..1], &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&b"."[..], path),
    };
    if name.is_empty() || name == b".." || path.contains(&0) {
        return Err(bad_request("the path names no file"));
    }
    Ok((parent, name))
}

fn shown(path: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&path[..path.len().min(512)])
}
