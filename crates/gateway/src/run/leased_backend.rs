//! A backend that does nothing once the lease is lost.
//!
//! A gateway that was asleep may wake between what it wrote down and what it does: with a command on its lips
//! that another gateway has given up by now. So every byte to a warden asks the lease's clock, and so does
//! whatever makes, wakes or ends a sandbox.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use hermetic_sandbox::{
    Backend, BackendError, BackendReadiness, FoundSandbox, LiveUse, SandboxProcess, SandboxSpec,
    SealLayer, WardenLink,
};
use hermetic_types::{BackendDescription, SandboxId};

use super::LeaseClock;

#[derive(Debug)]
pub struct LeasedBackend {
    backend: Arc<dyn Backend>,
    lease: LeaseClock,
}

impl LeasedBackend {
    pub fn new(backend: Arc<dyn Backend>, lease: LeaseClock) -> Self {
        Self { backend, lease }
    }

    fn admit(&self, what: &str) -> Result<(), BackendError> {
        if self.lease.is_held() {
            return Ok(());
        }
        Err(BackendError::Refused {
            what: what.to_owned(),
            why: "this gateway serves no longer".to_owned(),
        })
    }

    fn guarded(&self, link: WardenLink) -> WardenLink {
        let lease = self.lease.clone();
        link.guarded(move || lease.is_held())
    }
}

impl Backend for LeasedBackend {
    fn description(&self) -> BackendDescription {
        self.backend.description()
    }

    fn is_distant(&self) -> bool {
        self.backend.is_distant()
    }

    fn readiness(&self) -> BoxFuture<'_, BackendReadiness> {
        self.backend.readiness()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        async move {
            self.admit("a new sandbox")?;
            self.backend
                .create(spec)
                .await
                .map(|link| self.guarded(link))
        }
        .boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        async move {
            let link = self.backend.connect(id).await?;
            Ok(self.guarded(link))
        }
        .boxed()
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        async move {
            self.admit("the stop of a sandbox")?;
            self.backend.stop(id).await
        }
        .boxed()
    }

    fn resume<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        async move {
            self.admit("a sandbox that would wake")?;
            self.backend
                .resume(spec)
                .await
                .map(|link| self.guarded(link))
        }
        .boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        async move {
            self.admit("the end of a sandbox")?;
            self.backend.destroy(id).await
        }
        .boxed()
    }

    fn memory_and_disk(&self) -> BoxFuture<'_, Vec<SealLayer>> {
        self.backend.memory_and_disk()
    }

    fn disk_use<'a>(&'a self, ids: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        self.backend.disk_use(ids)
    }

    fn disk_use_on<'a>(
        &'a self,
        ids: &'a [SandboxId],
        folder: &'a Path,
    ) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        self.backend.disk_use_on(ids, folder)
    }

    fn live_use<'a>(&'a self, ids: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, LiveUse>> {
        self.backend.live_use(ids)
    }

    fn processes<'a>(
        &'a self,
        id: &'a SandboxId,
        most: usize,
    ) -> BoxFuture<'a, Option<Vec<SandboxProcess>>> {
        self.backend.processes(id, most)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
        self.backend.list()
    }
}
