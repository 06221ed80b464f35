//! The backend itself: which step does what, in the order of a sandbox's life.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_sandbox::{
    Backend, BackendError, BackendReadiness, FoundSandbox, FoundState, LiveUse, OwnProgram,
    SandboxPersistence, SandboxProcess, SandboxSpec, SealLayer, WardenLink, try_command,
    try_to_say,
};
use hermetic_types::{BackendDescription, BackendKind, InstallationId, SandboxId};

use super::children::ChildSandboxes;
use super::disk_use::disk_use;
use super::etc;
use super::folder::{FilesLayout, SandboxFolder};
use super::groups::OwnGroups;
use super::head_start::{HeadStart, PendingHeadStart};
use super::inner_death::{ExplainedLink, UnansweredWarden};
use super::launch::{self, LaunchedSandbox, SandboxStreams};
use super::live_use::{live_use, processes};
use super::outer_container::OuterContainer;
use super::program_file;
use super::readiness;
use super::record::SandboxRecord;
use super::teardown;
use super::total::TotalLimits;
use super::waiting_cage::{EarlyCage, EarlyStart};
use super::watch::{EndReason, ResourceWatch};
use hermetic_sandbox::host::InsideProgram;

/// An empty folder that every sandbox mounts its root on, each in a namespace of its own.
const MOUNT_POINT: &str = "root";

/// Holds a folder for each sandbox.
pub(super) const SANDBOXES: &str = "sandboxes";

/// What a native backend starts with.
#[derive(Clone, Debug)]
pub struct NativeConfig {
    /// A folder of ours alone; it must not be visible in any sandbox.
    pub state: PathBuf,
    pub installation: InstallationId,
    /// The embedded program that becomes the cage.
    pub program: &'static [u8],
    /// Layers that the operator insists on. A host without one refuses.
    pub require: Vec<RequiredLayer>,
    /// A certificate, in PEM, that programs in sandboxes believe besides the host's own.
    pub authority: Option<String>,
    /// What all sandboxes of this installation may use together.
    pub total: TotalLimits,
}

/// A layer that a sandbox can live without, unless the operator says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredLayer {
    Landlock,
    /// Memory, processes and CPU time counted by cgroups, not by weaker means.
    CgroupLimits,
    /// Files on disk bounded by the kernel, not by counting.
    DiskLimit,
}

impl RequiredLayer {
    pub const ALL: [Self; 3] = [Self::Landlock, Self::CgroupLimits, Self::DiskLimit];

    /// As `terminal.native_require` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::CgroupLimits => "cgroup",
            Self::DiskLimit => "disk",
        }
    }
}

/// The backend that makes native sandboxes. Clones share everything.
#[derive(Clone)]
pub struct NativeBackend(Arc<NativeHost>);

/// What creating, finding and ending sandboxes shares.
pub(super) struct NativeHost {
    pub(super) config: NativeConfig,
    pub(super) program: InsideProgram,
    pub(super) groups: OwnGroups,
    pub(super) etc: PathBuf,
    pub(super) children: ChildSandboxes,
    pub(super) watch: ResourceWatch,
    pub(super) outer_container: Option<Arc<dyn OuterContainer>>,
    pub(super) early: EarlyCage,
}

impl NativeBackend {
    /// Prepares the state folder. Whether this host can hold a sandbox is [`Backend::readiness`]'s
    /// to say.
    pub fn open(config: NativeConfig) -> Result<Self, BackendError> {
        Self::open_starting(config, EarlyStart::Never)
    }

    /// The same for one who says when first processes of sandboxes are started.
    pub fn open_starting(config: NativeConfig, early: EarlyStart) -> Result<Self, BackendError> {
        let config = prepare(config)?;
        let start = || HeadStart::make(&config.state, &config.installation, config.program, early);
        // Where the program is copied, that takes about as long as looking through /etc.
        let (started, etc) = thread::scope(|scope| {
            let other = thread::Builder::new().spawn_scoped(scope, start);
            let etc = etc::prepare(&config.state, config.authority.as_deref());
            let started = match other {
                Ok(other) => other.join().unwrap_or_else(|_| start()),
                Err(_) => start(),
            };
            (started, etc)
        });
        Self::assemble(config, started?, etc)
    }

    /// The same for one who creates a sandbox at once and has begun to open it before.
    pub fn open_begun(config: NativeConfig, begun: PendingHeadStart) -> Result<Self, BackendError> {
        let config = prepare(config)?;
        let etc = etc::prepare(&config.state, config.authority.as_deref());
        let started = match begun.take(&config.state, &config.installation) {
            Some(started) => started,
            None => HeadStart::make(
                &config.state,
                &config.installation,
                config.program,
                EarlyStart::Once,
            )?,
        };
        Self::assemble(config, started, etc)
    }

    fn assemble(
        config: NativeConfig,
        started: HeadStart,
        etc: io::Result<PathBuf>,
    ) -> Result<Self, BackendError> {
        let etc = etc.map_err(|source| BackendError::failed("prepare /etc", source))?;
        let (program, early, groups) = started.into_parts();
        Ok(Self(Arc::new(NativeHost {
            program,
            etc,
            groups: groups.with_total(config.total),
            children: ChildSandboxes::default(),
            watch: ResourceWatch::default(),
            outer_container: None,
            early,
            config,
        })))
    }

    /// Sandboxes of the same kind, each in an outer container that somebody else makes.
    pub fn in_container(
        config: NativeConfig,
        outer_container: Arc<dyn OuterContainer>,
    ) -> Result<Self, BackendError> {
        let config = prepare(config)?;
        Ok(Self(Arc::new(NativeHost {
            program: hold(config.program)?,
            etc: PathBuf::new(),
            groups: OwnGroups::none(),
            children: ChildSandboxes::default(),
            watch: ResourceWatch::default(),
            outer_container: Some(outer_container),
            early: EarlyCage::new(EarlyStart::Never),
            config,
        })))
    }

    /// Builds a sandbox, runs a command in it to its output, and takes it down again. The Landlock ABI that
    /// held in it.
    pub async fn try_out(&self, spec: &SandboxSpec) -> Result<Option<u8>, BackendError> {
        let (host, wanted) = (Arc::clone(&self.0), spec.clone());
        let launched = blocking(move || launch::create(&host, &wanted)).await?;
        let landlock = launched.landlock();
        let answered = try_command(launched.keep(&self.0)?).await;
        // Whatever it answered: a trial that failed must not stay behind either.
        self.destroy(&spec.id).await?;
        answered.map_err(|source| BackendError::failed("run a command in a sandbox", source))?;
        Ok(landlock)
    }

    /// Runs a program of ours in a sandbox made for it, which is to say exactly that.
    pub(super) async fn try_to_say(
        &self,
        spec: &SandboxSpec,
        program: OwnProgram,
        expected: &'static str,
    ) -> Result<(), BackendError> {
        let link = self.start(spec, StartKind::Fresh).await?;
        let said = try_to_say(link, program, expected).await;
        self.destroy(&spec.id).await?;
        said.map_err(|source| BackendError::failed("run a command in a sandbox", source))
    }

    /// Why a sandbox was stopped by us, if it was.
    pub fn why_ended(&self, id: &SandboxId) -> Option<EndReason> {
        self.0.folder(id).ended()
    }

    async fn start(
        &self,
        spec: &SandboxSpec,
        start: StartKind,
    ) -> Result<WardenLink, BackendError> {
        let host = Arc::clone(&self.0);
        let spec = spec.clone();
        // Gone when this future is dropped, which is all that the work below learns of it.
        let caller = Arc::new(());
        let waiting = Arc::downgrade(&caller);
        // Blocking: a handful of small file operations and a wait of milliseconds. If the caller
        // goes away meanwhile, what was launched is dropped, which ends it.
        let launched = blocking(move || match start {
            StartKind::Fresh => launch::create(&host, &spec),
            StartKind::Again => launch::resume(&host, &spec, || waiting.strong_count() > 0),
        })
        .await?;
        drop(caller);
        let link = launched.keep(&self.0);
        if self.0.early.is_kept_ready() {
            let host = Arc::clone(&self.0);
            // After the sandbox is handed over, and not waited for: nobody is to pay for the next
            // one's start.
            tokio::task::spawn_blocking(move || host.early.start(&host.program));
        }
        link
    }
}

/// The state folder, and where it really is.
fn prepare(config: NativeConfig) -> Result<NativeConfig, BackendError> {
    for name in [SANDBOXES, MOUNT_POINT] {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(config.state.join(name))
            .map_err(|source| BackendError::failed("make the state folder", source))?;
    }
    // Links are resolved once, here: mounts and overlaps are judged by what a path really is, and a
    // cage follows none.
    let state = fs::canonicalize(&config.state)
        .map_err(|source| BackendError::failed("find the state folder", source))?;
    Ok(NativeConfig { state, ..config })
}

/// As a file that is there already, or else as a copy.
pub(super) fn hold_uncopied(state: &Path, program: &[u8]) -> Result<InsideProgram, BackendError> {
    program_file::hold(state, program).or_else(|why| {
        tracing::debug!(%why, "the inner program is copied into memory");
        hold(program)
    })
}

fn hold(program: &[u8]) -> Result<InsideProgram, BackendError> {
    InsideProgram::seal(program)
        .map_err(|source| BackendError::failed("hold the cage program", source))
}

/// Tells whether a life is a sandbox's first.
#[derive(Clone, Copy)]
pub(super) enum StartKind {
    Fresh,
    Again,
}

impl NativeBackend {
    /// What runs in a sandbox can hurt only that sandbox.
    pub const DESCRIPTION: BackendDescription = BackendDescription::sealed(BackendKind::Native);
}

impl Backend for NativeBackend {
    fn description(&self) -> BackendDescription {
        Self::DESCRIPTION
    }

    fn readiness(&self) -> BoxFuture<'_, BackendReadiness> {
        async move { readiness::examine(self, &self.0).await }.boxed()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        self.start(spec, StartKind::Fresh).boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        async move {
            let folder = self.0.folder(id);
            let record = folder.record().ok_or_else(|| missing(id))?;
            let living = record.living().ok_or_else(|| missing(id))?;
            let stream = folder
                .connect()
                .map_err(|source| BackendError::failed("reach the warden", source))?;
            // Also here: the process that made it may be gone, and its watch with it.
            self.0.watch_over(&folder, &record, living);
            let stream = tokio::net::UnixStream::from_std(stream)
                .map_err(|source| BackendError::failed("wait for the warden", source))?;
            Ok(WardenLink::new(stream))
        }
        .boxed()
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        let host = Arc::clone(&self.0);
        let id = id.clone();
        async move {
            blocking(move || {
                let folder = host.folder(&id);
                match folder.record().map(|record| record.spec.persistence) {
                    Some(SandboxPersistence::Kept) => teardown::stop(&host, &id),
                    Some(_) => teardown::destroy(&host, &id),
                    // What was written about it is lost, as after a power cut; nothing runs in it.
                    None if folder.is_there() && folder.connect().is_err() => {
                        teardown::stop(&host, &id)
                    }
                    None => Err(missing(&id)),
                }
            })
            .await
        }
        .boxed()
    }

    fn resume<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        self.start(spec, StartKind::Again).boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        let host = Arc::clone(&self.0);
        let id = id.clone();
        blocking(move || teardown::destroy(&host, &id)).boxed()
    }

    fn memory_and_disk(&self) -> BoxFuture<'_, Vec<SealLayer>> {
        let host = Arc::clone(&self.0);
        async move {
            let known =
                tokio::task::spawn_blocking(move || readiness::memory_and_disk(&host)).await;
            known.unwrap_or_default()
        }
        .boxed()
    }

    fn disk_use<'a>(&'a self, ids: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        let folders: Vec<_> = ids.iter().map(|id| self.0.folder(id)).collect();
        let host = Arc::clone(&self.0);
        async move {
            let counted = tokio::task::spawn_blocking(move || disk_use(&host, &folders)).await;
            counted.unwrap_or_default()
        }
        .boxed()
    }

    fn live_use<'a>(&'a self, ids: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, LiveUse>> {
        let folders: Vec<_> = ids.iter().map(|id| self.0.folder(id)).collect();
        async move {
            let looked = tokio::task::spawn_blocking(move || live_use(&folders)).await;
            looked.unwrap_or_default()
        }
        .boxed()
    }

    fn processes<'a>(
        &'a self,
        id: &'a SandboxId,
        most: usize,
    ) -> BoxFuture<'a, Option<Vec<SandboxProcess>>> {
        let folder = self.0.folder(id);
        async move {
            let looked = tokio::task::spawn_blocking(move || processes(&folder, most)).await;
            looked.ok().flatten()
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
        let host = Arc::clone(&self.0);
        blocking(move || host.list()).boxed()
    }
}

impl NativeHost {
    pub(super) fn folder(&self, id: &SandboxId) -> SandboxFolder {
        let layout = match self.outer_container {
            None => FilesLayout::Beside,
            Some(_) => FilesLayout::Overlay,
        };
        SandboxFolder::new(&self.sandboxes(), id, layout)
    }

    /// Whether the kernel counts it, by groups of ours or by the outer container's.
    pub(super) fn bounds_memory(&self) -> bool {
        let container = self.outer_container.as_ref();
        container.map_or_else(
            || self.groups.bound_memory(),
            |container| container.keeps().memory,
        )
    }

    pub(super) fn bounds_cpu(&self) -> bool {
        let container = self.outer_container.as_ref();
        container.map_or_else(
            || self.groups.bound_cpu(),
            |container| container.keeps().cpu,
        )
    }

    pub(super) fn demands(&self, layer: RequiredLayer) -> bool {
        self.config.require.contains(&layer)
    }

    pub(super) fn mount_point(&self) -> PathBuf {
        self.config.state.join(MOUNT_POINT)
    }

    pub(super) fn sandboxes(&self) -> PathBuf {
        self.config.state.join(SANDBOXES)
    }

    fn list(&self) -> Result<Vec<FoundSandbox>, BackendError> {
        let unreadable = |source: io::Error| BackendError::failed("read the state folder", source);
        let mut found = Vec::new();
        for entry in fs::read_dir(self.sandboxes()).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            found.push(self.describe(id));
        }
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    fn describe(&self, id: SandboxId) -> FoundSandbox {
        let folder = self.folder(&id);
        let record = folder.record();
        let living = record.as_ref().and_then(SandboxRecord::living);
        let state = match (&record, living) {
            (Some(record), Some(living)) => {
                // Listing is what a gateway begins with, so that the sandboxes of the one before it
                // are watched again from then on.
                self.watch_over(&folder, record, living);
                FoundState::Running
            }
            (Some(record), None) if record.is_kept() => FoundState::Stopped,
            // Asked last: somebody may be making it, or seeing it out, and neither is a thing to
            // clean up after.
            _ if folder.is_locked() => FoundState::Busy,
            _ => FoundState::Broken,
        };
        FoundSandbox {
            id,
            lifeline: record.as_ref().map(|record| record.spec.lifeline),
            conversation: record.map(|record| record.spec.conversation),
            state,
        }
    }
}

impl LaunchedSandbox {
    /// From here on the sandbox is accounted for by its folder and outlives this call.
    fn keep(mut self, host: &Arc<NativeHost>) -> Result<WardenLink, BackendError> {
        let (SandboxStreams { link, exit, stderr }, started) = self
            .take_parts()
            .expect("the parts are only taken here, and here takes self");
        let folder = host.folder(&started.id);
        // Collected from here on: `self`, which still holds the lock, has nothing left to end when
        // it goes.
        let ended = host.children.adopt(started);
        if let Some(record) = folder.record()
            && let Some(living) = record.living()
        {
            host.watch_over(&folder, &record, living);
        }
        let stream = tokio::net::UnixStream::from_std(link)
            .map_err(|source| BackendError::failed("wait for the warden", source))?;
        let unanswered = stderr.map(|stderr| UnansweredWarden { stderr, ended });
        Ok(WardenLink::new(ExplainedLink::new(stream, unanswered)).with_exit(exit))
    }
}

impl Drop for NativeHost {
    fn drop(&mut self) {
        self.groups.leave();
    }
}

impl fmt::Debug for NativeBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NativeBackend")
            .field(&self.0.config.state)
            .finish()
    }
}

pub(super) fn missing(id: &SandboxId) -> BackendError {
    BackendError::NoSuchSandbox { id: id.clone() }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackendError> + Send + 'static,
) -> Result<T, BackendError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|source| Err(BackendError::failed("finish the work", source)))
}

/// Whether the path is, contains or lies in the other.
pub(super) fn overlaps(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
