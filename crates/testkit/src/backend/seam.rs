//! The seam itself.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_sandbox::{
    Backend, BackendError, BackendReadiness, FoundSandbox, FoundState, LiveUse, SandboxLifeline,
    SandboxProcess, SandboxSpec, WardenLink,
};
use hermetic_types::{BackendDescription, SandboxId};

use super::{StandInBackend, lock, missing};

impl Backend for StandInBackend {
    fn description(&self) -> BackendDescription {
        self.description
    }

    fn readiness(&self) -> BoxFuture<'_, BackendReadiness> {
        async { BackendReadiness { layers: Vec::new() } }.boxed()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        async move {
            let time = *lock(&self.create_time);
            tokio::time::sleep(time).await;
            // The sender is ours, so it cannot be gone.
            let _ = self.creating.subscribe().wait_for(|goes_on| *goes_on).await;
            let breaks = self.is(|orders| &orders.break_creates);
            assert!(!breaks, "ordered to break down");
            if self.is(|orders| &orders.fail_creates) {
                return Err(ordered("create"));
            }
            self.created.fetch_add(1, Ordering::SeqCst);
            lock(&self.alive).insert(spec.id.clone(), FoundState::Running);
            self.reach(&spec.id)
        }
        .boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        async move { self.reach(id) }.boxed()
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        async move {
            self.answer()?;
            if self.is(|orders| &orders.fail_stops) {
                return Err(ordered("stop"));
            }
            self.orders.is_frozen.store(false, Ordering::SeqCst);
            if self.is(|orders| &orders.keeps_files) {
                self.halt(id);
            } else {
                self.hide(id);
            }
            Ok(())
        }
        .boxed()
    }

    fn resume<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        async move {
            self.answer()?;
            if self.is(|orders| &orders.fail_resumes) {
                return Err(ordered("resume"));
            }
            match lock(&self.alive).get_mut(&spec.id) {
                Some(state) => *state = FoundState::Running,
                None => return Err(missing(&spec.id)),
            }
            self.reach(&spec.id)
        }
        .boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        async move {
            self.answer()?;
            if self.is(|orders| &orders.fail_destroys) {
                return Err(ordered("destroy"));
            }
            if self.hide(id).is_some() {
                self.destroyed.fetch_add(1, Ordering::SeqCst);
            }
            self.commands.forget(id);
            Ok(())
        }
        .boxed()
    }

    fn disk_use<'a>(&'a self, _: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        async {
            let uses = lock(&self.disk_use).clone();
            self.disk_counts.fetch_add(1, Ordering::SeqCst);
            uses
        }
        .boxed()
    }

    fn live_use<'a>(&'a self, _: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, LiveUse>> {
        async {
            self.live_looks.fetch_add(1, Ordering::SeqCst);
            lock(&self.live_use).clone()
        }
        .boxed()
    }

    fn processes<'a>(
        &'a self,
        id: &'a SandboxId,
        most: usize,
    ) -> BoxFuture<'a, Option<Vec<SandboxProcess>>> {
        async move {
            let mut processes = lock(&self.processes).get(id)?.clone();
            processes.truncate(most);
            Some(processes)
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
        async move {
            self.answer()?;
            let tied = self.is(|orders| &orders.is_tied);
            let alive = lock(&self.alive);
            let found = alive.iter().map(|(id, state)| FoundSandbox {
                id: id.clone(),
                conversation: None,
                lifeline: tied.then_some(SandboxLifeline::Creator),
                state: *state,
            });
            Ok(found.collect())
        }
        .boxed()
    }
}

fn ordered(step: &str) -> BackendError {
    BackendError::failed(step, "told to fail")
}
