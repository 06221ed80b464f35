//! A sandbox for one purpose, seen out by whoever made it.

use std::ops::Deref;
use std::sync::Arc;

use hermetic_types::SandboxId;
use hermetic_warden::client::GreetError;
use thiserror::Error;

use crate::{Backend, BackendError, Sandbox, SandboxSpec};

/// A fresh sandbox that no ledger knows.
///
/// [`destroy`](Self::destroy) says how its end went. Dropped without that, by a failure or a caller who
/// gave up, it is destroyed all the same, as long as the runtime lives; after that its lifeline ends it.
#[derive(Debug)]
pub struct PassingSandbox {
    // The link goes first: it keeps the sandbox busy.
    sandbox: Arc<Sandbox>,
    guard: DestroyGuard,
}

/// Why a sandbox could not be had.
#[derive(Debug, Error)]
pub enum CreateError {
    #[error(transparent)]
    Start(#[from] BackendError),
    #[error("the sandbox does not answer")]
    Greet(#[from] GreetError),
}

/// Destroys a sandbox when it is dropped, unless that was done.
#[derive(Debug)]
struct DestroyGuard {
    backend: Arc<dyn Backend>,
    id: SandboxId,
    is_armed: bool,
}

impl Sandbox {
    /// Creates a sandbox and greets its warden. Of one that was created and does not answer something is
    /// left, which the caller destroys by the name in the spec.
    pub async fn create(backend: &dyn Backend, spec: &SandboxSpec) -> Result<Self, CreateError> {
        let link = backend.create(spec).await?;
        Ok(Self::greet(&spec.id, backend.description(), link).await?)
    }
}

impl PassingSandbox {
    /// Creates one. What fails, or is given up, leaves nothing.
    pub async fn create(
        backend: &Arc<dyn Backend>,
        spec: &SandboxSpec,
    ) -> Result<Self, CreateError> {
        // Before anything exists: whoever gives up in the middle leaves it to the guard.
        let guard = DestroyGuard {
            backend: Arc::clone(backend),
            id: spec.id.clone(),
            is_armed: true,
        };
        match Sandbox::create(backend.as_ref(), spec).await {
            Ok(sandbox) => Ok(Self {
                sandbox: Arc::new(sandbox),
                guard,
            }),
            Err(error) => {
                if let Err(rest) = guard.destroy().await {
                    tracing::warn!(sandbox = %spec.id, error = %rest, "a failed create left a rest");
                }
                Err(error)
            }
        }
    }

    pub fn sandbox(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }

    /// Destroys it; after that nothing of it is there.
    pub async fn destroy(self) -> Result<(), BackendError> {
        let Self { sandbox, guard } = self;
        drop(sandbox);
        guard.destroy().await
    }
}

impl Deref for PassingSandbox {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl DestroyGuard {
    async fn destroy(mut self) -> Result<(), BackendError> {
        let destroyed = self.backend.destroy(&self.id).await;
        // Not before: cut in the middle, it is still ours to see out.
        self.is_armed = false;
        destroyed
    }
}

impl Drop for DestroyGuard {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        // Without a runtime nobody could wait for it; the lifeline is what is left then.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (backend, id) = (Arc::clone(&self.backend), self.id.clone());
            runtime.spawn(async move {
                if let Err(error) = backend.destroy(&id).await {
                    tracing::warn!(sandbox = %id, %error, "a sandbox that was given up is left");
                }
            });
        }
    }
}
