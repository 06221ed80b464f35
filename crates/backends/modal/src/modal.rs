//! The backend itself.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_sandbox::{
    Backend, BackendError, BackendReadiness, FoundSandbox, FoundState, SandboxSpec, WardenLink,
};
use hermetic_types::{BackendDescription, BackendKind, InstallationId, SandboxId, SharedClock};
use tokio::sync::{Mutex, OnceCell};

use crate::birth::{self, ModalStart};
use crate::control::ControlPlane;
use crate::credentials::ModalCredentials;
use crate::death;
use crate::image::ImageIds;
use crate::readiness;
use crate::service::ControlAddress;
use crate::shape::OutboundAccess;
use crate::snapshots::SnapshotFile;

#[derive(Clone, Debug)]
pub struct ModalConfig {
    pub address: ControlAddress,
    pub credentials: ModalCredentials,
    pub installation: InstallationId,
    /// The embedded warden program.
    pub program: &'static [u8],
    /// The app that sandboxes belong to; made where it is missing.
    pub app: String,
    /// The image that readiness speaks of.
    pub image: String,
    /// `modal_snapshots.json`.
    pub snapshots: PathBuf,
    pub outbound: OutboundAccess,
    /// Told to Modal with every question, and by which a token is good.
    pub clock: SharedClock,
}

#[derive(Clone)]
pub struct ModalBackend(Arc<ModalState>);

/// What making, finding and ending sandboxes shares.
pub(crate) struct ModalState {
    pub(crate) config: ModalConfig,
    pub(crate) control: Arc<ControlPlane>,
    pub(crate) program: Bytes,
    pub(crate) app: OnceCell<String>,
    /// What was built already, by name.
    pub(crate) images: Mutex<ImageIds>,
    pub(crate) snapshots: SnapshotFile,
}

impl ModalBackend {
    /// Reaches for nothing yet: whether Modal answers is [`Backend::readiness`]'s to say.
    pub fn new(config: ModalConfig) -> Self {
        let control = ControlPlane::new(
            config.address.clone(),
            config.credentials.clone(),
            Arc::clone(&config.clock),
        );
        Self(Arc::new(ModalState {
            control: Arc::new(control),
            program: Bytes::from_static(config.program),
            app: OnceCell::new(),
            images: Mutex::default(),
            snapshots: SnapshotFile::at(config.snapshots.clone()),
            config,
        }))
    }
}

impl ModalBackend {
    /// What runs in a sandbox can hurt only that sandbox.
    pub const DESCRIPTION: BackendDescription = BackendDescription::sealed(BackendKind::Modal);
}

impl Backend for ModalBackend {
    fn description(&self) -> BackendDescription {
        Self::DESCRIPTION
    }

    fn is_distant(&self) -> bool {
        true
    }

    fn readiness(&self) -> BoxFuture<'_, BackendReadiness> {
        readiness::examine(&self.0).boxed()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        birth::start(&self.0, spec, ModalStart::Fresh).boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        birth::connect(&self.0, id).boxed()
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        death::stop(&self.0, id).boxed()
    }

    fn resume<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        birth::start(&self.0, spec, ModalStart::Again).boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        death::destroy(&self.0, id).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
        self.0.list().boxed()
    }
}

impl ModalState {
    /// What runs at Modal, and what is only a snapshot.
    async fn list(&self) -> Result<Vec<FoundSandbox>, BackendError> {
        // The snapshots first, so that what runs takes their place below.
        let stopped = self.snapshots.ids().await?;
        let mut found: BTreeMap<SandboxId, FoundSandbox> = stopped
            .into_iter()
            .map(|id| (id.clone(), of_snapshot(id)))
            .collect();
        for standing in self.standing(None).await? {
            let owned = standing.owned;
            found.insert(
                owned.id.clone(),
                FoundSandbox {
                    id: owned.id,
                    conversation: owned.conversation,
                    lifeline: Some(owned.lifeline),
                    state: owned.state,
                },
            );
        }
        Ok(found.into_values().collect())
    }
}

fn of_snapshot(id: SandboxId) -> FoundSandbox {
    FoundSandbox {
        id,
        conversation: None,
        lifeline: None,
        state: FoundState::Stopped,
    }
}

impl fmt::Debug for ModalBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ModalBackend")
            .field(&self.0.config.address)
            .finish()
    }
}

pub(crate) fn missing(id: &SandboxId) -> BackendError {
    BackendError::NoSuchSandbox { id: id.clone() }
}
