//! Sandboxes of a backend that only remembers, in a home of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hermetic_sandbox::{Backend, NetworkMode, SandboxPersistence, SystemView};
use hermetic_session::{
    DiskBounds, InstalledMounts, LeaseError, SandboxHolder, SandboxLease, SandboxPlan, Sandboxes,
};
use hermetic_store::{LedgerState, RowOwner, Store};
use hermetic_testkit::backend::{Commands, Printed, StandInBackend};
use hermetic_types::{
    BackendDescription, BackendKind, ConversationKey, InstallationId, Platform, SandboxId,
    SandboxLimits, SystemClock, Timestamp,
};
use tokio_util::sync::CancellationToken;

pub(crate) struct Lab {
    pub(crate) backend: Arc<StandInBackend>,
    pub(crate) sandboxes: Sandboxes,
    plan: SandboxPlan,
    store: Store,
    folder: Arc<tempfile::TempDir>,
}

impl Lab {
    pub(crate) async fn new(persistence: SandboxPersistence, most: usize) -> Self {
        Self::whose_wardens(Commands::Silent, persistence, most).await
    }

    /// The same with wardens that answer.
    pub(crate) async fn that_answers(persistence: SandboxPersistence, most: usize) -> Self {
        Self::whose_wardens(Commands::scripted(|_| Printed::text("")), persistence, most).await
    }

    async fn whose_wardens(
        commands: Commands,
        persistence: SandboxPersistence,
        most: usize,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state.db"), SystemClock::shared())
            .await
            .unwrap();
        let plan = SandboxPlan {
            backend: BackendKind::Native,
            system: SystemView::Host,
            limits: SandboxLimits::default(),
            mounts: Vec::new(),
            env: BTreeMap::new(),
            network: NetworkMode::Closed,
            persistence,
            lifetime: Duration::from_secs(1800),
            max_sandboxes: most,
            max_sandboxes_per_user: most,
            pool: 0,
        };
        let backend = stand_in(BackendKind::Native, commands, persistence);
        let sandboxes = open(&plan, &backend, &store);
        Self {
            backend,
            sandboxes,
            plan,
            store,
            folder: Arc::new(folder),
        }
    }

    /// The same lab, with bounds on the disk.
    pub(crate) fn with_disk_bounds(mut self, bounds: DiskBounds) -> Self {
        self.sandboxes = self.sandboxes.with_disk_bounds(bounds);
        self
    }

    /// The same lab, with so many sandboxes waiting.
    pub(crate) fn with_pool(mut self, pool: usize) -> Self {
        self.plan.pool = pool;
        self.sandboxes = open(&self.plan, &self.backend, &self.store);
        self
    }

    /// The same lab, where more is shown to sandboxes that are made now.
    pub(crate) fn with_installed(mut self, installed: Arc<dyn InstalledMounts>) -> Self {
        self.sandboxes = self.sandboxes.with_installed(installed);
        self
    }

    /// The same home, where conversations of webhooks run elsewhere; its backend is the one there.
    pub(crate) fn with_webhooks_on(&self, kind: BackendKind) -> Self {
        let elsewhere = stand_in(kind, Commands::Silent, self.plan.persistence);
        let own = SandboxPlan {
            backend: kind,
            ..self.plan.clone()
        };
        let backends: [Arc<dyn Backend>; 2] =
            [Arc::clone(&self.backend) as _, Arc::clone(&elsewhere) as _];
        let installation = InstallationId::random();
        let sandboxes = Sandboxes::new(
            self.plan.clone(),
            installation,
            backends,
            self.store.ledger(),
            SystemClock::shared(),
        )
        .apart([(Platform::Webhook, own)]);
        Self {
            backend: elsewhere,
            sandboxes,
            plan: self.plan.clone(),
            store: self.store.clone(),
            folder: Arc::clone(&self.folder),
        }
    }

    /// Keeps house until so many wait.
    pub(crate) async fn warm_up(&self, waiting: usize) {
        let stop = CancellationToken::new();
        let reaper = tokio::spawn({
            let (sandboxes, stop) = (self.sandboxes.clone(), stop.clone());
            async move { sandboxes.reap(stop).await }
        });
        while self.waiting().await < waiting {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        reaper.await.unwrap();
    }

    /// Rows of no conversation's that run.
    pub(crate) async fn waiting(&self) -> usize {
        let states = self.states().await;
        let nobodys = |(who, state): &&(String, LedgerState)| {
            who.starts_with("pool:") && *state == LedgerState::Running
        };
        states.iter().filter(nobodys).count()
    }

    pub(crate) async fn lease(&self, who: &str) -> Result<SandboxLease, LeaseError> {
        self.sandboxes.lease(&ConversationKey::new(who)).await
    }

    /// The same lab, where one person may have so many.
    pub(crate) fn with_most_each(mut self, most_each: usize) -> Self {
        self.plan.max_sandboxes_per_user = most_each;
        self.sandboxes = open(&self.plan, &self.backend, &self.store);
        self
    }

    /// A conversation of somebody who may have others.
    pub(crate) async fn lease_for(
        &self,
        who: &str,
        topic: &str,
    ) -> Result<SandboxLease, LeaseError> {
        let conversation = ConversationKey::new(format!("{who}/{topic}"));
        let holder = SandboxHolder::named(who);
        self.sandboxes.lease_for(&conversation, &holder).await
    }

    /// The same home after the process died.
    pub(crate) fn restart(&self) -> Sandboxes {
        open(&self.plan, &self.backend, &self.store)
    }

    /// The same home with nothing but that other backend, as after the first was uninstalled.
    pub(crate) fn only_with(&self, other: &Self) -> Sandboxes {
        let plan = SandboxPlan {
            backend: other.backend.kind(),
            ..self.plan.clone()
        };
        open(&plan, &other.backend, &self.store)
    }

    /// The same home, where new sandboxes are kept or not.
    pub(crate) fn with_persistence(&self, persistence: SandboxPersistence) -> Sandboxes {
        let plan = SandboxPlan {
            persistence,
            ..self.plan.clone()
        };
        open(&plan, &self.backend, &self.store)
    }

    pub(crate) fn ledger(&self) -> hermetic_store::SandboxLedger {
        self.store.ledger()
    }

    /// A row without a sandbox.
    pub(crate) async fn name_only(&self, who: &str) -> SandboxId {
        let now = Timestamp::from_millis(1);
        let (id, key) = (SandboxId::random(), ConversationKey::new(who));
        self.store
            .ledger()
            .name(&id, &key, BackendKind::Native, "{}", now)
            .await
            .unwrap();
        id
    }

    /// The same store and backend, opened by another gateway.
    pub(crate) async fn another_gateway(&self) -> Sandboxes {
        let path = self.folder.path().join("state.db");
        let gateway = "another".parse().unwrap();
        let store = Store::open_as(&path, gateway, SystemClock::shared()).await;
        open(&self.plan, &self.backend, &store.unwrap())
    }

    pub(crate) async fn states(&self) -> Vec<(String, LedgerState)> {
        let entries = self
            .store
            .ledger()
            .entries(RowOwner::ThisGateway)
            .await
            .unwrap();
        entries
            .into_iter()
            .map(|entry| (entry.conversation.to_string(), entry.state))
            .collect()
    }

    /// Lets the house keep itself while the clock runs ahead. The store works in threads of its
    /// own, so time only moves between two looks, not during one.
    pub(crate) async fn pass(&self, time: Duration) {
        let stop = CancellationToken::new();
        let reaper = tokio::spawn({
            let (sandboxes, stop) = (self.sandboxes.clone(), stop.clone());
            async move { sandboxes.reap(stop).await }
        });
        const STEPS: u32 = 20;
        for _ in 0..STEPS {
            tokio::time::pause();
            tokio::time::advance(time / STEPS + Duration::from_millis(1)).await;
            tokio::time::resume();
            // A round reads the ledger last: sixteen reads of ours later every entry has had its turn.
            for _ in 0..16 {
                self.store
                    .ledger()
                    .entries(RowOwner::ThisGateway)
                    .await
                    .unwrap();
                tokio::task::yield_now().await;
            }
        }
        stop.cancel();
        reaper.await.unwrap();
    }
}

fn stand_in(
    kind: BackendKind,
    commands: Commands,
    persistence: SandboxPersistence,
) -> Arc<StandInBackend> {
    let backend = StandInBackend::new(BackendDescription::sealed(kind), commands);
    backend.keep_files(persistence == SandboxPersistence::Kept);
    Arc::new(backend)
}

fn open(plan: &SandboxPlan, backend: &Arc<StandInBackend>, store: &Store) -> Sandboxes {
    let backend: Arc<dyn Backend> = Arc::clone(backend) as _;
    Sandboxes::new(
        plan.clone(),
        InstallationId::random(),
        [backend],
        store.ledger(),
        SystemClock::shared(),
    )
}
