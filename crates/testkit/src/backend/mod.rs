//! A backend without a kernel: sandboxes that are remembered, counted, and fail on demand.
//!
//! What is at the far end of a link is the test's choice: a warden that greets and then keeps silent,
//! one whose commands are scripted, or one that runs them with the host's bash in a folder of their own.
//! None of them is a boundary, whatever kind the backend says it is.

mod commands;
mod piped;
mod seam;
mod warden;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_sandbox::{BackendError, FoundState, LiveUse, SandboxProcess, WardenLink};
use hermetic_types::{BackendDescription, HolderEpoch, SandboxId};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use commands::{Commands, Printed};

/// One backend, shared by the gateway and the test.
#[derive(Debug)]
pub struct StandInBackend {
    /// What it plays.
    description: BackendDescription,
    commands: Commands,
    alive: Mutex<BTreeMap<SandboxId, FoundState>>,
    created: AtomicUsize,
    destroyed: AtomicUsize,
    orders: Orders,
    /// False while creating hangs.
    creating: watch::Sender<bool>,
    create_time: Mutex<Duration>,
    /// What each has on the disk.
    disk_use: Mutex<HashMap<SandboxId, u64>>,
    disk_counts: AtomicUsize,
    /// What each uses, and what runs in it; nothing for those of which it was not said.
    live_use: Mutex<HashMap<SandboxId, LiveUse>>,
    live_looks: AtomicUsize,
    processes: Mutex<HashMap<SandboxId, Vec<SandboxProcess>>>,
    /// The highest epoch that each one's warden was told.
    holders: Mutex<HashMap<SandboxId, watch::Sender<HolderEpoch>>>,
    /// The far ends of all links.
    ends: Mutex<Vec<JoinHandle<()>>>,
}

/// What the test ordered.
#[derive(Debug, Default)]
struct Orders {
    fail_creates: AtomicBool,
    break_creates: AtomicBool,
    fail_destroys: AtomicBool,
    fail_resumes: AtomicBool,
    fail_stops: AtomicBool,
    keeps_files: AtomicBool,
    is_tied: AtomicBool,
    is_down: AtomicBool,
    is_frozen: AtomicBool,
}

impl StandInBackend {
    pub fn new(description: BackendDescription, commands: Commands) -> Self {
        Self {
            description,
            commands,
            alive: Mutex::default(),
            created: AtomicUsize::new(0),
            destroyed: AtomicUsize::new(0),
            orders: Orders::default(),
            creating: watch::Sender::new(true),
            create_time: Mutex::default(),
            disk_use: Mutex::default(),
            disk_counts: AtomicUsize::new(0),
            live_use: Mutex::default(),
            live_looks: AtomicUsize::new(0),
            processes: Mutex::default(),
            holders: Mutex::default(),
            ends: Mutex::default(),
        }
    }

    /// How many sandboxes were created so far.
    pub fn created(&self) -> usize {
        self.created.load(Ordering::SeqCst)
    }

    /// How many of them were destroyed, each counted once.
    pub fn destroyed(&self) -> usize {
        self.destroyed.load(Ordering::SeqCst)
    }

    /// How many run.
    pub fn living(&self) -> usize {
        let alive = lock(&self.alive);
        let running = alive
            .values()
            .filter(|state| **state == FoundState::Running);
        running.count()
    }

    pub fn ids(&self) -> Vec<SandboxId> {
        lock(&self.alive).keys().cloned().collect()
    }

    pub fn fail_creates(&self, fail: bool) {
        self.orders.fail_creates.store(fail, Ordering::SeqCst);
    }

    /// Creating panics, as by a mistake in a backend.
    pub fn break_creates(&self, break_down: bool) {
        let orders = &self.orders;
        orders.break_creates.store(break_down, Ordering::SeqCst);
    }

    pub fn fail_destroys(&self, fail: bool) {
        self.orders.fail_destroys.store(fail, Ordering::SeqCst);
    }

    pub fn fail_resumes(&self, fail: bool) {
        self.orders.fail_resumes.store(fail, Ordering::SeqCst);
    }

    pub fn fail_stops(&self, fail: bool) {
        self.orders.fail_stops.store(fail, Ordering::SeqCst);
    }

    /// Whether a stop keeps the files, as of a kept sandbox.
    pub fn keep_files(&self, keep: bool) {
        self.orders.keeps_files.store(keep, Ordering::SeqCst);
    }

    /// Whether what exists is somebody's `hermetic exec`, which ends with its creator.
    pub fn tie_to_creator(&self, tied: bool) {
        self.orders.is_tied.store(tied, Ordering::SeqCst);
    }

    /// Whether nobody answers.
    pub fn go_down(&self, down: bool) {
        self.orders.is_down.store(down, Ordering::SeqCst);
    }

    /// Wardens of this moment answer no greeting; one that is started anew does.
    pub fn freeze(&self) {
        self.orders.is_frozen.store(true, Ordering::SeqCst);
    }

    /// Whether creating hangs from now on; those that hang go on when it does not any more.
    pub fn hang_creates(&self, hang: bool) {
        self.creating.send_replace(!hang);
    }

    /// How long creating takes, by the runtime's clock.
    pub fn slow_creates(&self, time: Duration) {
        *lock(&self.create_time) = time;
    }

    /// Somebody removed it, or the engine is another one now.
    pub fn hide(&self, id: &SandboxId) -> Option<FoundState> {
        lock(&self.alive).remove(id)
    }

    /// One that was hidden is there again, stopped.
    pub fn show(&self, id: &SandboxId) {
        self.halt(id);
    }

    /// A sandbox that no ledger knows.
    pub fn make_stray(&self, state: FoundState) {
        lock(&self.alive).insert(SandboxId::random(), state);
    }

    /// Its processes are gone; the backend still finds the rest of it.
    pub fn kill(&self, id: &SandboxId) {
        lock(&self.alive).insert(id.clone(), FoundState::Broken);
    }

    /// Its processes are gone; its files are kept.
    pub fn halt(&self, id: &SandboxId) {
        lock(&self.alive).insert(id.clone(), FoundState::Stopped);
    }

    /// Every sandbox's warden is gone at once.
    pub async fn hang_up(&self) {
        let ends = std::mem::take(&mut *lock(&self.ends));
        for end in ends {
            end.abort();
            let _ = end.await;
        }
        // The near ends see it when they are next polled.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    /// What a sandbox has on the disk.
    pub fn uses(&self, id: &SandboxId, bytes: u64) {
        lock(&self.disk_use).insert(id.clone(), bytes);
    }

    /// What a sandbox uses from now on, and what runs in it.
    pub fn works(&self, id: &SandboxId, uses: LiveUse, processes: Vec<SandboxProcess>) {
        lock(&self.live_use).insert(id.clone(), uses);
        lock(&self.processes).insert(id.clone(), processes);
    }

    /// How often it was asked what sandboxes use.
    pub fn live_looks(&self) -> usize {
        self.live_looks.load(Ordering::SeqCst)
    }

    /// How often disks were counted.
    pub fn disk_counts(&self) -> usize {
        self.disk_counts.load(Ordering::SeqCst)
    }

    fn is(&self, order: impl FnOnce(&Orders) -> &AtomicBool) -> bool {
        order(&self.orders).load(Ordering::SeqCst)
    }

    fn answer(&self) -> Result<(), BackendError> {
        if self.is(|orders| &orders.is_down) {
            return Err(BackendError::Unavailable {
                what: "nobody answers".to_owned(),
                remedy: "wait".to_owned(),
            });
        }
        Ok(())
    }

    fn reach(&self, id: &SandboxId) -> Result<WardenLink, BackendError> {
        self.answer()?;
        match lock(&self.alive).get(id) {
            Some(FoundState::Running) if self.is(|orders| &orders.is_frozen) => {
                Ok(WardenLink::new(tokio::io::duplex(1024).0))
            }
            Some(FoundState::Running) => {
                let (ours, theirs) = tokio::io::duplex(64 << 10);
                let highest = lock(&self.holders).entry(id.clone()).or_default().clone();
                let played = warden::play(self.commands.clone(), id.clone(), highest, theirs);
                let end = tokio::spawn(played);
                lock(&self.ends).push(end);
                Ok(WardenLink::new(ours))
            }
            _ => Err(missing(id)),
        }
    }
}

fn missing(id: &SandboxId) -> BackendError {
    BackendError::NoSuchSandbox { id: id.clone() }
}

fn lock<T: fmt::Debug>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
