//! One container of ours, looked up by its name and known by its labels.

use std::path::PathBuf;

use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum};
use bollard::query_parameters::InspectContainerOptionsBuilder;
use hermetic_sandbox::{BackendError, FoundState, SandboxPersistence};
use hermetic_types::SandboxId;

use crate::dialect::{is_gone, understand};
use crate::docker::DockerState;
use crate::label::{self, ContainerLabels};

#[derive(Clone, Debug)]
pub(crate) struct OwnedContainer {
    /// The engine's own id: the name could pass on to another, this cannot.
    pub(crate) key: String,
    pub(crate) owned: ContainerLabels,
    pub(crate) is_running: bool,
    /// On the engine's machine; zero when it does not run.
    pub(crate) pid: i64,
    /// Whether its stdin and stdout are the first link; those of an earlier version are not.
    pub(crate) speaks_on_stdio: bool,
    /// As the image or we said.
    pub(crate) user: Option<String>,
    /// Where the engine keeps what it wrote, on the engine's machine.
    pub(crate) layer: Option<PathBuf>,
    /// What its layer takes, where that was asked.
    pub(crate) layer_bytes: Option<u64>,
}

/// Whether the engine is to add up the layer, which takes it a walk over all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InspectDepth {
    Quick,
    Weigh,
}

impl DockerState {
    /// Nothing where there is none, or none of ours.
    pub(crate) async fn find(
        &self,
        id: &SandboxId,
        look: InspectDepth,
    ) -> Result<Option<OwnedContainer>, BackendError> {
        let docker = self.engine.docker().await?;
        let options = InspectContainerOptionsBuilder::new()
            .size(look == InspectDepth::Weigh)
            .build();
        // Found by its name, which is ours to choose; known by its labels, which only its maker can
        // write.
        let name = label::name(id);
        match understand(docker.inspect_container(&name, Some(options)).await) {
            Ok(found) => Ok(self.ours(found).filter(|found| &found.owned.id == id)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(self.engine.trouble("look at the container", error)),
        }
    }

    fn ours(&self, found: ContainerInspectResponse) -> Option<OwnedContainer> {
        let config = found.config?;
        let labels = config.labels?;
        let state = found.state.unwrap_or_default();
        Some(OwnedContainer {
            key: found.id?,
            owned: ContainerLabels::read(&labels, &self.config.installation)?,
            is_running: matches!(
                state.status,
                Some(ContainerStateStatusEnum::RUNNING | ContainerStateStatusEnum::PAUSED)
            ),
            pid: state.pid.unwrap_or_default(),
            speaks_on_stdio: config.open_stdin == Some(true),
            user: config.user,
            layer: found
                .graph_driver
                .and_then(|mut driver| driver.data.remove("UpperDir"))
                .map(PathBuf::from),
            layer_bytes: found.size_rw.and_then(|size| u64::try_from(size).ok()),
        })
    }
}

/// What the engine's word for a container's state means here.
pub(crate) fn state(owned: &ContainerLabels, word: &str) -> FoundState {
    match word {
        "running" | "paused" | "restarting" => FoundState::Running,
        "removing" | "stopping" => FoundState::Busy,
        // Never started: somebody is at it, or died over it.
        "created" if owned.is_being_made() => FoundState::Busy,
        "exited" if owned.persistence == SandboxPersistence::Kept => FoundState::Stopped,
        _ => FoundState::Broken,
    }
}
