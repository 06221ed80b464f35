//! A backend that only remembers, and a place to try things in.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_sandbox::{
    Backend, BackendError, Found, FoundState, Lifeline, Link, Network, Persistence, Readiness,
    Spec, SystemView,
};
use hermetic_session::{DiskBounds, Holder, Lease, LeaseError, Plan, Sandboxes};
use hermetic_store::{LedgerState, Store};
use hermetic_types::{BackendKind, ConversationKey, InstallationId, Limits, Platform, SandboxId};
use hermetic_warden::protocol::hello;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_util::sync::CancellationToken;

#[derive(Default)]
pub(crate) struct Fake {
    /// Native where nothing is said.
    kind: Option<BackendKind>,
    alive: Mutex<BTreeMap<SandboxId, FoundState>>,
    created: AtomicUsize,
    fail_creates: AtomicBool,
    fail_destroys: AtomicBool,
    fail_resumes: AtomicBool,
    fail_stops: AtomicBool,
    /// A stop keeps the files.
    keeps: AtomicBool,
    /// What exists without a row is somebody's `hermetic exec`.
    pub(crate) tied: AtomicBool,
    create_millis: AtomicU64,
    /// Nobody answers.
    pub(crate) down: AtomicBool,
    /// Wardens of this moment answer no greeting; one that is started anew does.
    frozen: AtomicBool,
    /// What each has on the disk.
    uses: Mutex<HashMap<SandboxId, u64>>,
    /// How often that was asked.
    disk_counts: AtomicUsize,
    /// The far ends of all links.
    ends: Mutex<Vec<tokio::task::JoinHandle<std::io::Result<u64>>>>,
}

pub(crate) struct Lab {
    pub(crate) fake: Arc<Fake>,
    pub(crate) sandboxes: Sandboxes,
    plan: Plan,
    store: Store,
    _folder: Arc<tempfile::TempDir>,
}

impl Lab {
    pub(crate) async fn new(persistence: Persistence, most: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state.db")).await.unwrap();
        let plan = Plan {
            backend: BackendKind::Native,
            system: SystemView::Host,
            limits: Limits::default(),
            mounts: Vec::new(),
            env: BTreeMap::new(),
            network: Network::Closed,
            persistence,
            lifetime: Duration::from_secs(1800),
            most,
            most_each: most,
            pool: 0,
        };
        let fake = Arc::new(Fake::default());
        fake.keeps
            .store(persistence == Persistence::Kept, Ordering::SeqCst);
        let sandboxes = open(&plan, &fake, &store);
        Self {
            fake,
            sandboxes,
            plan,
            store,
            _folder: Arc::new(folder),
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
        self.sandboxes = open(&self.plan, &self.fake, &self.store);
        self
    }

    /// The same home, where conversations of webhooks run elsewhere; its fake is the one there.
    pub(crate) fn with_webhooks_on(&self, kind: BackendKind) -> Self {
        let fake = Arc::new(Fake {
            kind: Some(kind),
            keeps: (self.plan.persistence == Persistence::Kept).into(),
            ..Fake::default()
        });
        let own = Plan {
            backend: kind,
            ..self.plan.clone()
        };
        let backends: [Arc<dyn Backend>; 2] = [Arc::clone(&self.fake) as _, Arc::clone(&fake) as _];
        let installation = InstallationId::random();
        let sandboxes = Sandboxes::new(
            self.plan.clone(),
            installation,
            backends,
            self.store.ledger(),
        )
        .apart([(Platform::Webhook, own)]);
        Self {
            fake,
            sandboxes,
            plan: self.plan.clone(),
            store: self.store.clone(),
            _folder: Arc::clone(&self._folder),
        }
    }

    /// Keeps house until so many wait.
    pub(crate) async fn warm_up(&self, waiting: usize) {
        let stop = CancellationToken::new();
        let house = tokio::spawn({
            let (sandboxes, stop) = (self.sandboxes.clone(), stop.clone());
            async move { sandboxes.keep_house(stop).await }
        });
        while self.waiting().await < waiting {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        house.await.unwrap();
    }

    /// Rows of no conversation's that run.
    pub(crate) async fn waiting(&self) -> usize {
        let states = self.states().await;
        let nobodys = |(who, state): &&(String, LedgerState)| {
            who.starts_with("pool:") && *state == LedgerState::Running
        };
        states.iter().filter(nobodys).count()
    }

    pub(crate) async fn lease(&self, who: &str) -> Result<Lease, LeaseError> {
        self.sandboxes.lease(&ConversationKey::new(who)).await
    }

    /// The same lab, where one person may have so many.
    pub(crate) fn with_most_each(mut self, most_each: usize) -> Self {
        self.plan.most_each = most_each;
        self.sandboxes = open(&self.plan, &self.fake, &self.store);
        self
    }

    /// A conversation of somebody who may have others.
    pub(crate) async fn lease_for(&self, who: &str, topic: &str) -> Result<Lease, LeaseError> {
        let conversation = ConversationKey::new(format!("{who}/{topic}"));
        let holder = Holder::named(who);
        self.sandboxes.lease_for(&conversation, &holder).await
    }

    /// The same home after the process died.
    pub(crate) fn restart(&self) -> Sandboxes {
        open(&self.plan, &self.fake, &self.store)
    }

    /// The same home with nothing but that other backend, as after the first was uninstalled.
    pub(crate) fn only_with(&self, other: &Self) -> Sandboxes {
        let plan = Plan {
            backend: other.fake.kind(),
            ..self.plan.clone()
        };
        open(&plan, &other.fake, &self.store)
    }

    /// The same home, where new sandboxes are kept or not.
    pub(crate) fn with_persistence(&self, persistence: Persistence) -> Sandboxes {
        let plan = Plan {
            persistence,
            ..self.plan.clone()
        };
        open(&plan, &self.fake, &self.store)
    }

    pub(crate) fn ledger(&self) -> hermetic_store::Ledger {
        self.store.ledger()
    }

    /// A row without a sandbox.
    pub(crate) async fn name_only(&self, who: &str) -> SandboxId {
        let now = SystemTime::now().into();
        let (id, key) = (SandboxId::random(), ConversationKey::new(who));
        self.store
            .ledger()
            .name(&id, &key, BackendKind::Native, "{}", now)
            .await
            .unwrap();
        id
    }

    pub(crate) async fn states(&self) -> Vec<(String, LedgerState)> {
        let entries = self.store.ledger().entries().await.unwrap();
        entries
            .into_iter()
            .map(|entry| (entry.conversation.to_string(), entry.state))
            .collect()
    }

    /// Lets the house keep itself while the clock runs ahead. The store works in threads of its
    /// own, so time only moves between two looks, not during one.
    pub(crate) async fn pass(&self, time: Duration) {
        let stop = CancellationToken::new();
        let house = tokio::spawn({
            let (sandboxes, stop) = (self.sandboxes.clone(), stop.clone());
            async move { sandboxes.keep_house(stop).await }
        });
        const STEPS: u32 = 20;
        for _ in 0..STEPS {
            tokio::time::pause();
            tokio::time::advance(time / STEPS + Duration::from_millis(1)).await;
            tokio::time::resume();
            // A round reads the ledger last: sixteen reads of ours later every entry has had its turn.
            for _ in 0..16 {
                self.store.ledger().entries().await.unwrap();
                tokio::task::yield_now().await;
            }
        }
        stop.cancel();
        house.await.unwrap();
    }
}

fn open(plan: &Plan, fake: &Arc<Fake>, store: &Store) -> Sandboxes {
    let backend: Arc<dyn Backend> = Arc::clone(fake) as Arc<dyn Backend>;
    Sandboxes::new(
        plan.clone(),
        InstallationId::random(),
        [backend],
        store.ledger(),
    )
}

impl Fake {
    pub(crate) fn created(&self) -> usize {
        self.created.load(Ordering::SeqCst)
    }

    pub(crate) fn living(&self) -> usize {
        let alive = self.alive.lock().unwrap();
        alive
            .values()
            .filter(|state| **state == FoundState::Running)
            .count()
    }

    pub(crate) fn ids(&self) -> Vec<SandboxId> {
        self.alive.lock().unwrap().keys().cloned().collect()
    }

    pub(crate) fn fail_creates(&self, fail: bool) {
        self.fail_creates.store(fail, Ordering::SeqCst);
    }

    pub(crate) fn fail_destroys(&self, fail: bool) {
        self.fail_destroys.store(fail, Ordering::SeqCst);
    }

    pub(crate) fn fail_resumes(&self, fail: bool) {
        self.fail_resumes.store(fail, Ordering::SeqCst);
    }

    pub(crate) fn fail_stops(&self, fail: bool) {
        self.fail_stops.store(fail, Ordering::SeqCst);
    }

    /// Somebody removed it, or the engine is another one now; and back again.
    pub(crate) fn hide(&self, id: &SandboxId) -> Option<FoundState> {
        self.alive.lock().unwrap().remove(id)
    }

    pub(crate) fn show(&self, id: &SandboxId) {
        self.halt(id);
    }

    pub(crate) fn slow_creates(&self, time: Duration) {
        self.create_millis
            .store(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    pub(crate) fn make_stray(&self, state: FoundState) {
        self.alive
            .lock()
            .unwrap()
            .insert(SandboxId::random(), state);
    }

    /// Its processes are gone; the backend still finds the rest of it.
    pub(crate) fn kill(&self, id: &SandboxId) {
        self.alive
            .lock()
            .unwrap()
            .insert(id.clone(), FoundState::Broken);
    }

    /// Every sandbox's warden is gone at once.
    pub(crate) async fn hang_up(&self) {
        let ends = std::mem::take(&mut *self.ends.lock().unwrap());
        for end in ends {
            end.abort();
            let _ = end.await;
        }
        // The near ends see it when they are next polled.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    /// Its processes are there and do nothing.
    pub(crate) fn freeze(&self) {
        self.frozen.store(true, Ordering::SeqCst);
    }

    /// Its processes are gone; its files are kept.
    pub(crate) fn halt(&self, id: &SandboxId) {
        self.alive
            .lock()
            .unwrap()
            .insert(id.clone(), FoundState::Stopped);
    }

    fn answer(&self) -> Result<(), BackendError> {
        if self.down.load(Ordering::SeqCst) {
            return Err(BackendError::Unavailable {
                what: "nobody answers".to_owned(),
                remedy: "wait".to_owned(),
            });
        }
        Ok(())
    }

    fn reach(&self, id: &SandboxId) -> Result<Link, BackendError> {
        self.answer()?;
        match self.alive.lock().unwrap().get(id) {
            Some(FoundState::Running) if self.frozen.load(Ordering::SeqCst) => {
                Ok(Link::new(tokio::io::duplex(1024).0))
            }
            Some(FoundState::Running) => {
                let (ours, end) = warden();
                self.ends.lock().unwrap().push(end);
                Ok(Link::new(ours))
            }
            _ => Err(BackendError::NoSuchSandbox { id: id.clone() }),
        }
    }
}

/// Says hello and then nothing.
fn warden() -> (DuplexStream, tokio::task::JoinHandle<std::io::Result<u64>>) {
    let (ours, mut theirs) = tokio::io::duplex(1024);
    let end = tokio::spawn(async move {
        theirs.write_all(&hello::hello()).await?;
        tokio::io::copy(&mut theirs.take(u64::MAX), &mut tokio::io::sink()).await
    });
    (ours, end)
}

fn refusal(step: &str) -> BackendError {
    BackendError::failed(step, "told to fail")
}

impl Fake {
    pub(crate) fn uses(&self, id: &SandboxId, bytes: u64) {
        self.uses.lock().unwrap().insert(id.clone(), bytes);
    }

    pub(crate) fn disk_counts(&self) -> usize {
        self.disk_counts.load(Ordering::SeqCst)
    }
}

impl Backend for Fake {
    fn kind(&self) -> BackendKind {
        self.kind.unwrap_or(BackendKind::Native)
    }

    fn disk_use<'a>(&'a self, _: &'a [SandboxId]) -> BoxFuture<'a, HashMap<SandboxId, u64>> {
        async {
            let uses = self.uses.lock().unwrap().clone();
            self.disk_counts.fetch_add(1, Ordering::SeqCst);
            uses
        }
        .boxed()
    }

    fn readiness(&self) -> BoxFuture<'_, Readiness> {
        async { Readiness { layers: Vec::new() } }.boxed()
    }

    fn create<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Link, BackendError>> {
        async move {
            tokio::time::sleep(Duration::from_millis(
                self.create_millis.load(Ordering::SeqCst),
            ))
            .await;
            if self.fail_creates.load(Ordering::SeqCst) {
                return Err(refusal("create"));
            }
            self.created.fetch_add(1, Ordering::SeqCst);
            self.alive
                .lock()
                .unwrap()
                .insert(spec.id.clone(), FoundState::Running);
            self.reach(&spec.id)
        }
        .boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Link, BackendError>> {
        async move { self.reach(id) }.boxed()
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        async move {
            self.answer()?;
            if self.fail_stops.load(Ordering::SeqCst) {
                return Err(refusal("stop"));
            }
            self.frozen.store(false, Ordering::SeqCst);
            if self.keeps.load(Ordering::SeqCst) {
                self.halt(id);
            } else {
                self.hide(id);
            }
            Ok(())
        }
        .boxed()
    }

    fn resume<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Link, BackendError>> {
        async move {
            self.answer()?;
            if self.fail_resumes.load(Ordering::SeqCst) {
                return Err(refusal("resume"));
            }
            let mut alive = self.alive.lock().unwrap();
            match alive.get_mut(&spec.id) {
                Some(state) => *state = FoundState::Running,
                None => {
                    return Err(BackendError::NoSuchSandbox {
                        id: spec.id.clone(),
                    });
                }
            }
            drop(alive);
            self.reach(&spec.id)
        }
        .boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        async move {
            self.answer()?;
            if self.fail_destroys.load(Ordering::SeqCst) {
                return Err(refusal("destroy"));
            }
            self.alive.lock().unwrap().remove(id);
            Ok(())
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Found>, BackendError>> {
        async move {
            self.answer()?;
            let alive = self.alive.lock().unwrap();
            let found = alive.iter().map(|(id, state)| Found {
                id: id.clone(),
                conversation: None,
                lifeline: self
                    .tied
                    .load(Ordering::SeqCst)
                    .then_some(Lifeline::Creator),
                state: *state,
            });
            Ok(found.collect())
        }
        .boxed()
    }
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}
