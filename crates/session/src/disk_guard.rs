//! The disk that sandboxes share with the store: a reserve for the store, a bound on what sandboxes have
//! together, and an end for those that write beyond.
//!
//! The file system is asked many times a second how much is left, which costs next to nothing. Below the
//! reserve nothing new is run, and the sandbox that grew most is stopped, before the store finds no room.
//! Should others fill the disk all the same, a file that was made for that purpose gives its room to the
//! store.

mod file_system;
mod tenants;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use hermetic_types::{ConversationKey, HealthReport, SandboxId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::file_system::{BallastFile, SpaceLeft};
pub use self::tenants::{DiskTenant, DiskTenants, UnknownTenants};
use crate::Sandboxes;

/// What is kept free, and what sandboxes may have together.
#[derive(Clone, Debug)]
pub struct DiskBounds {
    /// Where the store is: its file system is the one that is watched.
    pub folder: PathBuf,
    /// Kept free for the store. Never more than a twentieth of the file system.
    pub reserve_bytes: u64,
    /// All sandboxes together. Four fifths of the file system where nothing is said.
    pub most_bytes: Option<u64>,
}

/// Keeps room for the store on the disk that sandboxes share with it.
#[derive(Debug)]
pub struct DiskGuard {
    bounds: DiskBounds,
    /// Below the reserve.
    is_low: AtomicBool,
    health: HealthReport,
    /// Conversations whose sandbox was stopped for the disk's sake and that were not told yet.
    stopped: Mutex<HashSet<ConversationKey>>,
    state: Mutex<DiskCount>,
}

/// What the last count of the disk came to.
#[derive(Debug, Default)]
struct DiskCount {
    /// What each had when there was enough room, or when somebody was last stopped. Growth is measured
    /// from there and not from the last look, so that whoever writes slowly is seen too.
    baseline: HashMap<SandboxId, u64>,
    /// What they had together.
    sum: u64,
    /// What was in use on the whole file system then; nothing before the first count.
    whole: Option<u64>,
    /// Counting walks over every file, so it rests until then where nothing grows.
    rests_until: Option<Instant>,
    /// Who is there could not be told, which was said.
    nobody_told: bool,
}

/// How often the file system is looked at.
const SPACE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Fewer files than this that can still be made is as bad as no room.
const FEWEST_FILES: u64 = 2_000;

/// A sandbox that grew by less is not blamed.
const TOO_LITTLE_TO_BLAME: u64 = 256 << 10;

/// Growth of the whole file system that ends the rest between two counts.
const WORTH_A_COUNT: u64 = 1 << 20;

/// The shortest rest, and how much longer than the count before it is.
const SHORTEST_REST: Duration = Duration::from_secs(1);
const REST_PER_COUNT: u32 = 10;

/// What the person whose sandbox it was is told.
const STOPPED: &str = "The sandbox was stopped: it wrote so much that the disk all conversations share ran out of room. \
     Its files are kept where they are kept at all. Nothing of it goes on by itself; delete what is not needed \
     before you write more.";

/// The same while nothing can be run, so nothing can be deleted by a command either.
const STOPPED_AND_SHUT: &str = "The sandbox was stopped: it wrote so much that the disk all conversations share ran out of room. \
     Its files are kept where they are kept at all. Nothing runs until there is room: /destroy gives this \
     conversation's files up, or the operator makes room.";

impl DiskGuard {
    pub fn new(bounds: DiskBounds) -> Self {
        Self {
            bounds,
            is_low: AtomicBool::new(false),
            health: HealthReport::default(),
            stopped: Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Whether so little is left that nothing new is to be run.
    pub fn is_low(&self) -> bool {
        self.is_low.load(Ordering::SeqCst)
    }

    fn reserve(&self, left: &SpaceLeft) -> u64 {
        self.bounds.reserve_bytes.min(left.total / 20)
    }

    fn most(&self, left: &SpaceLeft) -> u64 {
        self.bounds.most_bytes.unwrap_or(left.total / 5 * 4)
    }

    /// Whether the sandboxes could have passed their bound since they were counted.
    fn may_be_over(&self, left: &SpaceLeft) -> bool {
        let counted = self.counted();
        let Some(whole) = counted.whole else {
            return true;
        };
        let grown = left.used().saturating_sub(whole);
        counted.sum.saturating_add(grown) >= self.most(left)
    }

    /// Why the conversation's sandbox is gone, if it was stopped and that was not said yet.
    fn why_stopped(&self, conversation: &ConversationKey) -> Option<&'static str> {
        let said = match self.is_low() {
            true => STOPPED_AND_SHUT,
            false => STOPPED,
        };
        self.take_stopped(conversation).then_some(said)
    }

    /// Whether the conversation's sandbox was stopped and that was not told yet. It counts as told then.
    pub fn take_stopped(&self, conversation: &ConversationKey) -> bool {
        self.stopped().remove(conversation)
    }

    /// Notes what each has, counted since `began`. What each had before is given back where all of them
    /// have `most` or more, so that somebody is to be blamed.
    fn note_count(
        &self,
        left: &SpaceLeft,
        each: &HashMap<SandboxId, u64>,
        began: Instant,
        most: u64,
    ) -> Option<HashMap<SandboxId, u64>> {
        let mut counted = self.counted();
        let is_first = counted.whole.is_none();
        counted.nobody_told = false;
        counted.whole = Some(left.used());
        counted.sum = each.values().sum();
        let rest = SHORTEST_REST.max(began.elapsed() * REST_PER_COUNT);
        counted.rests_until = Some(Instant::now() + rest);
        // Nobody is blamed for what was there before anybody looked.
        if counted.sum < most || is_first {
            counted.baseline.clone_from(each);
            return None;
        }
        Some(counted.baseline.clone())
    }

    /// Whether the last count still tells enough.
    fn rests(&self, left: &SpaceLeft) -> bool {
        let counted = self.counted();
        let grew = |whole: u64| left.used() >= whole.saturating_add(WORTH_A_COUNT);
        let rests = counted
            .rests_until
            .is_some_and(|until| Instant::now() < until);
        rests && !counted.whole.is_none_or(grew)
    }

    fn counted(&self) -> MutexGuard<'_, DiskCount> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> MutexGuard<'_, HashSet<ConversationKey>> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sandboxes {
    /// Keeps room on the disk, once [`guard_disk`](Self::guard_disk) runs.
    pub fn with_disk_bounds(mut self, bounds: DiskBounds) -> Self {
        self.disk = Some(DiskGuard::new(bounds).into());
        self
    }

    /// Whether no sandbox is given out because the disk has too little room. Its health says more than
    /// that: sandboxes may also have more than their sum while there is room.
    pub fn is_disk_low(&self) -> bool {
        self.disk.as_ref().is_some_and(|guard| guard.is_low())
    }

    pub fn disk_health(&self) -> HealthReport {
        let guard = self.disk.as_ref();
        guard.map_or_else(HealthReport::default, |guard| guard.health.clone())
    }

    /// Why the conversation's sandbox is gone, if it was stopped for the disk's sake. Said once.
    pub fn why_stopped(&self, conversation: &ConversationKey) -> Option<&'static str> {
        self.disk.as_ref()?.why_stopped(conversation)
    }

    /// Looks after the disk until `stop`.
    pub fn guard_disk(&self, stop: CancellationToken) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(guard) = &self.disk {
                let ballast = BallastFile::below(&guard.bounds.folder);
                guard.watch_with(self, Some(ballast), stop).await;
            }
        })
    }
}

impl DiskGuard {
    /// Looks after the disk until `stop`, for a process beside the gateway: the file that holds room for the store
    /// is the gateway's.
    pub fn watch<'a>(
        &'a self,
        tenants: &'a dyn DiskTenants,
        stop: CancellationToken,
    ) -> BoxFuture<'a, ()> {
        Box::pin(self.watch_with(tenants, None, stop))
    }

    async fn watch_with(
        &self,
        tenants: &dyn DiskTenants,
        mut ballast: Option<BallastFile>,
        stop: CancellationToken,
    ) {
        // At once: a start wants to know whether there is room.
        while !stop.is_cancelled() {
            match SpaceLeft::on(&self.bounds.folder) {
                Ok(left) => self.look(tenants, ballast.as_mut(), &left).await,
                Err(error) => {
                    let why = format!("it cannot be looked at ({error})");
                    self.health.degraded(why, tenants.now());
                }
            }
            stop.run_until_cancelled(tokio::time::sleep(SPACE_CHECK_INTERVAL))
                .await;
        }
    }

    async fn look(
        &self,
        tenants: &dyn DiskTenants,
        ballast: Option<&mut BallastFile>,
        left: &SpaceLeft,
    ) {
        let reserve = self.reserve(left);
        // What is free only because our own file gave way is not room that may be used: taken for
        // it, the guard would open again at once, and the next writer would take the store's last
        // reserve.
        let released = ballast.as_ref().map_or(0, |ballast| ballast.released());
        let free = left.free.saturating_sub(released);
        // What was once too little is enough only with something to spare, or it would change all the time.
        let enough = match self.is_low() {
            true => reserve + reserve / 4,
            false => reserve,
        };
        let is_low = free < enough || left.files.is_some_and(|files| files < FEWEST_FILES);
        // Before anything that takes time: no new sandbox is given out while those that are there
        // are counted.
        self.is_low.store(is_low, Ordering::SeqCst);
        // Given up only when the store itself is about to find no room, and taken back with twice
        // the reserve free, so that the file does not come and go.
        if let Some(ballast) = ballast {
            if left.free < ballast.size(reserve) {
                ballast.release();
            } else if !is_low && left.free > 2 * enough {
                ballast.keep(reserve);
            }
        }
        if is_low {
            let (free, reserve) = (left.free >> 20, reserve >> 20);
            let why = format!("{free} MB are free and {reserve} MB are to be");
            self.health.degraded(why, tenants.now());
            self.stop_who_grew(tenants, left, 0).await;
        } else if self.may_be_over(left) {
            let most = self.most(left);
            let sum = self.stop_who_grew(tenants, left, most).await;
            if sum < most {
                self.health.recovered();
            } else {
                let (sum, most) = (sum >> 20, most >> 20);
                let why =
                    format!("sandboxes hold {sum} MB of the {most} MB they may have together");
                self.health.degraded(why, tenants.now());
            }
        } else {
            self.health.recovered();
        }
    }

    /// Counts all sandboxes and, if they have `most` or more, stops the running one that grew most since
    /// there was enough room. What they have together.
    async fn stop_who_grew(&self, tenants: &dyn DiskTenants, left: &SpaceLeft, most: u64) -> u64 {
        if self.rests(left) {
            return self.counted().sum;
        }
        let began = Instant::now();
        let all = match tenants.tenants().await {
            Ok(all) => all,
            Err(error) => {
                // Said once: this is looked at ten times a second.
                if !std::mem::replace(&mut self.counted().nobody_told, true) {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::error!(cause, "{error}");
                }
                return 0;
            }
        };
        let each = tenants.disk_use(&all, &self.bounds.folder).await;
        let sum: u64 = each.values().sum();
        let Some(before) = self.note_count(left, &each, began, most) else {
            return sum;
        };
        let grown = |tenant: &DiskTenant| {
            let now = each.get(&tenant.id).copied().unwrap_or_default();
            now.saturating_sub(before.get(&tenant.id).copied().unwrap_or_default())
        };
        let greediest = all
            .iter()
            .filter(|tenant| tenant.is_running)
            .max_by_key(|tenant| (grown(tenant), each.get(&tenant.id).copied()));
        if let Some(tenant) = greediest
            && grown(tenant) >= TOO_LITTLE_TO_BLAME
        {
            tracing::warn!(
                sandbox = %tenant.id,
                conversation = %tenant.conversation,
                grown_mb = grown(tenant) >> 20,
                has_mb = each.get(&tenant.id).map(|bytes| bytes >> 20),
                "stopped, because the disk runs out of room"
            );
            // Noted before it is stopped: its turn ends with the sandbox, and asks at once why.
            self.stopped().insert(tenant.conversation.clone());
            tenants.stop(tenant).await;
            let mut counted = self.counted();
            // What all have now counts as nobody's fault, and the next count comes at once: one
            // stop may not have been enough.
            counted.baseline = each;
            counted.rests_until = None;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: u64 = 1 << 20;

    fn guard() -> DiskGuard {
        DiskGuard::new(DiskBounds {
            folder: PathBuf::new(),
            reserve_bytes: MEGABYTE,
            most_bytes: None,
        })
    }

    fn used(megabytes: u64) -> SpaceLeft {
        let total = 1000 * MEGABYTE;
        SpaceLeft {
            total,
            free: total - megabytes * MEGABYTE,
            files: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn where_nothing_grows_it_rests_ten_times_as_long_as_it_counted() {
        let guard = guard();
        assert!(!guard.rests(&used(100)), "nothing was counted yet");
        for (counted, rests) in [(0, 1), (3, 30)] {
            let began = Instant::now();
            tokio::time::advance(Duration::from_secs(counted)).await;
            guard.note_count(&used(100), &HashMap::new(), began, 0);
            let almost = Duration::from_secs(rests) - Duration::from_millis(1);
            tokio::time::advance(almost).await;
            assert!(guard.rests(&used(100)), "after {counted} s of counting");
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(!guard.rests(&used(100)), "after {counted} s of counting");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn growth_ends_the_rest_and_a_stop_does_too() {
        let guard = guard();
        guard.note_count(&used(100), &HashMap::new(), Instant::now(), 0);
        assert!(guard.rests(&used(100)) && guard.rests(&used(50)));
        assert!(!guard.rests(&used(101)), "a megabyte is worth a count");
        guard.counted().rests_until = None;
        assert!(!guard.rests(&used(100)));
    }

    #[test]
    fn who_was_stopped_is_told_what_can_be_done_now() {
        let guard = guard();
        let alice = ConversationKey::new("alice");
        for (low, advice) in [(false, "delete what is not needed"), (true, "/destroy")] {
            guard.is_low.store(low, Ordering::SeqCst);
            assert_eq!(guard.why_stopped(&alice), None);
            guard.stopped().insert(alice.clone());
            let said = guard.why_stopped(&alice).expect("it was stopped");
            assert!(said.contains(advice), "{said}");
            assert_eq!(guard.why_stopped(&alice), None, "told twice");
        }
    }
}
