//! One client's sandbox.

use std::ops::Deref;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use hermetic_sandbox::Sandbox;
use hermetic_session::Outlet;
use hermetic_tools::{Held, NoSandbox, Workplace};
use hermetic_types::{ConversationKey, SandboxId};
use tokio::sync::Mutex;

use crate::House;

/// Made at the first call that needs it. Dropping the last clone takes the sandbox down.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    house: House,
    conversation: ConversationKey,
    tenant: Mutex<Option<Tenant>>,
}

#[derive(Debug)]
struct Tenant {
    id: SandboxId,
    sandbox: Arc<Sandbox>,
    outlet: Option<Outlet>,
}

impl Room {
    pub(crate) fn new(house: House) -> Self {
        Self(Arc::new(Inner {
            conversation: house.next_client(),
            house,
            tenant: Mutex::default(),
        }))
    }
}

impl Workplace for Room {
    fn conversation(&self) -> &ConversationKey {
        &self.0.conversation
    }

    fn sandbox(&self) -> BoxFuture<'_, Result<Held, NoSandbox>> {
        let room = Arc::clone(&self.0);
        // A call that is given up must not cut the making in the middle.
        let work = self
            .0
            .house
            .works()
            .spawn(async move { room.enter().await });
        async move {
            let entered = work
                .await
                .unwrap_or(Err(NoSandbox("the server is stopping")));
            entered.map(|sandbox| Box::new(Shared(sandbox)) as Held)
        }
        .boxed()
    }
}

impl Inner {
    async fn enter(&self) -> Result<Arc<Sandbox>, NoSandbox> {
        let mut tenant = self.tenant.lock().await;
        if let Some(tenant) = tenant
            .as_ref()
            .filter(|tenant| tenant.sandbox.is_reachable())
        {
            return Ok(Arc::clone(&tenant.sandbox));
        }
        if let Some(dead) = tenant.take() {
            take_down(self.house.clone(), dead).await;
        }
        if !self.house.take_place() {
            return Err(NoSandbox(
                "all sandboxes are in use; nothing was run; try again later",
            ));
        }
        match self.make().await {
            Ok(made) => Ok(Arc::clone(&tenant.insert(made).sandbox)),
            Err(none) => {
                self.house.give_place_back();
                Err(none)
            }
        }
    }

    async fn make(&self) -> Result<Tenant, NoSandbox> {
        let spec = self.house.spec(&self.conversation);
        let backend = self.house.backend();
        let made = async {
            let link = backend
                .create(&spec)
                .await
                .map_err(|error| in_full(&error))?;
            let sandbox = Sandbox::greet(&spec.id, backend.kind(), link).await;
            sandbox.map_err(|error| in_full(&error))
        };
        match made.await {
            Ok(sandbox) => {
                tracing::info!(sandbox = %spec.id, client = %self.conversation, "sandbox created");
                let outlet = self.house.outlet(&sandbox, &self.conversation).await;
                Ok(Tenant {
                    id: spec.id,
                    sandbox: Arc::new(sandbox),
                    outlet,
                })
            }
            Err(error) => {
                tracing::error!(client = %self.conversation, error, "no sandbox");
                if let Err(error) = backend.destroy(&spec.id).await {
                    tracing::warn!(sandbox = %spec.id, %error, "a failed create left a rest");
                }
                Err(NoSandbox(
                    "the sandbox could not be started, so nothing was run; `hermetic doctor` tells \
                     what is missing",
                ))
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(tenant) = self.tenant.get_mut().take() {
            let (house, works) = (self.house.clone(), self.house.works().clone());
            works.spawn(take_down(house, tenant));
        }
    }
}

async fn take_down(house: House, tenant: Tenant) {
    let Tenant { id, outlet, .. } = tenant;
    if let Some(outlet) = outlet {
        outlet.close().await;
    }
    match house.backend().destroy(&id).await {
        Ok(()) => tracing::info!(sandbox = %id, "sandbox destroyed"),
        Err(error) => {
            tracing::error!(sandbox = %id, %error, "a sandbox could not be taken down");
        }
    }
    house.give_place_back();
}

struct Shared(Arc<Sandbox>);

impl Deref for Shared {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.0
    }
}

fn in_full(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
