//! The backend itself.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_sandbox::{
    Backend, BackendError, BackendReadiness, FoundSandbox, SandboxSpec, WardenLink,
};
use hermetic_types::{BackendDescription, BackendKind, InstallationId, SandboxId};

use super::access::ClusterAccess;
use super::birth::{self, PodStart};
use super::client::ClusterClient;
use super::death;
use super::options::PodOptions;
use super::place::WardenProgram;
use super::readiness;

#[derive(Debug)]
pub struct KubernetesConfig {
    pub access: Arc<ClusterAccess>,
    pub installation: InstallationId,
    /// The embedded warden program.
    pub program: &'static [u8],
    /// The image that readiness speaks of.
    pub image: String,
    pub options: PodOptions,
    pub timeouts: KubernetesTimeouts,
}

/// How long is waited before somebody is told.
#[derive(Clone, Copy, Debug)]
pub struct KubernetesTimeouts {
    /// For an answer, all repetitions together.
    pub requests: Duration,
    /// For a node and an image, and the pod to serve.
    pub start: Duration,
    /// For a pod to go.
    pub end: Duration,
    /// For a network that enforces its policies only after a pod started.
    pub settle: Duration,
}

impl Default for KubernetesTimeouts {
    fn default() -> Self {
        Self {
            requests: Duration::from_secs(30),
            start: Duration::from_secs(300),
            end: Duration::from_secs(90),
            settle: Duration::from_secs(10),
        }
    }
}

#[derive(Clone)]
pub struct KubernetesBackend(Arc<KubernetesState>);

/// What making, finding and ending sandboxes shares.
#[derive(Debug)]
pub(crate) struct KubernetesState {
    pub(crate) config: KubernetesConfig,
    pub(crate) cluster: ClusterClient,
    pub(crate) program: WardenProgram,
    /// Whose warden answered this process. The cluster says `Pending` up to a second longer.
    answered: Mutex<HashSet<SandboxId>>,
}

impl KubernetesBackend {
    /// Reaches for nothing yet: whether the cluster answers is [`Backend::readiness`]'s to say.
    pub fn open(config: KubernetesConfig) -> Self {
        let cluster = ClusterClient {
            access: Arc::clone(&config.access),
            patience: config.timeouts.requests,
        };
        Self(Arc::new(KubernetesState {
            program: WardenProgram::new(config.program),
            answered: Mutex::default(),
            cluster,
            config,
        }))
    }

    /// What runs in a sandbox can hurt only that sandbox.
    pub const DESCRIPTION: BackendDescription = BackendDescription::sealed(BackendKind::Kubernetes);
}

impl KubernetesState {
    pub(crate) fn has_answered(&self, id: &SandboxId) -> bool {
        self.seen().contains(id)
    }

    pub(crate) fn mark_answered(&self, id: &SandboxId) {
        self.seen().insert(id.clone());
    }

    pub(crate) fn forget(&self, id: &SandboxId) {
        self.seen().remove(id);
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, HashSet<SandboxId>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for KubernetesBackend {
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
        birth::start(&self.0, spec, PodStart::Fresh).boxed()
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
        birth::start(&self.0, spec, PodStart::Again).boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        death::destroy(&self.0, id).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
        self.0.list().boxed()
    }
}

impl fmt::Debug for KubernetesBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KubernetesBackend")
            .field(&self.0.config.access)
            .finish()
    }
}

pub(crate) fn missing(id: &SandboxId) -> BackendError {
    BackendError::NoSuchSandbox { id: id.clone() }
}
