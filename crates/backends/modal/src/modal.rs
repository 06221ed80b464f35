//! The backend itself.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_sandbox::{Backend, BackendError, Found, FoundState, Link, Readiness, Spec};
use hermetic_types::{BackendDescription, BackendKind, InstallationId, SandboxId};
use tokio::sync::{Mutex, OnceCell};

use crate::birth::{self, Start};
use crate::control::Control;
use crate::credentials::Credentials;
use crate::death;
use crate::image::Images;
use crate::readiness;
use crate::service::Address;
use crate::shape::Outbound;
use crate::snapshots::Snapshots;

#[derive(Clone, Debug)]
pub struct Config {
    pub address: Address,
    pub credentials: Credentials,
    pub installation: InstallationId,
    /// The embedded warden program.
    pub program: &'static [u8],
    /// The app that sandboxes belong to; made where it is missing.
    pub app: String,
    /// The image that readiness speaks of.
    pub image: String,
    /// `modal_snapshots.json`.
    pub snapshots: PathBuf,
    pub outbound: Outbound,
}

#[derive(Clone)]
pub struct Modal(Arc<Host>);

/// What making, finding and ending sandboxes shares.
pub(crate) struct Host {
    pub(crate) config: Config,
    pub(crate) control: Arc<Control>,
    pub(crate) program: Bytes,
    pub(crate) app: OnceCell<String>,
    /// What was built already, by name.
    pub(crate) images: Mutex<Images>,
    pub(crate) snapshots: Snapshots,
}

impl Modal {
    /// Reaches for nothing yet: whether Modal answers is [`Backend::readiness`]'s to say.
    pub fn new(config: Config) -> Self {
        let control = Control::new(config.address.clone(), config.credentials.clone());
        Self(Arc::new(Host {
            control: Arc::new(control),
            program: Bytes::from_static(config.program),
            app: OnceCell::new(),
            images: Mutex::default(),
            snapshots: Snapshots::at(config.snapshots.clone()),
            config,
        }))
    }
}

impl Modal {
    /// What runs in a sandbox can hurt only that sandbox.
    pub const DESCRIPTION: BackendDescription = BackendDescription::sealed(BackendKind::Modal);
}

impl Backend for Modal {
    fn description(&self) -> BackendDescription {
        Self::DESCRIPTION
    }

    fn is_distant(&self) -> bool {
        true
    }

    fn readiness(&self) -> BoxFuture<'_, Readiness> {
        readiness::examine(&self.0).boxed()
    }

    fn create<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Link, BackendError>> {
        birth::start(&self.0, spec, Start::Fresh).boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Link, BackendError>> {
        birth::connect(&self.0, id).boxed()
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        death::stop(&self.0, id).boxed()
    }

    fn resume<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Link, BackendError>> {
        birth::start(&self.0, spec, Start::Again).boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        death::destroy(&self.0, id).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Found>, BackendError>> {
        self.0.list().boxed()
    }
}

impl Host {
    /// What runs at Modal, and what is only a snapshot.
    async fn list(&self) -> Result<Vec<Found>, BackendError> {
        let stopped = self.snapshots.ids().await?;
        let mut found: BTreeMap<SandboxId, Found> = stopped
            .into_iter()
            .map(|id| (id.clone(), of_snapshot(id)))
            .collect();
        for standing in self.standing(None).await? {
            let owned = standing.owned;
            found.insert(
                owned.id.clone(),
                Found {
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

fn of_snapshot(id: SandboxId) -> Found {
    Found {
        id,
        conversation: None,
        lifeline: None,
        state: FoundState::Stopped,
    }
}

impl fmt::Debug for Modal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Modal")
            .field(&self.0.config.address)
            .finish()
    }
}

pub(crate) fn missing(id: &SandboxId) -> BackendError {
    BackendError::NoSuchSandbox { id: id.clone() }
}
