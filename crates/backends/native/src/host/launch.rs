//! From a spec to a sealed, confirmed sandbox, or to nothing.

mod pending;

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use hermetic_sandbox::{BackendError, SandboxPersistence, SandboxSpec};
use hermetic_types::SandboxId;
use rustix::net::sockopt::{
    Timeout, set_socket_send_buffer_size, set_socket_send_buffer_size_force, set_socket_timeout,
};

use self::pending::PendingLaunch;
use super::children::NewChild;
use super::disk_limit::DiskLimit;
use super::folder::{LOCK_TIMEOUT, SandboxFolder};
use super::inner_death::InnerStderr;
use super::kernel;
use super::mounts;
use super::native::{NativeHost, RequiredLayer, StartKind, missing};
use super::outer_container;
use super::planning;
use super::record::{ExternalResources, SandboxRecord};
use super::teardown;
use super::waiting_cage::WaitingCage;
use crate::plan::{CagePlan, WorkspaceStorage};
use hermetic_sandbox::host as process;

/// How long a cage may take to be built. No host needs this long; a cage that does is stuck.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(20);

/// A confirmed sandbox that nobody has taken charge of yet. Dropped, it leaves what was there before it:
/// nothing, or the files of its earlier lives.
pub(super) struct LaunchedSandbox {
    host: Arc<NativeHost>,
    start: StartKind,
    parts: Option<(SandboxStreams, NewChild)>,
    landlock: Option<u8>,
    /// Held until somebody has taken charge or all of it is gone: whoever waits for it would otherwise
    /// begin the next life, and ours would be seen out by ending that one.
    lock: Option<OwnedFd>,
}

/// The streams that lead into a sandbox and out of it.
pub(super) struct SandboxStreams {
    pub(super) link: UnixStream,
    /// Listens on the sandbox's loopback, for us to accept.
    pub(super) exit: Option<TcpListener>,
    /// Where it says why it dies.
    pub(super) stderr: Option<InnerStderr>,
}

impl LaunchedSandbox {
    /// The Landlock ABI that holds in it.
    pub(super) fn landlock(&self) -> Option<u8> {
        self.landlock
    }

    /// Nothing when they were taken before. The sandbox stays locked as long as this value lives.
    pub(super) fn take_parts(&mut self) -> Option<(SandboxStreams, NewChild)> {
        self.parts.take()
    }
}

impl Drop for LaunchedSandbox {
    fn drop(&mut self) {
        if let Some((_, started)) = self.parts.take() {
            // The processes end before their folder goes: what runs may still write there.
            process::kill(started.pidfd.as_fd(), LAUNCH_TIMEOUT);
            let NewChild {
                id,
                lifeline,
                keeper,
                ..
            } = started;
            drop(lifeline);
            if let Some(keeper) = keeper {
                keeper.reap();
            }
            let _ = self.start.undo(&self.host, &id);
        }
    }
}

impl StartKind {
    /// Leaves what was there before this start, for one who holds the lock.
    fn undo(self, host: &NativeHost, id: &SandboxId) -> Result<(), BackendError> {
        match self {
            Self::Fresh => teardown::remove(host, id),
            Self::Again => teardown::halt(host, id),
        }
    }
}

/// Makes a new sandbox. It is written down before anything exists that would have to be cleaned up.
pub(super) fn create(
    host: &Arc<NativeHost>,
    spec: &SandboxSpec,
) -> Result<LaunchedSandbox, BackendError> {
    // Everything that can be refused is refused before anything is made.
    check(host, spec)?;
    let folder = host.folder(&spec.id);
    let planned = planning::plan(host, &folder, spec)?;
    let disk = DiskLimit::choose(host, spec, &planned, None)?;
    let early = match host.outer_container {
        None => Some(host.early.take_or_start(&host.program)?),
        // An outer container would outlive us, so it is written down first.
        Some(_) => None,
    };
    let made = folder.make(spec, made(&planned, &disk));
    let lock = made.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => BackendError::Refused {
            what: format!("sandbox {}", spec.id),
            why: "the id is taken".to_owned(),
        },
        _ => BackendError::failed("write down the sandbox", source),
    })?;
    let prepared = prepare(host, &folder, &planned).and_then(|()| disk.begin(&folder, spec));
    let started = prepared.and_then(|()| match early {
        Some(cage) => launch(host, cage, &folder, spec, &planned, &lock),
        None => launch_in_container(host, &folder, spec, planned, &lock),
    });
    launched_or_undone(host, &spec.id, StartKind::Fresh, lock, started)
}

pub(super) fn resume(
    host: &Arc<NativeHost>,
    spec: &SandboxSpec,
    is_wanted: impl Fn() -> bool,
) -> Result<LaunchedSandbox, BackendError> {
    check(host, spec)?;
    let folder = host.folder(&spec.id);
    let lock = match folder.lock(LOCK_TIMEOUT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing(&spec.id)),
        lock => lock.map_err(|source| BackendError::failed("lock the sandbox", source))?,
    };
    // Asked with the lock held: whoever had it before us may have come after our caller went away, and
    // what lives now is his.
    if !is_wanted() {
        let gone = "whoever asked for it went away";
        return Err(BackendError::failed("resume the sandbox", gone));
    }
    let before = earlier_record(&folder, spec)?;
    // Whatever is left of its last life must not meet the next one.
    teardown::halt(host, &spec.id)?;
    folder.forget_ended();
    let started = planning::plan(host, &folder, spec).and_then(|planned| {
        let disk = DiskLimit::choose(host, spec, &planned, Some(&before))?;
        // Before its files are given to a project, so that a crash leaves none that nobody knows.
        let note = |disk: &DiskLimit| {
            let noted = folder.note_made(before.clone(), made(&planned, disk));
            noted.map_err(|source| BackendError::failed("write down the limits", source))
        };
        note(&disk)?;
        let chosen = disk.project();
        let disk = disk.renew(host, &folder, spec)?;
        if disk.project() != chosen {
            note(&disk)?;
        }
        if host.outer_container.is_some() {
            return launch_in_container(host, &folder, spec, planned, &lock);
        }
        let cage = host.early.take_or_start(&host.program)?;
        launch(host, cage, &folder, spec, &planned, &lock)
    });
    launched_or_undone(host, &spec.id, StartKind::Again, lock, started)
}

/// Passes the lock on to the launched. Where there is none, what is left of it goes before the lock does.
fn launched_or_undone(
    host: &NativeHost,
    id: &SandboxId,
    start: StartKind,
    lock: OwnedFd,
    started: Result<LaunchedSandbox, BackendError>,
) -> Result<LaunchedSandbox, BackendError> {
    match started {
        Ok(mut launched) => {
            launched.start = start;
            launched.lock = Some(lock);
            Ok(launched)
        }
        Err(error) => {
            // Under the lock still: let go first, another could begin on what we are about to
            // remove.
            let _ = start.undo(host, id);
            drop(lock);
            Err(error)
        }
    }
}

/// What the folder says of the sandbox's earlier lives. Whoever resumes one knows that it lived. A power cut
/// may have left its files and not what was written about them a moment before, so that the caller's word
/// is taken; what ran there ended with the machine.
fn earlier_record(
    folder: &SandboxFolder,
    spec: &SandboxSpec,
) -> Result<SandboxRecord, BackendError> {
    match folder.record() {
        Some(record) if record.is_kept() => return Ok(record),
        Some(record) if record.spec.persistence != SandboxPersistence::Kept => {
            return Err(missing(&spec.id));
        }
        _ if spec.persistence != SandboxPersistence::Kept => return Err(missing(&spec.id)),
        _ => {}
    }
    // Damaged in another way, with its processes alive: nothing here says which they are.
    if folder.connect().is_ok() {
        return Err(BackendError::Refused {
            what: format!("sandbox {}", spec.id),
            why: "what was written about it cannot be read, and something still runs in it"
                .to_owned(),
        });
    }
    tracing::warn!(sandbox = %spec.id, "what was written about a sandbox is lost; its files are taken up");
    Ok(SandboxRecord {
        spec: spec.clone(),
        made: ExternalResources {
            groups: Vec::new(),
            on_disk: true,
            // Its files are given to another project when they are taken up.
            project: None,
        },
        lived: true,
        life: None,
    })
}

fn check(host: &NativeHost, spec: &SandboxSpec) -> Result<(), BackendError> {
    if spec.installation != host.config.installation {
        return Err(BackendError::Refused {
            what: format!("sandbox {}", spec.id),
            why: "it belongs to another installation".to_owned(),
        });
    }
    kernel::check()?;
    host.groups.settle();
    host.groups
        .check(host.demands(RequiredLayer::CgroupLimits))?;
    mounts::check_environment(&spec.env)
}

fn prepare(
    host: &NativeHost,
    folder: &SandboxFolder,
    planned: &CagePlan,
) -> Result<(), BackendError> {
    let make = || {
        if let Some(outer_container) = &host.outer_container {
            folder.make_overlay(&outer_container.files(&folder.id))?;
        }
        folder.make_files(planned.owner())
    };
    match planned.files {
        WorkspaceStorage::Disk { .. } => {
            make().map_err(|source| BackendError::failed("make the workspace", source))
        }
        WorkspaceStorage::Memory => Ok(()),
    }
}

fn launch_in_container(
    host: &Arc<NativeHost>,
    folder: &SandboxFolder,
    spec: &SandboxSpec,
    planned: CagePlan,
    lock: &OwnedFd,
) -> Result<LaunchedSandbox, BackendError> {
    let outer_container = host
        .outer_container
        .as_ref()
        .ok_or_else(|| missing(&spec.id))?;
    let overlay = folder.overlay();
    let cage = outer_container::start(
        &host.program,
        &**outer_container,
        folder,
        spec,
        &planned.binds,
        overlay,
        lock,
    )?;
    let planned = planned.seen_from_inside();
    launch(host, cage, folder, spec, &planned, lock)
}

fn made(planned: &CagePlan, disk: &DiskLimit) -> ExternalResources {
    ExternalResources {
        groups: planned
            .groups
            .iter()
            .map(|group| group.folder.clone())
            .collect(),
        on_disk: matches!(planned.files, WorkspaceStorage::Disk { .. }),
        project: disk.project(),
    }
}

/// The usual buffer holds less than two full frames, so one side always waits for the other.
fn widen(end: &UnixStream) {
    const ROOM: usize = 512 << 10;
    // Only root may have more than the system's most; less is slower and nothing else.
    let _ = set_socket_send_buffer_size_force(end, ROOM)
        .or_else(|_| set_socket_send_buffer_size(end, ROOM));
}

fn launch(
    host: &Arc<NativeHost>,
    cage: WaitingCage,
    folder: &SandboxFolder,
    spec: &SandboxSpec,
    planned: &CagePlan,
    lock: &OwnedFd,
) -> Result<LaunchedSandbox, BackendError> {
    let listener = folder
        .listen()
        .map_err(|source| BackendError::failed("listen for the warden's callers", source))?;
    let (link, theirs) =
        UnixStream::pair().map_err(|source| BackendError::failed("make the link", source))?;
    widen(&link);
    widen(&theirs);
    let (control, outer, stderr, keeper) = cage.into_parts();
    // The cage reports from a process that may hang in the kernel; without a timeout this thread
    // would hang with it.
    let _ = set_socket_timeout(&control, Timeout::Recv, Some(LAUNCH_TIMEOUT));
    let mut launching = PendingLaunch {
        outer: Some(outer),
        pidfd: None,
        stderr,
        keeper,
    };
    let sent = control.send(planned, &[listener.as_fd(), theirs.as_fd(), lock.as_fd()]);
    // Ours are copies now. With `theirs` held here the link would never report that the warden is
    // gone.
    drop((listener, theirs));
    if let Err(source) = sent {
        // Before the rest is seen out: who waits at the other end goes by this.
        drop(control);
        let source = launching.why_silent(source);
        return Err(BackendError::failed("send the plan", source));
    }
    let (started, sealed, stderr) = launching.finish(host, control, folder, spec)?;
    link.set_nonblocking(true)
        .map_err(|source| BackendError::failed("wait on the link", source))?;
    Ok(LaunchedSandbox {
        host: Arc::clone(host),
        start: StartKind::Fresh,
        parts: Some((
            SandboxStreams {
                link,
                exit: sealed.exit,
                stderr,
            },
            started,
        )),
        landlock: sealed.landlock,
        lock: None,
    })
}
