//! Who has which sandbox.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use hermetic_egress::{Egress, ReachSummary, RefusedHost};
use hermetic_sandbox::{Backend, NetworkMode, Sandbox, SandboxSpec};
use hermetic_store::{LedgerEntry, LedgerState, SandboxLedger, StoreError};
use hermetic_types::{
    BackendKind, Boundary, ConversationKey, HolderEpoch, InstallationId, Platform, SharedClock,
    Timestamp,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::aside::{holds_files, not_back};
use crate::backend_health::BackendHealth;
use crate::disk_guard::DiskGuard;
use crate::orphaned_creates::OrphanedCreates;
use crate::pool::WarmPool;
use crate::slot::{CountedVisit, SandboxHolder, SandboxSlot, SlotSandbox};
use crate::unfinished_ends::{EndsAtWork, UnfinishedEnds};
use crate::{
    EgressPort, InstalledMounts, LeaseError, LetGoError, SandboxLease, SandboxMetrics, SandboxPlan,
    SetAside, SpendingBook,
};

/// All sandboxes of this gateway. Clones share one state.
#[derive(Clone, Debug)]
pub struct Sandboxes {
    pub(crate) plan: Arc<SandboxPlan>,
    /// Of platforms whose conversations run elsewhere.
    apart: Arc<BTreeMap<Platform, SandboxPlan>>,
    pub(crate) installation: InstallationId,
    pub(crate) backends: Arc<HashMap<BackendKind, Arc<dyn Backend>>>,
    pub(crate) ledger: SandboxLedger,
    pub(crate) installed: Option<Arc<dyn InstalledMounts>>,
    /// Since which epoch this gateway serves, where others would take its place.
    pub(crate) serving_since: HolderEpoch,
    /// Since which epoch this gateway has a conversation, where it shares its store.
    pub(crate) held: Arc<Mutex<HashMap<ConversationKey, HolderEpoch>>>,
    pub(crate) slots: Arc<Mutex<HashMap<ConversationKey, Arc<SandboxSlot>>>>,
    pub(crate) changed: Arc<Notify>,
    pub(crate) pool: Arc<WarmPool>,
    pub(crate) late: Arc<OrphanedCreates>,
    pub(crate) unfinished: Arc<UnfinishedEnds>,
    pub(crate) ending: EndsAtWork,
    /// Absent: no sandbox has a way out, whatever its spec says.
    pub(crate) egress: Option<Arc<Egress>>,
    pub(crate) spending: Option<SpendingBook>,
    pub(crate) disk: Option<Arc<DiskGuard>>,
    pub(crate) backend_health: BackendHealth,
    pub(crate) metrics: SandboxMetrics,
    clock: SharedClock,
    /// So many gateways share the bounds of the plan.
    among: Arc<AtomicUsize>,
    /// Creations, which go on when the caller gives up so that none is cut in the middle, and outlets.
    pub(crate) works: TaskTracker,
    /// Ends the outlets.
    pub(crate) cut: CancellationToken,
}

/// A conversation's sandbox, ready for use.
pub(crate) struct MovedIn {
    spec: SandboxSpec,
    sandbox: Arc<Sandbox>,
    /// The one before, if its files had to stay behind.
    set_aside: Option<SetAside>,
}

impl MovedIn {
    pub(crate) fn alone(spec: SandboxSpec, sandbox: Arc<Sandbox>) -> Self {
        Self {
            spec,
            sandbox,
            set_aside: None,
        }
    }
}

impl Sandboxes {
    pub fn new(
        plan: SandboxPlan,
        installation: InstallationId,
        backends: impl IntoIterator<Item = Arc<dyn Backend>>,
        ledger: SandboxLedger,
        clock: SharedClock,
    ) -> Self {
        let backends = backends
            .into_iter()
            .map(|backend| (backend.kind(), backend))
            .collect();
        Self {
            plan: Arc::new(plan),
            apart: Arc::default(),
            installation,
            backends: Arc::new(backends),
            ledger,
            installed: None,
            serving_since: HolderEpoch::default(),
            held: Arc::default(),
            slots: Arc::default(),
            changed: Arc::default(),
            pool: Arc::default(),
            late: Arc::default(),
            unfinished: Arc::default(),
            ending: EndsAtWork::default(),
            egress: None,
            spending: None,
            disk: None,
            backend_health: BackendHealth::default(),
            metrics: SandboxMetrics::default(),
            clock,
            among: Arc::new(AtomicUsize::new(1)),
            works: TaskTracker::new(),
            cut: CancellationToken::new(),
        }
    }

    /// New sandboxes are shown these, too.
    pub fn with_installed(mut self, installed: Arc<dyn InstalledMounts>) -> Self {
        self.installed = Some(installed);
        self
    }

    /// Sandboxes whose network is proxied leave through this egress. What they use of a budget is written
    /// down.
    pub fn with_egress(mut self, egress: Arc<Egress>, spending: SpendingBook) -> Self {
        self.egress = Some(egress);
        self.spending = Some(spending);
        self
    }

    /// From now on this gateway is one of so many that share the bounds of the plan. What lives goes on.
    pub fn divide_bounds(&self, among: usize) {
        self.among.store(among.max(1), Ordering::Relaxed);
    }

    /// How many may live here at once.
    pub(crate) fn max_sandboxes(&self) -> usize {
        (self.plan.max_sandboxes / self.among.load(Ordering::Relaxed)).max(1)
    }

    /// How many of them may be one person's.
    pub(crate) fn max_sandboxes_per_user(&self) -> usize {
        (self.plan.max_sandboxes_per_user / self.among.load(Ordering::Relaxed)).max(1)
    }

    /// What happens to sandboxes is counted here.
    pub fn counting_in(mut self, metrics: SandboxMetrics) -> Self {
        self.backends.keys().for_each(|kind| metrics.expect(*kind));
        self.metrics = metrics;
        self
    }

    /// Conversations on these platforms follow a plan of their own. How many may live, for how long, and
    /// how many wait is common to all.
    pub fn apart(mut self, plans: impl IntoIterator<Item = (Platform, SandboxPlan)>) -> Self {
        self.apart = Arc::new(plans.into_iter().collect());
        self
    }

    /// What the conversation's sandbox can reach, or will once it is made; nothing where it has no way
    /// out. One that was made without keeps that until it goes.
    pub fn reach_of<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Option<ReachSummary>> {
        Box::pin(async move {
            let egress = self.egress.as_ref()?;
            let made = self.ledger.of(conversation).await.ok()?;
            let network = match made {
                Some(entry) if entry.backend == self.plan_of(conversation).backend => {
                    serde_json::from_str::<SandboxSpec>(&entry.spec)
                        .ok()?
                        .network
                }
                _ => self.plan_of(conversation).network.clone(),
            };
            match network {
                NetworkMode::Closed => None,
                NetworkMode::Proxied { .. } => Some(egress.reach(conversation)),
            }
        })
    }

    /// The way out that this conversation's sandbox has, for tools of ours beside it. A backend that is no
    /// boundary has the machine's own network; our tools keep to the rules there too.
    pub fn egress_of(&self, conversation: &ConversationKey) -> Option<Arc<Egress>> {
        let plan = self.plan_of(conversation);
        let backend = self.backends.get(&plan.backend)?;
        let is_closed = plan.network == NetworkMode::Closed
            && backend.description().boundary == Boundary::Sealed;
        self.egress.clone().filter(|_| !is_closed)
    }

    /// The hosts that the conversation was refused since this was last asked.
    pub fn take_refused(&self, conversation: &ConversationKey) -> Vec<RefusedHost> {
        let egress = self.egress.as_ref();
        egress.map_or_else(Vec::new, |egress| egress.take_refused(conversation))
    }

    /// The conversation's sandbox: the living one, the stopped one brought back, or a new one.
    pub async fn lease(&self, conversation: &ConversationKey) -> Result<SandboxLease, LeaseError> {
        self.lease_as(conversation, None).await
    }

    /// The same, counted among the sandboxes of one person: who has as many as one may have makes room
    /// with those of their own that are idle, and is refused where none is.
    pub async fn lease_for(
        &self,
        conversation: &ConversationKey,
        holder: &SandboxHolder,
    ) -> Result<SandboxLease, LeaseError> {
        self.lease_as(conversation, Some(holder.clone())).await
    }

    fn lease_as<'a>(
        &'a self,
        conversation: &'a ConversationKey,
        holder: Option<SandboxHolder>,
    ) -> BoxFuture<'a, Result<SandboxLease, LeaseError>> {
        Box::pin(async move {
            if self.disk.as_ref().is_some_and(|guard| guard.is_low()) {
                return Err(LeaseError::DiskLow);
            }
            let this = self.clone();
            let backend = self.plan_of(conversation).backend;
            let conversation = conversation.clone();
            // As a task of its own: whoever asked may be interrupted, and a create that is cut in
            // the middle leaves a sandbox that nobody knows the state of. The lease that nobody
            // takes is returned by being dropped.
            let work = self
                .works
                .spawn(async move { this.enter(&conversation, holder.as_ref()).await });
            let entered = work.await.map_err(|_| LeaseError::Stopping)?;
            self.note_backend(backend, entered.as_ref().err());
            entered
        })
    }

    /// Destroys the conversation's sandbox with its files, whatever runs in it, and those that were set
    /// aside. All are tried; the first failure is told.
    pub fn reset<'a>(
        &'a self,
        conversation: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<(), LetGoError>> {
        let (this, conversation) = (self.clone(), conversation.clone());
        Box::pin(self.to_the_end(async move { this.reset_now(&conversation).await }))
    }

    async fn reset_now(&self, conversation: &ConversationKey) -> Result<(), LetGoError> {
        let slot = self.slot(conversation);
        let mut tenant = slot.gate.lock().await;
        let leaving = tenant.take();
        let place = leaving
            .as_ref()
            .map(|leaving| (leaving.backend, Arc::clone(&leaving.spec)));
        if let Some(leaving) = leaving {
            leaving.close_outlet().await;
        }
        let destroyed = match self.rows_of(conversation).await {
            Ok(rows) => self.destroy_all(conversation, &rows).await,
            Err(error) => {
                if let Some((backend, spec)) = &place {
                    self.unfinished.note(&spec.id, *backend);
                    self.changed.notify_one();
                }
                Err(error.into())
            }
        };
        let unwritten = matches!(destroyed, Err(LetGoError::Ledger(_)));
        match place {
            // No row says that it is to go, so it stays in its place, which is counted, until the
            // house has seen to it.
            Some((backend, spec)) if unwritten && self.unfinished.contains(&spec.id) => {
                *tenant = Some(SlotSandbox {
                    backend,
                    spec,
                    sandbox: None,
                    egress_port: None,
                });
            }
            _ => slot.vacate(),
        }
        destroyed
    }

    /// The rows of the conversation's sandboxes, those that were set aside first.
    async fn rows_of(
        &self,
        conversation: &ConversationKey,
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        // Those that were set aside first: with the latest gone and one of them left behind by a
        // crash, the next message would bring its old files back unasked.
        let mut rows = self.ledger.set_aside_of(conversation).await?;
        rows.extend(self.ledger.of(conversation).await?);
        Ok(rows)
    }

    async fn destroy_all(
        &self,
        conversation: &ConversationKey,
        rows: &[LedgerEntry],
    ) -> Result<(), LetGoError> {
        let mut destroyed = match &self.spending {
            Some(spending) => spending
                .forget(conversation)
                .await
                .map_err(LetGoError::from),
            None => Ok(()),
        };
        for entry in rows {
            destroyed = destroyed.and(self.destroy_entry(entry).await);
        }
        destroyed
    }

    /// Waits for creations that are under way and for the end of all outlets, and sees those out that
    /// wait for nobody any more. Called when no more leases are asked for.
    pub fn drain(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Ways out are works too: cut first, or the wait below would be for connections that go
            // on for hours.
            self.cut.cancel();
            self.works.close();
            self.works.wait().await;
            // When nothing makes sandboxes any more, or one that was on its way would come into the
            // pool behind this.
            self.empty_pool().await;
        })
    }

    async fn enter(
        &self,
        conversation: &ConversationKey,
        holder: Option<&SandboxHolder>,
    ) -> Result<SandboxLease, LeaseError> {
        let slot = self.slot(conversation);
        // Counted before the gate opens: the reaper sees the visitor and leaves the tenant alone.
        let visit = CountedVisit::begin(&slot);
        let (sandbox, set_aside) = self.tenant(conversation, &slot, holder).await?;
        visit.stays();
        let lease = SandboxLease::counted(sandbox, slot, Arc::clone(&self.changed));
        Ok(lease.leaving_behind(set_aside))
    }

    async fn tenant(
        &self,
        conversation: &ConversationKey,
        slot: &Arc<SandboxSlot>,
        holder: Option<&SandboxHolder>,
    ) -> Result<(Arc<Sandbox>, Option<SetAside>), LeaseError> {
        let mut tenant = slot.gate.lock().await;
        // Whoever uses it now holds it: a group's sandbox goes from one to the next.
        if let Some(holder) = holder.filter(|_| tenant.is_some()) {
            // Also for one that is there: it counts as the person's who uses it now, and a group's
            // as the last one's.
            slot.note_holder(holder);
        }
        if let Some(found) = tenant.as_mut() {
            // One that an earlier configuration put elsewhere is not used any more: what runs there was
            // judged for here.
            let (id, kind) = (found.spec.id.clone(), found.backend);
            if self.unfinished.contains(&id) {
                // It was to be destroyed: nobody is given it, with the files in it, for want of a row.
                if let Err(LetGoError::Ledger(error)) = self.destroy(&id, kind).await {
                    return Err(error.into());
                }
            } else if kind == self.plan_of(conversation).backend {
                match self.meet(found, holder).await {
                    Ok(sandbox) => return Ok((sandbox, None)),
                    Err(error) if error.spares_the_sandbox() => return Err(error),
                    Err(_) => {}
                }
            }
            if let Some(leaving) = tenant.take() {
                leaving.close_outlet().await;
            }
            slot.vacate();
        }
        // The place before the sandbox: otherwise there could be one too many for the time that it
        // takes to make it.
        self.make_room(slot, holder).await?;
        let moved_in = match self.move_in(conversation).await {
            Ok(moved_in) => moved_in,
            Err(error) => {
                slot.vacate();
                return Err(error);
            }
        };
        let MovedIn {
            spec,
            sandbox,
            set_aside,
        } = moved_in;
        let moved = tenant.insert(SlotSandbox {
            egress_port: self.open_egress_port(&spec, &sandbox).await,
            backend: self.plan_of(conversation).backend,
            spec: Arc::new(spec),
            sandbox: Some(Arc::clone(&sandbox)),
        });
        moved.leaves_for(holder);
        slot.touch();
        Ok((sandbox, set_aside))
    }

    async fn move_in(&self, conversation: &ConversationKey) -> Result<MovedIn, LeaseError> {
        let mut set_aside = None;
        match self.ledger.of(conversation).await? {
            // To be destroyed, and no row says so.
            Some(entry)
                if self.unfinished.contains(&entry.id)
                    && entry.state != LedgerState::Destroying =>
            {
                if let Err(LetGoError::Ledger(error)) = self.destroy(&entry.id, entry.backend).await
                {
                    return Err(error.into());
                }
            }
            Some(entry) if self.may_come_back(&entry) => match self.bring_back(&entry).await {
                Ok((spec, sandbox)) => return Ok(MovedIn::alone(spec, sandbox)),
                // Whoever does not answer now may later: its files are not given up.
                Err(error) if error.spares_the_sandbox() => return Err(error),
                Err(error) if !holds_files(&entry) => {
                    tracing::warn!(sandbox = %entry.id, %error, "a sandbox did not come back");
                    self.write_off(&entry).await;
                }
                Err(error) if error.is_gone() => {
                    set_aside = Some(self.set_aside(&entry, false).await?);
                }
                Err(error) => return Err(not_back(&entry, error)),
            },
            Some(entry) if holds_files(&entry) => {
                set_aside = Some(self.set_aside(&entry, true).await?);
            }
            Some(entry) => self.write_off(&entry).await,
            None => {}
        }
        let moved_in = match self.take_back(conversation).await? {
            Some(back) => back,
            None => {
                let (spec, sandbox) = self.create(conversation).await?;
                MovedIn::alone(spec, sandbox)
            }
        };
        Ok(MovedIn {
            set_aside,
            ..moved_in
        })
    }

    pub(crate) async fn open_egress_port(
        &self,
        spec: &SandboxSpec,
        sandbox: &Sandbox,
    ) -> Option<EgressPort> {
        let NetworkMode::Proxied { port } = spec.network else {
            return None;
        };
        let (egress, spending) = (self.egress.as_ref()?, self.spending.as_ref());
        let (whose, works) = (&spec.conversation, &self.works);
        Some(EgressPort::open(sandbox, whose, egress, spending, port, works, &self.cut).await)
    }

    /// What the conversation's sandboxes are like.
    pub(crate) fn plan_of(&self, conversation: &ConversationKey) -> &SandboxPlan {
        let own = conversation.platform();
        own.and_then(|platform| self.apart.get(&platform))
            .unwrap_or(&self.plan)
    }

    /// Whether new sandboxes come from there.
    pub(crate) fn uses(&self, backend: BackendKind) -> bool {
        let plans = std::iter::once(&*self.plan).chain(self.apart.values());
        plans.into_iter().any(|plan| plan.backend == backend)
    }

    fn may_come_back(&self, entry: &LedgerEntry) -> bool {
        entry.backend == self.plan_of(&entry.conversation).backend
            && matches!(
                entry.state,
                LedgerState::Running | LedgerState::Stopping | LedgerState::Stopped
            )
    }

    pub(crate) fn backend(&self, kind: BackendKind) -> Result<&Arc<dyn Backend>, LeaseError> {
        self.backends.get(&kind).ok_or(LeaseError::NoBackend(kind))
    }

    pub(crate) fn slot(&self, conversation: &ConversationKey) -> Arc<SandboxSlot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots
            .entry(conversation.clone())
            .or_insert_with(|| Arc::new(SandboxSlot::empty()));
        Arc::clone(slot)
    }

    pub(crate) fn everyone(&self) -> Vec<(ConversationKey, Arc<SandboxSlot>)> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots
            .iter()
            .map(|(key, slot)| (key.clone(), Arc::clone(slot)))
            .collect()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
