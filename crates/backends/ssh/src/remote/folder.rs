//! What is known of one sandbox, in a folder of its own below ours.
//!
//! The names are relative on purpose: ours is the current folder, and a socket's address holds 108
//! bytes whatever the account's home is called.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use hermetic_types::SandboxId;
use hermetic_warden::machine::{self, ProcessHandle};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use crate::order::RemoteSandbox;

/// The folders of all sandboxes.
pub(super) const ALL: &str = "sandboxes";

#[derive(Clone, Debug)]
pub(super) struct RemoteFolder(PathBuf);

impl RemoteFolder {
    pub(super) fn of(id: &SandboxId) -> Self {
        Self(PathBuf::from(ALL).join(id.as_str()))
    }

    /// Fails where the id is taken. What it is comes first, before there is a process. The lock
    /// tells others that somebody is at it.
    pub(super) fn make(&self, lodging: &RemoteSandbox) -> io::Result<OwnedFd> {
        private().recursive(true).create(ALL)?;
        // Fails where it exists: this decides between two, before either has a lock.
        private().create(&self.0)?;
        let lock = self.open()?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let text = postcard::to_stdvec(lodging).map_err(io::Error::other)?;
        fs::write(self.0.join("lodging"), text)?;
        private().create(self.work())?;
        Ok(lock)
    }

    /// Waits for whoever is at it.
    pub(super) fn lock(&self) -> io::Result<OwnedFd> {
        let lock = self.open()?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }

    pub(super) fn is_locked(&self) -> bool {
        self.open().is_ok_and(|folder| {
            flock(&folder, FlockOperation::NonBlockingLockExclusive) == Err(Errno::AGAIN)
        })
    }

    pub(super) fn lodging(&self) -> Option<RemoteSandbox> {
        postcard::from_bytes(&fs::read(self.0.join("lodging")).ok()?).ok()
    }

    /// Where the sandbox's own files are.
    pub(super) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    pub(super) fn note_life(&self, process: &ProcessHandle) -> io::Result<()> {
        let partial = self.0.join("life.partial");
        let text = postcard::to_stdvec(process).map_err(io::Error::other)?;
        fs::write(&partial, text)?;
        // Whole or not at all: by half of it nobody would find the process again.
        fs::rename(partial, self.0.join("life"))
    }

    /// The warden, if it still runs.
    pub(super) fn living(&self) -> Option<(ProcessHandle, OwnedFd)> {
        let process: ProcessHandle =
            postcard::from_bytes(&fs::read(self.0.join("life")).ok()?).ok()?;
        let pidfd = process.open()?;
        Some((process, pidfd))
    }

    pub(super) fn was_alive(&self) -> bool {
        self.0.join("life").exists()
    }

    pub(super) fn listen(&self) -> io::Result<UnixListener> {
        let socket = self.0.join("warden.sock");
        let _ = fs::remove_file(&socket);
        UnixListener::bind(socket)
    }

    pub(super) fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(self.0.join("warden.sock"))
    }

    /// Whatever commands wrote there, links and locked folders included.
    pub(super) fn remove(&self) -> io::Result<()> {
        match machine::remove(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match open(&self.0, flags, Mode::empty()) {
            // A command may have taken our rights to it away; it is ours to give back.
            Err(Errno::ACCESS) => {
                fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700))?;
                Ok(open(&self.0, flags, Mode::empty())?)
            }
            opened => Ok(opened?),
        }
    }
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}
