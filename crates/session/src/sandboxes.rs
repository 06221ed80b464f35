//! Who has which sandbox.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use hermetic_egress::{Gate, Reach};
use hermetic_sandbox::{Backend, BackendError, GreetError, Network, Persistence, Sandbox, Spec};
use hermetic_store::{Entry, Ledger, LedgerState, StoreError};
use hermetic_types::{BackendKind, ConversationKey, InstallationId, SandboxId, Timestamp};
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::pool::Pool;
use crate::slot::{Slot, Tenant};
use crate::{Lease, Outlet, Plan, Spending};

#[derive(Debug, Error)]
pub enum LeaseError {
    #[error("all {most} sandboxes are in use; raise gateway.max_sandboxes or wait for one to end")]
    Full { most: usize },
    #[error("no backend {0} in this program")]
    NoBackend(BackendKind),
    #[error("the sandbox could not be started")]
    Start(#[from] BackendError),
    #[error("the sandbox does not answer")]
    Greet(#[from] GreetError),
    #[error("the ledger could not be written")]
    Ledger(#[from] StoreError),
    #[error("the ledger holds a sandbox that cannot be read")]
    Spec(#[from] serde_json::Error),
    #[error("the program is stopping")]
    Stopping,
}

#[derive(Debug, Error)]
pub enum LetGoError {
    #[error("no backend {0} in this program")]
    NoBackend(BackendKind),
    #[error("sandbox {id} could not be removed; it stays in the ledger and is tried again")]
    Destroy {
        id: SandboxId,
        #[source]
        source: BackendError,
    },
    #[error("the ledger could not be written")]
    Ledger(#[from] StoreError),
}

/// All sandboxes of this gateway. Clones share one state.
#[derive(Clone, Debug)]
pub struct Sandboxes {
    pub(crate) plan: Arc<Plan>,
    pub(crate) installation: InstallationId,
    pub(crate) backends: Arc<HashMap<BackendKind, Arc<dyn Backend>>>,
    pub(crate) ledger: Ledger,
    pub(crate) slots: Arc<Mutex<HashMap<ConversationKey, Arc<Slot>>>>,
    pub(crate) changed: Arc<Notify>,
    pub(crate) pool: Arc<Pool>,
    /// Absent: no sandbox has a way out, whatever its spec says.
    gate: Option<Arc<Gate>>,
    spending: Option<Spending>,
    /// Creations, which go on when the caller gives up so that none is cut in the middle, and outlets.
    pub(crate) works: TaskTracker,
    /// Ends the outlets.
    cut: CancellationToken,
}

impl Sandboxes {
    pub fn new(
        plan: Plan,
        installation: InstallationId,
        backends: impl IntoIterator<Item = Arc<dyn Backend>>,
        ledger: Ledger,
    ) -> Self {
        let backends = backends
            .into_iter()
            .map(|backend| (backend.kind(), backend))
            .collect();
        Self {
            plan: Arc::new(plan),
            installation,
            backends: Arc::new(backends),
            ledger,
            slots: Arc::default(),
            changed: Arc::default(),
            pool: Arc::default(),
            gate: None,
            spending: None,
            works: TaskTracker::new(),
            cut: CancellationToken::new(),
        }
    }

    /// Sandboxes whose network is proxied leave through this gate. What they use of a budget is written
    /// down.
    pub fn leaving_by(mut self, gate: Arc<Gate>, spending: Spending) -> Self {
        self.gate = Some(gate);
        self.spending = Some(spending);
        self
    }

    /// What the conversation's sandbox can reach, or will once it is made; nothing where it has no way
    /// out. One that was made without keeps that until it goes.
    pub async fn reach_of(&self, conversation: &ConversationKey) -> Option<Reach> {
        let gate = self.gate.as_ref()?;
        let made = self.ledger.of(conversation).await.ok()?;
        let network = match made {
            Some(entry) => serde_json::from_str::<Spec>(&entry.spec).ok()?.network,
            None => self.plan.network.clone(),
        };
        match network {
            Network::Closed => None,
            Network::Proxied { .. } => Some(gate.reach(conversation)),
        }
    }

    /// The conversation's sandbox: the living one, the stopped one brought back, or a new one.
    pub async fn lease(&self, conversation: &ConversationKey) -> Result<Lease, LeaseError> {
        let this = self.clone();
        let conversation = conversation.clone();
        let work = self
            .works
            .spawn(async move { this.enter(&conversation).await });
        work.await.map_err(|_| LeaseError::Stopping)?
    }

    /// Destroys the conversation's sandbox with its files, whatever runs in it.
    pub async fn reset(&self, conversation: &ConversationKey) -> Result<(), LetGoError> {
        let slot = self.slot(conversation);
        let mut tenant = slot.gate.lock().await;
        if let Some(leaving) = tenant.take() {
            leaving.close_outlet().await;
        }
        slot.vacate();
        if let Some(spending) = &self.spending {
            spending.forget(conversation).await?;
        }
        match self.ledger.of(conversation).await? {
            Some(entry) => self.destroy(&entry.id, entry.backend).await,
            None => Ok(()),
        }
    }

    /// Waits for creations that are under way and for the end of all outlets, and sees those out that
    /// wait for nobody any more. Called when no more leases are asked for.
    pub async fn drain(&self) {
        self.cut.cancel();
        self.works.close();
        self.works.wait().await;
        self.empty_pool().await;
    }

    async fn enter(&self, conversation: &ConversationKey) -> Result<Lease, LeaseError> {
        let slot = self.slot(conversation);
        // Counted before the gate opens: the reaper sees the visitor and leaves the tenant alone.
        slot.take_lease();
        let entered = self.tenant(conversation, &slot).await;
        match entered {
            Ok(sandbox) => Ok(Lease::counted(sandbox, slot, Arc::clone(&self.changed))),
            Err(error) => {
                slot.return_lease();
                Err(error)
            }
        }
    }

    async fn tenant(
        &self,
        conversation: &ConversationKey,
        slot: &Arc<Slot>,
    ) -> Result<Arc<Sandbox>, LeaseError> {
        let mut tenant = slot.gate.lock().await;
        if let Some(found) = tenant.as_mut() {
            match self.meet(found).await {
                Ok(sandbox) => return Ok(sandbox),
                Err(error) if is_out_of_reach(&error) => return Err(error),
                Err(_) => {}
            }
            if let Some(leaving) = tenant.take() {
                leaving.close_outlet().await;
            }
            slot.vacate();
        }
        self.make_room(slot).await?;
        let (spec, sandbox) = match self.move_in(conversation).await {
            Ok(moved_in) => moved_in,
            Err(error) => {
                slot.vacate();
                return Err(error);
            }
        };
        *tenant = Some(Tenant {
            outlet: self.open_outlet(&spec, &sandbox).await,
            spec: Arc::new(spec),
            sandbox: Some(Arc::clone(&sandbox)),
        });
        slot.touch();
        Ok(sandbox)
    }

    async fn move_in(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(Spec, Arc<Sandbox>), LeaseError> {
        match self.ledger.of(conversation).await? {
            Some(entry) if may_come_back(&entry) => match self.bring_back(&entry).await {
                Ok(back) => return Ok(back),
                // Whoever does not answer now may later: its files are not given up.
                Err(error) if is_out_of_reach(&error) => return Err(error),
                Err(error) => {
                    tracing::warn!(sandbox = %entry.id, %error, "a sandbox did not come back");
                    self.write_off(&entry).await;
                }
            },
            Some(entry) => self.write_off(&entry).await,
            None => {}
        }
        self.create(conversation).await
    }

    async fn create(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(Spec, Arc<Sandbox>), LeaseError> {
        match self.take_warm(conversation).await? {
            Some(warm) => Ok(warm),
            None => self.make(conversation).await,
        }
    }

    pub(crate) async fn make(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(Spec, Arc<Sandbox>), LeaseError> {
        let backend = self.backend(self.plan.backend)?;
        let spec = self.spec(conversation);
        let text = serde_json::to_string(&spec)?;
        self.ledger
            .name(&spec.id, conversation, backend.kind(), &text, now())
            .await?;

        let begun = Instant::now();
        let made = async {
            let link = backend.create(&spec).await?;
            let sandbox = Sandbox::greet(&spec.id, backend.kind(), link).await?;
            Ok::<_, LeaseError>(Arc::new(sandbox.with_way_back(backend)))
        };
        match made.await {
            Ok(sandbox) => {
                self.ledger.mark(&spec.id, LedgerState::Running).await?;
                tracing::info!(
                    sandbox = %spec.id,
                    %conversation,
                    backend = %backend.kind(),
                    took = ?begun.elapsed(),
                    "sandbox created"
                );
                Ok((spec, sandbox))
            }
            Err(error) => {
                // A create that failed leaves nothing; if even that fails, the house is told.
                if let Err(rest) = self.destroy(&spec.id, backend.kind()).await {
                    tracing::warn!(sandbox = %spec.id, error = %rest, "a failed create left a rest");
                }
                Err(error)
            }
        }
    }

    pub(crate) fn spec(&self, conversation: &ConversationKey) -> Spec {
        let mut spec = self.plan.spec(&self.installation, conversation);
        if let (Network::Proxied { port }, Some(gate)) = (&spec.network, &self.gate) {
            let mut env = gate.env(conversation, *port);
            // What the operator wrote counts more.
            env.extend(spec.env);
            spec.env = env;
        }
        spec
    }

    async fn open_outlet(&self, spec: &Spec, sandbox: &Sandbox) -> Option<Outlet> {
        let Network::Proxied { port } = spec.network else {
            return None;
        };
        let (gate, spending) = (self.gate.as_ref()?, self.spending.as_ref());
        let (whose, works) = (&spec.conversation, &self.works);
        Some(Outlet::open(sandbox, whose, gate, spending, port, works, &self.cut).await)
    }

    async fn bring_back(&self, entry: &Entry) -> Result<(Spec, Arc<Sandbox>), LeaseError> {
        let backend = self.backend(entry.backend)?;
        let spec: Spec = serde_json::from_str(&entry.spec)?;
        let link = match entry.state {
            LedgerState::Running => match backend.connect(&entry.id).await {
                // Its processes ended behind our back (an engine that was restarted, a limit); its
                // files are still somebody's work.
                Err(BackendError::NoSuchSandbox { .. })
                    if spec.persistence == Persistence::Kept =>
                {
                    backend.resume(&spec).await?
                }
                link => link?,
            },
            _ => backend.resume(&spec).await?,
        };
        let sandbox = match Sandbox::greet(&entry.id, entry.backend, link).await {
            // There, and not answering: what it ran is lost, its files are not.
            Err(error) if spec.persistence == Persistence::Kept => {
                tracing::warn!(sandbox = %entry.id, %error, "a sandbox is started anew");
                backend.stop(&entry.id).await?;
                let link = backend.resume(&spec).await?;
                Sandbox::greet(&entry.id, entry.backend, link).await?
            }
            greeted => greeted?,
        };
        self.ledger.mark(&entry.id, LedgerState::Running).await?;
        self.ledger.touch(&entry.id, now()).await?;
        Ok((spec, Arc::new(sandbox.with_way_back(backend))))
    }

    /// The tenant's sandbox, over a new link if the old one is gone.
    pub(crate) async fn meet(&self, tenant: &mut Tenant) -> Result<Arc<Sandbox>, LeaseError> {
        if let Some(sandbox) = &tenant.sandbox
            && sandbox.is_reachable()
        {
            return Ok(Arc::clone(sandbox));
        }
        let sandbox = self.reach(&tenant.spec).await?;
        // Held over the change: a new link is no new budget.
        let _held = match tenant.outlet.take() {
            Some(old) => Some(old.close().await),
            None => None,
        };
        tenant.outlet = self.open_outlet(&tenant.spec, &sandbox).await;
        tenant.sandbox = Some(Arc::clone(&sandbox));
        Ok(sandbox)
    }

    async fn reach(&self, spec: &Spec) -> Result<Arc<Sandbox>, LeaseError> {
        let backend = self.backend(self.plan.backend)?;
        let link = backend.connect(&spec.id).await?;
        let sandbox = Sandbox::greet(&spec.id, backend.kind(), link).await?;
        Ok(Arc::new(sandbox.with_way_back(backend)))
    }

    /// Claims a place, letting the longest idle sandbox go when all are taken.
    async fn make_room(&self, slot: &Arc<Slot>) -> Result<(), LeaseError> {
        // Bounded: each round that does not end lets one sandbox go.
        for _ in 0..=self.plan.most {
            let Some((conversation, since)) = self.claim_or_name_idle(slot)? else {
                return Ok(());
            };
            if let Err(error) = self.let_go(&conversation, since).await {
                tracing::warn!(%conversation, %error, "an idle sandbox could not make room");
                break;
            }
        }
        Err(LeaseError::Full {
            most: self.plan.most,
        })
    }

    /// Claims a free place, or names the conversation that has been idle longest.
    fn claim_or_name_idle(
        &self,
        slot: &Arc<Slot>,
    ) -> Result<Option<(ConversationKey, Instant)>, LeaseError> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let others = || {
            let others = slots.iter().filter(|(_, other)| !Arc::ptr_eq(other, slot));
            others.filter(|(_, other)| other.is_claimed())
        };
        if others().count() < self.plan.most {
            slot.claim();
            return Ok(None);
        }
        others()
            .filter_map(|(key, other)| other.idle_since().map(|since| (key.clone(), since)))
            .min_by_key(|(_, since)| *since)
            .map(Some)
            .ok_or(LeaseError::Full {
                most: self.plan.most,
            })
    }

    /// Stops or destroys an idle conversation's sandbox, unless it was used after `since`.
    pub(crate) async fn let_go(
        &self,
        conversation: &ConversationKey,
        since: Instant,
    ) -> Result<(), LetGoError> {
        let slot = self.slot(conversation);
        let mut tenant = slot.gate.lock().await;
        if slot.idle_since().is_none_or(|idle| idle > since) {
            return Ok(());
        }
        let Some(leaving) = tenant.take() else {
            return Ok(());
        };
        let spec = Arc::clone(&leaving.spec);
        leaving.close_outlet().await;
        let kind = self.plan.backend;
        let gone = match spec.persistence {
            Persistence::Ephemeral => self.destroy(&spec.id, kind).await,
            Persistence::Kept => self.stop(&spec.id, kind).await,
        };
        // Also after a failure: the house goes on trying, the conversation may start afresh.
        slot.vacate();
        gone
    }

    pub(crate) async fn stop(&self, id: &SandboxId, kind: BackendKind) -> Result<(), LetGoError> {
        let backend = self
            .backends
            .get(&kind)
            .ok_or(LetGoError::NoBackend(kind))?;
        self.ledger.mark(id, LedgerState::Stopping).await?;
        match backend.stop(id).await {
            Ok(()) => {
                self.ledger.mark(id, LedgerState::Stopped).await?;
                tracing::info!(sandbox = %id, "sandbox stopped, files kept");
                Ok(())
            }
            Err(source) => {
                self.ledger.note_failure(id, &source.to_string()).await?;
                self.changed.notify_one();
                Err(LetGoError::Destroy {
                    id: id.clone(),
                    source,
                })
            }
        }
    }

    /// The row goes when the thing was seen to be gone, not before.
    pub(crate) async fn destroy(
        &self,
        id: &SandboxId,
        kind: BackendKind,
    ) -> Result<(), LetGoError> {
        let backend = self
            .backends
            .get(&kind)
            .ok_or(LetGoError::NoBackend(kind))?;
        self.ledger.mark(id, LedgerState::Destroying).await?;
        match backend.destroy(id).await {
            Ok(()) => {
                self.ledger.forget(id).await?;
                tracing::info!(sandbox = %id, "sandbox destroyed");
                Ok(())
            }
            Err(source) => {
                self.ledger.note_failure(id, &source.to_string()).await?;
                self.changed.notify_one();
                Err(LetGoError::Destroy {
                    id: id.clone(),
                    source,
                })
            }
        }
    }

    /// Gives a row up: destroyed now, or marked so that the house tries until it is gone.
    async fn write_off(&self, entry: &Entry) {
        if let Err(error) = self.destroy(&entry.id, entry.backend).await {
            tracing::warn!(sandbox = %entry.id, %error, "an old sandbox could not be removed yet");
        }
    }

    fn backend(&self, kind: BackendKind) -> Result<&Arc<dyn Backend>, LeaseError> {
        self.backends.get(&kind).ok_or(LeaseError::NoBackend(kind))
    }

    fn slot(&self, conversation: &ConversationKey) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots
            .entry(conversation.clone())
            .or_insert_with(|| Arc::new(Slot::empty()));
        Arc::clone(slot)
    }

    /// How many places are taken.
    pub(crate) fn claimed(&self) -> usize {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.values().filter(|slot| slot.is_claimed()).count()
    }

    pub(crate) fn everyone(&self) -> Vec<(ConversationKey, Arc<Slot>)> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots
            .iter()
            .map(|(key, slot)| (key.clone(), Arc::clone(slot)))
            .collect()
    }
}

fn may_come_back(entry: &Entry) -> bool {
    matches!(entry.state, LedgerState::Running | LedgerState::Stopped)
}

/// The sandbox may be as well as ever; only the way to it is not there now. Its files are not given
/// up for that.
fn is_out_of_reach(error: &LeaseError) -> bool {
    matches!(error, LeaseError::Start(BackendError::Unavailable { .. }))
}

pub(crate) fn now() -> Timestamp {
    SystemTime::now().into()
}
