//! The backend itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_sandbox::{
    Backend, BackendError, BackendReadiness, FoundSandbox, SandboxSpec, WardenLink,
};
use hermetic_types::{BackendDescription, BackendKind, InstallationId, SandboxId, Secret};
use reqwest::Url;

use super::birth::{self, DaytonaStart};
use super::death;
use super::label::{self, OwnedLabels};
use super::readiness;
use super::service::DaytonaApi;
use super::shapes::DaytonaSandbox;
use super::size::DiskWish;
use super::state::ProviderState;
use super::terminal::ReachError;
use super::trouble::DaytonaTrouble;
use super::wire::HttpWire;

#[derive(Clone, Debug)]
pub struct DaytonaConfig {
    pub key: Secret,
    /// The provider's API, such as `https://app.daytona.io/api`.
    pub url: String,
    /// Whose sandboxes they are, where the key alone does not say.
    pub organisation: Option<String>,
    /// The region; the organisation's own where there is none.
    pub target: Option<String>,
    pub installation: InstallationId,
    /// The embedded warden program.
    pub program: &'static [u8],
    pub disk: DiskWish,
    pub patience: DaytonaTimeouts,
}

/// How long is waited before somebody is told.
#[derive(Clone, Copy, Debug)]
pub struct DaytonaTimeouts {
    /// For an answer, all repetitions together.
    pub requests: Duration,
    /// For a sandbox to stop, start or go.
    pub state: Duration,
    /// For a new one, whose image may have to be fetched first.
    pub build: Duration,
}

impl Default for DaytonaTimeouts {
    fn default() -> Self {
        Self {
            requests: Duration::from_secs(40),
            state: Duration::from_secs(120),
            build: Duration::from_secs(600),
        }
    }
}

#[derive(Clone)]
pub struct DaytonaBackend(Arc<DaytonaState>);

/// What making, finding and ending sandboxes shares.
#[derive(Debug)]
pub(crate) struct DaytonaState {
    pub(crate) config: DaytonaConfig,
    pub(crate) service: DaytonaApi,
}

impl DaytonaBackend {
    /// Reaches for nothing yet: whether the provider answers is [`Backend::readiness`]'s to say.
    pub fn open(config: DaytonaConfig) -> Result<Self, BackendError> {
        let wrong = |why: &str| BackendError::Unavailable {
            what: format!("DAYTONA_API_URL makes no sense: {why}"),
            remedy: "write an address such as https://app.daytona.io/api".to_owned(),
        };
        let base: Url = config.url.parse().map_err(|_| wrong("it is no address"))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(wrong("it is neither http nor https"));
        }
        let wire = HttpWire::new(
            config.key.clone(),
            config.organisation.clone(),
            &base,
            config.patience.requests,
        )
        .map_err(|error| BackendError::failed("make an HTTP client", error))?;
        let service = DaytonaApi { wire, base };
        Ok(Self(Arc::new(DaytonaState { config, service })))
    }
}

impl DaytonaBackend {
    /// What runs in a sandbox can hurt only that sandbox.
    pub const DESCRIPTION: BackendDescription = BackendDescription::sealed(BackendKind::Daytona);
}

impl Backend for DaytonaBackend {
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
        birth::start(&self.0, spec, DaytonaStart::Fresh).boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        self.0.connect(id).boxed()
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        death::stop(&self.0, id).boxed()
    }

    fn resume<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        birth::start(&self.0, spec, DaytonaStart::Again).boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        death::destroy(&self.0, id).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
        self.0.list().boxed()
    }
}

impl DaytonaState {
    async fn connect(self: &Arc<Self>, id: &SandboxId) -> Result<WardenLink, BackendError> {
        let found = self.find(id).await?;
        let (sandbox, _) = found
            .filter(|(sandbox, _)| ProviderState::of(sandbox) == ProviderState::Started)
            .ok_or_else(|| missing(id))?;
        match self.reach(&sandbox).await {
            // Its processes ended behind our back; a kept one comes back by `resume`.
            Err(ReachError::Nobody { said }) => {
                tracing::debug!(sandbox = %id, said, "no warden there");
                Err(missing(id))
            }
            reached => reached.map_err(|error| error.at("reach the warden")),
        }
    }

    /// Nothing where there is none, or none of ours.
    pub(crate) async fn find(
        &self,
        id: &SandboxId,
    ) -> Result<Option<(DaytonaSandbox, OwnedLabels)>, BackendError> {
        match self.service.look(&label::name(id)).await {
            Ok(found) => Ok(self.ours(found).filter(|(_, owned)| &owned.id == id)),
            Err(DaytonaTrouble::Missing) => Ok(None),
            Err(trouble) => Err(trouble.at("look at the sandbox")),
        }
    }

    async fn list(&self) -> Result<Vec<FoundSandbox>, BackendError> {
        let listed = self
            .service
            .list(&label::filter(&self.config.installation))
            .await
            .map_err(|trouble| trouble.at("list the sandboxes"))?;
        let ours = listed.into_iter().filter_map(|one| self.ours(one));
        let mut found: Vec<FoundSandbox> = ours
            .map(|(sandbox, owned)| FoundSandbox {
                state: ProviderState::of(&sandbox).found(&owned),
                id: owned.id,
                conversation: owned.conversation,
                lifeline: Some(owned.lifeline),
            })
            .collect();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    fn ours(&self, sandbox: DaytonaSandbox) -> Option<(DaytonaSandbox, OwnedLabels)> {
        let owned = OwnedLabels::read(&sandbox.labels, &self.config.installation)?;
        (ProviderState::of(&sandbox) != ProviderState::Gone).then_some((sandbox, owned))
    }
}

impl fmt::Debug for DaytonaBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DaytonaBackend")
            .field(&self.0.config.url)
            .finish()
    }
}

pub(crate) fn missing(id: &SandboxId) -> BackendError {
    BackendError::NoSuchSandbox { id: id.clone() }
}
