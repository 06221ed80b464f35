//! One client's sandbox.

use std::ops::Deref;
use std::sync::Arc;

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_egress::EgressClient;
use hermetic_sandbox::{PassingSandbox, Sandbox};
use hermetic_session::EgressPort;
use hermetic_tools::{Held, NoSandbox, ToolWorkplace};
use hermetic_types::ConversationKey;
use tokio::sync::Mutex;

use crate::ClientSandboxes;

/// Made at the first call that needs it. Dropping the last clone takes the sandbox down.
#[derive(Clone, Debug)]
pub(crate) struct ClientSandbox(Arc<ClientSandboxState>);

#[derive(Debug)]
struct ClientSandboxState {
    sandboxes: ClientSandboxes,
    conversation: ConversationKey,
    living: Mutex<Option<ReachedSandbox>>,
}

#[derive(Debug)]
struct ReachedSandbox {
    sandbox: PassingSandbox,
    egress_port: Option<EgressPort>,
}

/// What the client is told whose sandbox filled the disk, once.
const STOPPED: &str = "nothing was run: the sandbox was ended with its files, because it wrote so much that the disk \
                       ran out of room; the next call begins in an empty one";

impl ClientSandbox {
    pub(crate) fn new(sandboxes: ClientSandboxes) -> Self {
        Self(Arc::new(ClientSandboxState {
            conversation: sandboxes.next_client(),
            sandboxes,
            living: Mutex::default(),
        }))
    }
}

impl ToolWorkplace for ClientSandbox {
    fn conversation(&self) -> &ConversationKey {
        &self.0.conversation
    }

    fn sandbox(&self) -> BoxFuture<'_, Result<Held, NoSandbox>> {
        let client_sandbox = Arc::clone(&self.0);
        // A call that is given up must not cut the making in the middle.
        let work = self
            .0
            .sandboxes
            .works()
            .spawn(async move { client_sandbox.enter().await });
        async move {
            let entered = work
                .await
                .unwrap_or(Err(NoSandbox("the server is stopping")));
            entered.map(|sandbox| Box::new(SharedSandbox(sandbox)) as Held)
        }
        .boxed()
    }

    fn egress(&self) -> BoxFuture<'_, Result<EgressClient, NoSandbox>> {
        let client = self.0.sandboxes.egress_client(&self.0.conversation);
        let client = client.ok_or(NoSandbox("sandboxes here have no way out"));
        future::ready(client).boxed()
    }
}

impl ClientSandboxState {
    async fn enter(&self) -> Result<Arc<Sandbox>, NoSandbox> {
        if self.sandboxes.disk().take_stopped(&self.conversation) {
            return Err(NoSandbox(STOPPED));
        }
        // Also for a sandbox that is there: whatever runs now takes room from the store.
        if self.sandboxes.disk().is_low() {
            return Err(NoSandbox(
                "the disk has too little room left, so nothing was run; the operator has to make some",
            ));
        }
        // Held while it is made: two first calls of one client must not get two sandboxes.
        let mut living = self.living.lock().await;
        if let Some(living) = living
            .as_ref()
            .filter(|living| living.sandbox.is_reachable())
        {
            return Ok(Arc::clone(living.sandbox.sandbox()));
        }
        if let Some(dead) = living.take() {
            // Seen out before the place is taken: the dead one still holds it.
            take_down(self.sandboxes.clone(), dead).await;
        }
        if !self.sandboxes.take_place() {
            return Err(NoSandbox(
                "all sandboxes are in use; nothing was run; try again later",
            ));
        }
        match self.make().await {
            Ok(made) => Ok(Arc::clone(living.insert(made).sandbox.sandbox())),
            Err(none) => {
                self.sandboxes.give_place_back();
                Err(none)
            }
        }
    }

    async fn make(&self) -> Result<ReachedSandbox, NoSandbox> {
        let spec = self.sandboxes.spec(&self.conversation);
        match PassingSandbox::create(self.sandboxes.backend(), &spec).await {
            Ok(sandbox) => {
                self.sandboxes.note_living(&spec.id, &self.conversation);
                tracing::info!(sandbox = %spec.id, client = %self.conversation, "sandbox created");
                let egress_port = self
                    .sandboxes
                    .egress_port(&sandbox, &self.conversation)
                    .await;
                Ok(ReachedSandbox {
                    sandbox,
                    egress_port,
                })
            }
            Err(error) => {
                let error = in_full(&error);
                tracing::error!(client = %self.conversation, error, "no sandbox");
                Err(NoSandbox(
                    "the sandbox could not be started, so nothing was run; `hermetic doctor` tells \
                     what is missing",
                ))
            }
        }
    }
}

impl Drop for ClientSandboxState {
    fn drop(&mut self) {
        if let Some(living) = self.living.get_mut().take() {
            let (sandboxes, works) = (self.sandboxes.clone(), self.sandboxes.works().clone());
            works.spawn(take_down(sandboxes, living));
        }
    }
}

async fn take_down(sandboxes: ClientSandboxes, living: ReachedSandbox) {
    let ReachedSandbox {
        sandbox,
        egress_port,
    } = living;
    let id = sandbox.id().clone();
    if let Some(egress_port) = egress_port {
        // The way out first: what is left of its connections leads into the sandbox.
        egress_port.close().await;
    }
    match sandbox.destroy().await {
        Ok(()) => tracing::info!(sandbox = %id, "sandbox destroyed"),
        Err(error) => {
            tracing::error!(sandbox = %id, %error, "a sandbox could not be taken down");
        }
    }
    sandboxes.note_gone(&id);
    // Only now: a sandbox that is still being destroyed takes as much of the machine as a living
    // one.
    sandboxes.give_place_back();
}

struct SharedSandbox(Arc<Sandbox>);

impl Deref for SharedSandbox {
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
