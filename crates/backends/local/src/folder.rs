//! What is known of one sandbox, in a folder of its own.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use hermetic_sandbox::SandboxSpec;
use hermetic_sandbox::host::ProcessHandle;
use hermetic_types::SandboxId;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

#[derive(Clone, Debug)]
pub(crate) struct LocalFolder {
    path: PathBuf,
}

impl LocalFolder {
    pub(crate) fn new(sandboxes: &Path, id: &SandboxId) -> Self {
        Self {
            path: sandboxes.join(id.as_str()),
        }
    }

    /// Fails where the id is taken. What it is comes first, before there is a process. The lock
    /// tells others that somebody is at it.
    pub(crate) fn make(&self, spec: &SandboxSpec) -> io::Result<OwnedFd> {
        // Fails where the id is taken: this decides between two who make it at once.
        DirBuilder::new().mode(0o700).create(&self.path)?;
        let lock = self.open(OFlags::RDONLY)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::write(self.path.join("spec.json"), serde_json::to_vec(spec)?)?;
        Ok(lock)
    }

    /// Held by whoever brings it back; waited for, as another one of those takes moments.
    pub(crate) fn lock(&self) -> io::Result<OwnedFd> {
        let lock = self.open(OFlags::RDONLY)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }

    pub(crate) fn is_locked(&self) -> bool {
        self.open(OFlags::RDONLY).is_ok_and(|folder| {
            flock(&folder, FlockOperation::NonBlockingLockExclusive) == Err(Errno::AGAIN)
        })
    }

    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    pub(crate) fn spec(&self) -> Option<SandboxSpec> {
        serde_json::from_slice(&fs::read(self.path.join("spec.json")).ok()?).ok()
    }

    pub(crate) fn note_life(&self, process: &ProcessHandle) -> io::Result<()> {
        let partial = self.path.join("life.partial");
        fs::write(&partial, serde_json::to_vec(process)?)?;
        // Whole or not at all: by half of it nobody would find the process again.
        fs::rename(partial, self.path.join("life.json"))
    }

    /// The warden, if it still runs.
    pub(crate) fn living(&self) -> Option<(ProcessHandle, OwnedFd)> {
        let text = fs::read(self.path.join("life.json")).ok()?;
        let process: ProcessHandle = serde_json::from_slice(&text).ok()?;
        let pidfd = process.open()?;
        Some((process, pidfd))
    }

    pub(crate) fn was_alive(&self) -> bool {
        self.path.join("life.json").exists()
    }

    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        let (_folder, socket) = self.socket()?;
        let _ = fs::remove_file(&socket);
        UnixListener::bind(socket)
    }

    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        let (_folder, socket) = self.socket()?;
        let stream = UnixStream::connect(socket)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Through a descriptor: a socket's address holds 108 bytes, a state folder's path may not.
    fn socket(&self) -> io::Result<(OwnedFd, PathBuf)> {
        let folder = self.open(OFlags::PATH)?;
        let socket = PathBuf::from(format!("/proc/self/fd/{}/warden.sock", folder.as_raw_fd()));
        Ok((folder, socket))
    }
    fn open(&self, access: OFlags) -> io::Result<OwnedFd> {
        let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(open(&self.path, flags, Mode::empty())?)
    }
}
