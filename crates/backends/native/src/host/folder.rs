//! What the host knows of one sandbox, in a folder that the sandbox never sees.
//!
//! Its [`SandboxRecord`] comes first, before anything exists that would have to be cleaned up. Whatever a
//! crash leaves, that says what it was.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hermetic_sandbox::{SandboxPersistence, SandboxSpec};
use hermetic_types::SandboxId;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::container_processes::ContainerProcesses;
use super::record::{ExternalResources, SandboxRecord};
use super::watch::EndReason;
use crate::plan::{CAGE_LISTENER, HOME, WORKSPACE};
use hermetic_sandbox::host::{self as process, ProcessHandle};

/// Longer than a cage takes to be built. One within an outer container, or whose files are many, may take
/// longer; whoever wants it meanwhile is told that it is busy.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The folder of one sandbox.
#[derive(Clone, Debug)]
pub(super) struct SandboxFolder {
    pub(super) id: SandboxId,
    path: PathBuf,
    layout: FilesLayout,
}

/// The place of a sandbox's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilesLayout {
    /// Beside its record.
    Beside,
    /// In the upper side of an overlay, to which a link leads: it may be on another disk.
    Overlay,
}

const OVERLAY: &str = "overlay";
const CONTAINER_FILE: &str = "house.json";

impl SandboxFolder {
    pub(super) fn new(sandboxes: &Path, id: &SandboxId, layout: FilesLayout) -> Self {
        Self {
            id: id.clone(),
            path: sandboxes.join(id.as_str()),
            layout,
        }
    }

    /// Fails where the id is taken.
    pub(super) fn make(&self, spec: &SandboxSpec, made: ExternalResources) -> io::Result<OwnedFd> {
        // Fails where the folder exists: that decides between two who would make the same sandbox,
        // before either has the lock.
        private_dir(&self.path)?;
        let lock = self.lock(LOCK_TIMEOUT)?;
        let record = SandboxRecord {
            spec: spec.clone(),
            made,
            lived: false,
            life: None,
        };
        // Under the lock, or somebody who cleans up could take a folder without a record for what a
        // crash left, and remove it.
        record.write_first(&self.path)?;
        Ok(lock)
    }

    /// Whoever makes or unmakes this sandbox holds it. A cage shares its gateway's until it is
    /// confirmed, so that nobody cleans up after a dead gateway while its last cage is still at it.
    pub(super) fn lock(&self, patience: Duration) -> io::Result<OwnedFd> {
        let deadline = Instant::now() + patience;
        let lock = self.open(OFlags::RDONLY)?;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::AGAIN) if Instant::now() < deadline => {
                    // Tried again and not waited for: `flock` has no deadline, and a thread that
                    // waits in it cannot be called back.
                    thread::sleep(Duration::from_millis(1));
                }
                Err(errno) => return Err(errno.into()),
                Ok(()) => break,
            }
        }
        // The folder may have gone while we waited for whoever removed it.
        let (held, named) = (fstat(&lock)?, fstat(self.open(OFlags::PATH)?)?);
        if (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino) {
            Ok(lock)
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.path.is_dir()
    }

    pub(super) fn is_locked(&self) -> bool {
        let locked = self.lock(Duration::ZERO);
        locked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// The link comes first: what a crash leaves is found by it.
    pub(super) fn make_overlay(&self, overlay: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(overlay, self.path.join(OVERLAY))?;
        if let Some(parent) = overlay.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)?;
        }
        private_dir(overlay)?;
        // Its upper side is what the sandbox sees as its root.
        for place in ["upper", "upper/home"] {
            fs::DirBuilder::new()
                .mode(0o755)
                .create(overlay.join(place))?;
        }
        Ok(())
    }

    /// Where the link leads.
    pub(super) fn overlay(&self) -> Option<PathBuf> {
        fs::read_link(self.path.join(OVERLAY)).ok()
    }

    pub(super) fn make_files(&self, owner: Option<u32>) -> io::Result<()> {
        for path in self.trees() {
            private_dir(&path)?;
            // `mkdir` is subject to the umask of whoever started us.
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
            chown(&path, owner, owner)?;
        }
        Ok(())
    }

    pub(super) fn record(&self) -> Option<SandboxRecord> {
        SandboxRecord::read(&self.path)
    }

    /// What the next life needs may not be what the last one did.
    pub(super) fn note_made(
        &self,
        before: SandboxRecord,
        made: ExternalResources,
    ) -> io::Result<()> {
        SandboxRecord { made, ..before }.replace(&self.path)
    }

    pub(super) fn note_life(&self, process: &ProcessHandle) -> io::Result<()> {
        SandboxRecord::add_life(&self.path, process)
    }

    pub(super) fn note_ended(&self, ended: EndReason) -> io::Result<()> {
        self.write("ended.json", &ended)
    }

    pub(super) fn ended(&self) -> Option<EndReason> {
        self.read("ended.json")
    }

    pub(super) fn forget_ended(&self) {
        let _ = fs::remove_file(self.path.join("ended.json"));
    }

    pub(super) fn note_container(&self, container: &ContainerProcesses) -> io::Result<()> {
        self.write(CONTAINER_FILE, container)
    }

    pub(super) fn container(&self) -> Option<ContainerProcesses> {
        self.read(CONTAINER_FILE)
    }

    pub(super) fn forget_container(&self) {
        let _ = fs::remove_file(self.path.join(CONTAINER_FILE));
    }

    pub(super) fn workspace(&self) -> PathBuf {
        match self.layout {
            FilesLayout::Beside => self.path.join("workspace"),
            FilesLayout::Overlay => self.upper(WORKSPACE),
        }
    }

    /// Everything that a sandbox keeps on disk.
    pub(super) fn trees(&self) -> Vec<PathBuf> {
        vec![self.workspace(), self.home()]
    }

    pub(super) fn home(&self) -> PathBuf {
        match self.layout {
            FilesLayout::Beside => self.path.join("home"),
            FilesLayout::Overlay => self.upper(HOME),
        }
    }

    fn upper(&self, place: &str) -> PathBuf {
        let upper = self.path.join(OVERLAY).join("upper");
        upper.join(place.trim_start_matches('/'))
    }

    /// What an outer container is shown of this folder.
    pub(super) fn control_dir(&self) -> PathBuf {
        self.path.join("porch")
    }

    /// A socket in the porch, for one knock.
    pub(super) fn listen_for_cage(&self) -> io::Result<OwnedFd> {
        let control_dir = self.control_dir();
        match fs::DirBuilder::new().mode(0o755).create(&control_dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // The address is written through this descriptor, for the same reason as the warden's: see
        // `socket`.
        let held = open(
            &control_dir,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        // One of an earlier life; a name that exists cannot be bound.
        let _ = fs::remove_file(control_dir.join(CAGE_LISTENER));
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let address = format!("/proc/self/fd/{}/{CAGE_LISTENER}", held.as_raw_fd());
        bind(&listener, &SocketAddrUnix::new(address)?)?;
        listen(&listener, 1)?;
        Ok(listener)
    }

    pub(super) fn listen(&self) -> io::Result<UnixListener> {
        let (_folder, socket) = self.socket()?;
        let _ = fs::remove_file(&socket);
        UnixListener::bind(socket)
    }

    pub(super) fn connect(&self) -> io::Result<UnixStream> {
        let (_folder, socket) = self.socket()?;
        let stream = UnixStream::connect(socket)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    /// Its files, and not what is known of it.
    pub(super) fn remove_files(&self) -> io::Result<()> {
        for tree in self.trees() {
            match process::remove(&tree) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Everything in it, however it is named, nested or locked. Its own name goes last.
    pub(super) fn remove(&self) -> io::Result<()> {
        // The far end first: without the link in our folder nothing would lead to it any more.
        if let Some(overlay) = self.overlay() {
            match process::remove(&overlay) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        process::remove(&self.path)
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

    fn write<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        // In one piece or not at all: a reader after a crash sees the old or the new.
        let partial = self.path.join(format!("{name}.partial"));
        fs::write(&partial, serde_json::to_vec(value)?)?;
        fs::rename(partial, self.path.join(name))
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let text = fs::read(self.path.join(name)).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

impl SandboxRecord {
    pub(super) fn living(&self) -> Option<(ProcessHandle, OwnedFd)> {
        let life = self.life.clone()?;
        let pidfd = life.open()?;
        Some((life, pidfd))
    }

    /// A kept one that was confirmed once: its files are somebody's work.
    pub(super) fn is_kept(&self) -> bool {
        self.spec.persistence == SandboxPersistence::Kept && self.lived
    }
}

fn private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}
