//! The backend itself.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bollard::query_parameters::ListContainersOptionsBuilder;
use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_sandbox::{
    Backend, BackendError, BackendReadiness, FoundSandbox, LiveUse, SandboxProcess, SandboxSpec,
    SealLayer, WardenLink,
};
use hermetic_types::{BackendDescription, BackendKind, InstallationId, SandboxId, SharedClock};

use crate::address::EngineAddress;
use crate::archive::WardenArchives;
use crate::birth::{self, ContainerStart};
use crate::container::{InspectDepth, state};
use crate::death;
use crate::dialect::understand;
use crate::disk_use;
use crate::engine::{DockerEngine, EngineFacts};
use crate::image::PullListener;
use crate::label::{self, ContainerLabels};
use crate::lacks::EngineLacks;
use crate::link;
use crate::live_use;
use crate::readiness;
use crate::shape::{self, ContainerOptions};
use crate::volume::{self, ContainerVolume, VolumeError};
use crate::watch::{LimitEnd, LimitWatch, WatchStart};

#[derive(Clone, Debug)]
pub struct DockerConfig {
    pub address: EngineAddress,
    pub installation: InstallationId,
    /// The embedded warden program.
    pub program: &'static [u8],
    /// A certificate that programs inside are to trust beside those of the image.
    pub authority: Option<String>,
    /// The image that readiness looks for.
    pub image: String,
    /// Folders of ours that no container may be shown.
    pub own: Vec<PathBuf>,
    /// Volumes whose danger the operator accepts, by their source.
    pub accepted: Vec<String>,
    pub options: ContainerOptions,
    /// Docker's own settings, for its logins at registries.
    pub client_folder: Option<PathBuf>,
    /// Hears how far a pull is.
    pub tell: PullListener,
    /// By which an image that nobody needs is old.
    pub clock: SharedClock,
}

#[derive(Clone)]
pub struct DockerBackend(Arc<DockerState>);

/// What making, finding and ending containers shares.
pub(crate) struct DockerState {
    pub(crate) config: DockerConfig,
    pub(crate) engine: DockerEngine,
    pub(crate) archives: WardenArchives,
    pub(crate) watch: LimitWatch,
    /// Held by whoever pulls, or puts the warden on an image. In it are the containers that images
    /// were to be made of and that are not seen to be gone.
    pub(crate) preparing: tokio::sync::Mutex<Vec<SandboxId>>,
    pub(crate) lacks: EngineLacks,
}

impl DockerBackend {
    /// Reaches for nothing yet: whether there is an engine is [`Backend::readiness`]'s to say.
    pub fn open(config: DockerConfig) -> Result<Self, BackendError> {
        let host = DockerState {
            engine: DockerEngine::new(config.address.clone()),
            archives: WardenArchives::default(),
            watch: LimitWatch::default(),
            preparing: tokio::sync::Mutex::default(),
            lacks: EngineLacks::default(),
            config,
        };
        host.check_volumes(&host.config.options.volumes)?;
        Ok(Self(Arc::new(host)))
    }

    /// Why a sandbox was ended by us, if it was.
    pub fn why_ended(&self, id: &SandboxId) -> Option<LimitEnd> {
        self.0.watch.why_ended(id)
    }
}

impl DockerBackend {
    /// What runs in a sandbox can hurt only that sandbox.
    pub const DESCRIPTION: BackendDescription = BackendDescription::sealed(BackendKind::Docker);
}

impl Backend for DockerBackend {
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
        birth::start(&self.0, spec, ContainerStart::Fresh).boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        async move {
            let found = self.0.find(id, InspectDepth::Quick).await?;
            let found = found
                .filter(|found| found.is_running)
                .ok_or_else(|| missing(id))?;
            self.0
                .watch_over(id, &found.owned.bounds(), WatchStart::Found);
            let docker = self.0.engine.docker().await?;
            link::reach(docker, &found.key)
                .await
                .map_err(|error| self.0.engine.trouble("reach the warden", error))
        }
        .boxed()
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        death::stop(&self.0, id).boxed()
    }

    fn resume<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        birth::start(&self.0, spec, ContainerStart::Again).boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        death::destroy(&self.0, id).boxed()
    }

    fn memory_and_disk(&self) -> BoxFuture<'_, Vec<SealLayer>> {
        readiness::memory_and_disk(&self.0).boxed()
    }

    fn disk_use<'a>(&'a self, ids: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        disk_use::disk_use(&self.0, ids).boxed()
    }

    fn disk_use_on<'a>(
        &'a self,
        ids: &'a [SandboxId],
        folder: &'a Path,
    ) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        async move {
            match disk_use::shares_disk(&self.0, folder).await {
                true => disk_use::disk_use(&self.0, ids).await,
                false => HashMap::new(),
            }
        }
        .boxed()
    }

    fn live_use<'a>(&'a self, ids: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, LiveUse>> {
        live_use::live_use(&self.0, ids).boxed()
    }

    fn processes<'a>(
        &'a self,
        id: &'a SandboxId,
        most: usize,
    ) -> BoxFuture<'a, Option<Vec<SandboxProcess>>> {
        live_use::processes(&self.0, id, most).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
        self.0.list().boxed()
    }
}

impl DockerState {
    async fn list(self: &Arc<Self>) -> Result<Vec<FoundSandbox>, BackendError> {
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&label::filter(&self.config.installation))
            .build();
        let docker = self.engine.brisk().await?;
        let listed = understand(docker.list_containers(Some(options)).await)
            .map_err(|error| self.engine.trouble("list the containers", error))?;
        let mut found: Vec<FoundSandbox> = listed
            .into_iter()
            .filter_map(|one| {
                let owned = ContainerLabels::read(&one.labels?, &self.config.installation)?;
                let word = one.state.map(|state| state.to_string()).unwrap_or_default();
                Some(FoundSandbox {
                    state: state(&owned, &word),
                    id: owned.id,
                    conversation: owned.conversation,
                    lifeline: Some(owned.lifeline),
                })
            })
            .collect();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// The engine's own word, corrected by what it was seen to refuse.
    pub(crate) async fn facts(&self) -> Result<EngineFacts, BackendError> {
        let mut facts = self.engine.facts().await?.clone();
        facts.may_size &= !self.lacks.sizes();
        Ok(facts)
    }

    /// At each start and not once: the engine follows links each time, and whatever can write to a
    /// folder may have put another one there since.
    pub(crate) fn check_mounts(&self, spec: &SandboxSpec) -> Result<(), BackendError> {
        let mut shown = self.config.options.volumes.clone();
        for mount in &spec.mounts {
            if !self.config.address.is_near() {
                return Err(BackendError::Refused {
                    what: format!("showing {} inside", mount.source.display()),
                    why: "the engine is on another machine, which does not have that folder"
                        .to_owned(),
                });
            }
            shown.push(shape::volume_of(mount).map_err(|error| refused(&error))?);
        }
        self.check_volumes(&shown)
    }

    fn check_volumes(&self, volumes: &[ContainerVolume]) -> Result<(), BackendError> {
        let mut own = self.config.own.clone();
        own.extend(self.config.address.socket().map(PathBuf::from));
        let (near, accepted) = (self.config.address.is_near(), &self.config.accepted);
        volumes
            .iter()
            .try_for_each(|volume| volume.check(&own, near, accepted))
            .and_then(|()| volume::check_together(volumes, near, accepted))
            .map_err(|error| refused(&error))
    }
}

impl fmt::Debug for DockerBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DockerBackend")
            .field(&self.0.config.address)
            .finish()
    }
}

pub(crate) fn missing(id: &SandboxId) -> BackendError {
    BackendError::NoSuchSandbox { id: id.clone() }
}

fn refused(error: &VolumeError) -> BackendError {
    let remedy = match error {
        VolumeError::Danger { folder, .. } | VolumeError::Exchangeable { folder, .. } => {
            format!("; to take the risk, add {folder:?} to terminal.docker_accept_risks")
        }
        VolumeError::Malformed { .. } | VolumeError::Option { .. } => String::new(),
    };
    BackendError::Refused {
        what: "a volume".to_owned(),
        why: format!("{error}{remedy}"),
    }
}
