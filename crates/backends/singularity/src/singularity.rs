//! The backend itself: images are ours to bring, instances the runtime's to make, and what lives
//! in them is the native backend's.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_native::{EndReason, KeptLimits, NativeBackend, OuterContainer as _};
use hermetic_sandbox::{
    Backend, BackendError, BackendReadiness, FoundSandbox, LiveUse, SandboxProcess, SandboxSpec,
    SealLayer, WardenLink,
};
use hermetic_types::{BackendDescription, BackendKind, InstallationId, SandboxId};

use crate::build;
use crate::image::{self, BuildListener, ImageSource};
use crate::instance::InstanceMaker;
use crate::readiness;
use crate::runtime::{ApptainerRuntime, lacking};
use crate::stage;

#[derive(Clone, Debug)]
pub struct SingularityConfig {
    /// A folder of ours alone; it must not be visible in any sandbox.
    pub state: PathBuf,
    pub installation: InstallationId,
    /// The embedded program.
    pub program: &'static [u8],
    /// Nothing where neither runtime is installed.
    pub runtime: Option<ApptainerRuntime>,
    /// The image that readiness looks for.
    pub image: String,
    /// Where sandboxes keep files, on a disk that can hold an overlay.
    pub scratch: PathBuf,
    /// Where images are kept that were built.
    pub cache: PathBuf,
    /// Hears how a build goes.
    pub tell: BuildListener,
}

#[derive(Clone)]
pub struct SingularityBackend(Arc<SingularityState>);

pub(crate) struct SingularityState {
    pub(crate) config: SingularityConfig,
    pub(crate) native: NativeBackend,
    pub(crate) instances: Arc<InstanceMaker>,
    building: tokio::sync::Mutex<()>,
}

impl SingularityBackend {
    /// Prepares the state folder. Whether an instance can be had is [`Backend::readiness`]'s to
    /// say.
    pub fn open(mut config: SingularityConfig) -> Result<Self, BackendError> {
        config.state.push("singularity");
        let list = config.state.join("list");
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&list)
            .map_err(|source| BackendError::failed("make the state folder", source))?;
        config.state = fs::canonicalize(&config.state)
            .map_err(|source| BackendError::failed("find the state folder", source))?;
        let stage = stage::prepare(&config.state, config.program)
            .map_err(|source| BackendError::failed("place the warden", source))?;
        build::sweep(&config.cache);
        let instances = Arc::new(InstanceMaker {
            runtime: config.runtime.clone(),
            installation: config.installation.clone(),
            list: config.state.join("list"),
            stage,
            scratch: config.scratch.clone(),
            cache: config.cache.clone(),
            unlimited: AtomicBool::new(!readiness::may_limit()),
        });
        let native = NativeBackend::in_container(
            hermetic_native::NativeConfig {
                state: config.state.clone(),
                installation: config.installation.clone(),
                program: config.program,
                require: Vec::new(),
                authority: None,
                total: hermetic_native::TotalLimits::default(),
            },
            Arc::clone(&instances) as _,
        )?;
        Ok(Self(Arc::new(SingularityState {
            config,
            native,
            instances,
            building: tokio::sync::Mutex::default(),
        })))
    }

    /// Why a sandbox was stopped by us, if it was.
    pub fn why_ended(&self, id: &SandboxId) -> Option<EndReason> {
        self.0.native.why_ended(id)
    }
}

impl SingularityBackend {
    /// What runs in a sandbox can hurt only that sandbox.
    pub const DESCRIPTION: BackendDescription =
        BackendDescription::sealed(BackendKind::Singularity);
}

impl Backend for SingularityBackend {
    fn description(&self) -> BackendDescription {
        Self::DESCRIPTION
    }

    fn readiness(&self) -> BoxFuture<'_, BackendReadiness> {
        readiness::examine(&self.0).boxed()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        async move {
            self.0.bring(spec).await?;
            let asked = self.0.instances.keeps();
            match self.0.native.create(spec).await {
                // Once more, and only once: the failed create has left nothing, and what was learnt
                // holds for every later one.
                Err(error) if self.0.learns_from(&error, asked) => self.0.native.create(spec).await,
                other => other,
            }
        }
        .boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        self.0.native.connect(id)
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        self.0.native.stop(id)
    }

    fn resume<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        async move {
            self.0.bring(spec).await?;
            let asked = self.0.instances.keeps();
            match self.0.native.resume(spec).await {
                Err(error) if self.0.learns_from(&error, asked) => self.0.native.resume(spec).await,
                other => other,
            }
        }
        .boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        self.0.native.destroy(id)
    }

    fn memory_and_disk(&self) -> BoxFuture<'_, Vec<SealLayer>> {
        std::future::ready(readiness::memory_and_disk(&self.0)).boxed()
    }

    fn disk_use<'a>(&'a self, ids: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        self.0.native.disk_use(ids)
    }

    fn disk_use_on<'a>(
        &'a self,
        ids: &'a [SandboxId],
        folder: &'a Path,
    ) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        // Where nothing was made yet there is no folder for it either, and nobody to be counted.
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        let scratch = device(&self.0.config.scratch);
        match scratch.is_some() && scratch == device(folder) {
            true => self.disk_use(ids),
            false => std::future::ready(HashMap::new()).boxed(),
        }
    }

    fn live_use<'a>(&'a self, ids: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, LiveUse>> {
        self.0.native.live_use(ids)
    }

    fn processes<'a>(
        &'a self,
        id: &'a SandboxId,
        most: usize,
    ) -> BoxFuture<'a, Option<Vec<SandboxProcess>>> {
        self.0.native.processes(id, most)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
        self.0.native.list()
    }
}

impl SingularityState {
    /// The image, built where it has to be.
    async fn bring(&self, spec: &SandboxSpec) -> Result<(), BackendError> {
        let runtime = self.config.runtime.as_ref().ok_or_else(lacking)?;
        let image = ImageSource::of(&spec.system, &self.config.cache)?;
        image::provide(runtime, &image, &self.building, &self.config.tell).await
    }

    /// A runtime that cannot limit says so when it is asked to. From then on we do it by our own
    /// means, as on a host that has no cgroups for us.
    pub(crate) fn learns_from(&self, error: &BackendError, asked: KeptLimits) -> bool {
        let about_groups = std::error::Error::source(error)
            .is_some_and(|source| source.to_string().contains("cgroup"));
        about_groups && self.instances.knows_no_limits(asked)
    }
}

impl fmt::Debug for SingularityBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self
            .0
            .config
            .runtime
            .as_ref()
            .map(ApptainerRuntime::program);
        f.debug_tuple("SingularityBackend")
            .field(
                &program
                    .and_then(|program| program.file_name())
                    .unwrap_or(OsStr::new("none")),
            )
            .finish()
    }
}
