//! What sandboxes use, looked at every two seconds while somebody looks at a page that shows it.
//!
//! A page that shows the use of sandboxes says that it is wanted; for a while after that, samples are taken
//! and browsers are told, which makes them ask for the page again. Where nobody looks nothing is asked of any
//! backend. A few minutes are remembered, of a bounded number of sandboxes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_sandbox::LiveUse;
use hermetic_store::{LedgerEntry, LedgerState, RowOwner};
use hermetic_types::{BackendKind, SandboxId, Timestamp};
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::live::LiveTopic;
use crate::state::SharedState;

/// Samples of the last minutes.
#[derive(Debug, Default)]
pub(crate) struct UseSampler {
    histories: Mutex<HashMap<SandboxId, UseHistory>>,
    /// Until when somebody looks.
    wanted_until: Mutex<Option<Instant>>,
    wanted: WantedSignals,
    /// How often disks were counted; counting them may take a walk over all files.
    disk_counts: watch::Sender<u64>,
    /// Held by whoever takes a sample: of many who come at once one does.
    sampling: tokio::sync::Mutex<Option<Instant>>,
}

/// Wakes what measures. Each has its own: one may still be at work when the other has to begin again.
#[derive(Debug, Default)]
struct WantedSignals {
    samples: Notify,
    disks: Notify,
}

/// What is remembered of one sandbox.
#[derive(Clone, Debug, Default)]
struct UseHistory {
    points: VecDeque<UsePoint>,
    /// The last processor time, and when it was read.
    cpu_time: Option<(Instant, Duration)>,
    disk_bytes: Option<u64>,
}

/// What a sandbox used at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct UsePoint {
    pub(crate) at: Timestamp,
    /// Thousandths of a processor since the point before; absent for the first.
    pub(crate) cpu_millis: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) pids: Option<u64>,
}

/// What is known of one sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SandboxFigures {
    /// The latest, where that is no older than a moment.
    pub(crate) now: Option<UsePoint>,
    pub(crate) disk_bytes: Option<u64>,
    /// The last minutes, the latest last.
    pub(crate) points: Vec<UsePoint>,
}

const INTERVAL: Duration = Duration::from_secs(2);

/// How long samples go on after a page was asked for. Longer than a program waits between two questions.
const WANTED_FOR: Duration = Duration::from_secs(30);

/// What is remembered.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(240);
const MOST_POINTS: usize = 120;

/// Sandboxes that are looked at, those first that were used last. A point is about fifty bytes.
const MOST_SANDBOXES: usize = 256;

/// A backend that does not answer in this time is not waited for.
const USE_TIMEOUT: Duration = Duration::from_secs(2);

/// What is older is not shown as what is used now.
const FRESH_FOR: Duration = Duration::from_secs(10);

/// How often disks are counted.
const DISK_INTERVAL: Duration = Duration::from_secs(30);

impl UseSampler {
    /// Somebody looks: there are samples from now on, and a first one when this returns, unless a backend
    /// lets one wait.
    pub(crate) async fn want(&self, state: &SharedState) {
        *lock(&self.wanted_until) = Some(Instant::now() + WANTED_FOR);
        // After the time was set: who is woken looks at that first.
        self.wanted.samples.notify_one();
        self.wanted.disks.notify_one();
        self.sample(state).await;
        let mut counts = self.disk_counts.subscribe();
        // The first count only: later ones come while the page is there.
        let _ = timeout(USE_TIMEOUT, counts.wait_for(|counts| *counts > 0)).await;
    }

    pub(crate) fn of(&self, id: &SandboxId, now: Timestamp) -> SandboxFigures {
        let histories = self.histories();
        let Some(history) = histories.get(id) else {
            return SandboxFigures::default();
        };
        let last = history.points.back().copied();
        SandboxFigures {
            now: last.filter(|point| now.distance(point.at) < FRESH_FOR),
            disk_bytes: history.disk_bytes,
            points: history.points.iter().copied().collect(),
        }
    }

    /// Takes samples while somebody looks, and tells browsers. Never ends by itself.
    pub(crate) async fn run(&self, state: &SharedState) {
        tokio::join!(self.take_samples(state), self.count_disks(state));
    }

    async fn take_samples(&self, state: &SharedState) {
        loop {
            self.wanted.samples.notified().await;
            while self.is_wanted() {
                self.sample(state).await;
                if state.live.listeners() > 0 {
                    state.live.publish(LiveTopic::Use);
                }
                sleep(INTERVAL).await;
            }
        }
    }

    /// Apart from the samples and waited for to its end: a count that takes long must not be begun again
    /// beside itself.
    async fn count_disks(&self, state: &SharedState) {
        loop {
            self.wanted.disks.notified().await;
            while self.is_wanted() {
                if let Ok(entries) = running(state).await {
                    let counted = state.gateway.sandbox_use(asked(&entries)).await;
                    let mut histories = self.histories();
                    for entry in &entries {
                        let uses = counted.get(&entry.id).copied().unwrap_or_default();
                        let history = histories.entry(entry.id.clone()).or_default();
                        history.disk_bytes = uses.disk_bytes;
                    }
                }
                self.disk_counts.send_modify(|counts| *counts += 1);
                sleep(DISK_INTERVAL).await;
            }
        }
    }

    /// Takes a sample, unless there was one a moment ago.
    async fn sample(&self, state: &SharedState) {
        let mut sampled_at = self.sampling.lock().await;
        if sampled_at.is_some_and(|at| at.elapsed() < INTERVAL / 2) {
            return;
        }
        let Ok(entries) = running(state).await else {
            return;
        };
        let looked = timeout(USE_TIMEOUT, state.gateway.live_use(asked(&entries))).await;
        let (now, at) = (Instant::now(), state.now());
        // Also where no backend answered: each of those who wait for this lock would ask anew, one
        // after the other.
        *sampled_at = Some(now);
        let mut histories = self.histories();
        let there: HashSet<&SandboxId> = entries.iter().map(|entry| &entry.id).collect();
        histories.retain(|id, _| there.contains(id));
        for (id, used) in looked.unwrap_or_default() {
            if there.contains(&id) {
                histories.entry(id).or_default().add(used, now, at);
            }
        }
        for history in histories.values_mut() {
            history.forget(at);
        }
    }

    fn is_wanted(&self) -> bool {
        lock(&self.wanted_until).is_some_and(|until| Instant::now() < until)
    }

    fn histories(&self) -> MutexGuard<'_, HashMap<SandboxId, UseHistory>> {
        lock(&self.histories)
    }
}

impl UseHistory {
    fn add(&mut self, used: LiveUse, now: Instant, at: Timestamp) {
        let before = std::mem::replace(&mut self.cpu_time, used.cpu_time.map(|time| (now, time)));
        let cpu_millis = before
            .zip(used.cpu_time)
            .and_then(|((then, before), time)| {
                // Less than before: the sandbox was started again.
                let used = time.checked_sub(before)?.as_micros();
                let passed = now.saturating_duration_since(then).as_micros();
                u64::try_from((used * 1000).checked_div(passed)?).ok()
            });
        if self.points.len() >= MOST_POINTS {
            self.points.pop_front();
        }
        self.points.push_back(UsePoint {
            at,
            cpu_millis,
            memory_bytes: used.memory_bytes,
            pids: used.pids,
        });
    }

    fn forget(&mut self, now: Timestamp) {
        while self
            .points
            .front()
            .is_some_and(|point| now.distance(point.at) > REMEMBERED)
        {
            self.points.pop_front();
        }
    }
}

/// The sandboxes in which something may run.
async fn running(state: &SharedState) -> Result<Vec<LedgerEntry>, hermetic_store::StoreError> {
    let mut entries = state.ledger.entries(RowOwner::AnyGateway).await?;
    entries.retain(|entry| entry.state != LedgerState::Creating);
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.touched_at));
    entries.truncate(MOST_SANDBOXES);
    Ok(entries)
}

fn asked(entries: &[LedgerEntry]) -> Vec<(BackendKind, SandboxId)> {
    let asked = entries
        .iter()
        .map(|entry| (entry.backend, entry.id.clone()));
    asked.collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(cpu: u64, memory: u64) -> LiveUse {
        LiveUse {
            cpu_time: Some(Duration::from_millis(cpu)),
            memory_bytes: Some(memory),
            pids: Some(2),
        }
    }

    #[test]
    fn two_looks_tell_how_busy_it_is_and_a_new_start_is_no_use() {
        let (mut history, begun) = (UseHistory::default(), Instant::now());
        let looks = [(0, 5000), (2, 6000), (4, 10_000), (6, 300), (8, 1300)];
        for (seconds, cpu) in looks {
            let at = Timestamp::from_seconds(100 + seconds);
            let now = begun + Duration::from_secs(seconds.unsigned_abs());
            history.add(used(cpu, 1), now, at);
        }
        let rates: Vec<_> = history
            .points
            .iter()
            .map(|point| point.cpu_millis)
            .collect();
        assert_eq!(rates, [None, Some(500), Some(2000), None, Some(500)]);
        // Twice in the same moment: nothing to divide by.
        history.add(
            used(1400, 1),
            begun + Duration::from_secs(8),
            Timestamp::from_seconds(108),
        );
        assert_eq!(history.points.back().unwrap().cpu_millis, None);
        history.add(
            LiveUse::default(),
            begun + Duration::from_secs(9),
            Timestamp::from_seconds(109),
        );
        assert_eq!(history.points.back().unwrap().memory_bytes, None);
    }

    #[test]
    fn what_is_remembered_is_bounded_in_number_and_in_time() {
        let (mut history, begun) = (UseHistory::default(), Instant::now());
        for second in 0..1000 {
            history.add(used(0, 7), begun, Timestamp::from_seconds(second));
        }
        assert_eq!(history.points.len(), MOST_POINTS);
        history.forget(Timestamp::from_seconds(1100));
        let oldest = history.points.front().unwrap().at;
        assert!(Timestamp::from_seconds(1100).distance(oldest) <= REMEMBERED);
        history.forget(Timestamp::from_seconds(9000));
        assert!(history.points.is_empty());
    }
}
