//! The limits that no kernel mechanism keeps here, kept by looking.
//!
//! One task looks after all sandboxes of this process. Most looks cost next to nothing: the file
//! system as a whole is asked how full it is, and a sandbox's tree is counted only when it *could*
//! have passed its limit since the last count, and now and then.
//!
//! What cannot be weighed from outside (see `weighed.rs`) is charged by what has grown on the whole file
//! system, or in the whole memory, and belongs to nobody we know.

mod weighed;

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use hermetic_types::SandboxId;
use serde::{Deserialize, Serialize};

use self::weighed::{WatchedDisk, WatchedMemory};
use super::folder::SandboxFolder;
use super::memory;
use super::native::NativeHost;
use super::planning;
use super::record::SandboxRecord;
use super::stall::MemoryStall;
use super::tables::KernelTable;
use hermetic_sandbox::host::{self as process, DiskUsage, ProcessHandle, UsageBlame};

/// The reason why a sandbox was ended by its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    DiskLimit,
    MemoryLimit,
    /// It had more than its share of a table of the whole host that was running full.
    OpenFiles,
    TcpBuffers,
}

/// How often the disk is looked at. A disk writes some hundred megabytes in this time.
const DISK_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Watches the disk and memory of sandboxes that the kernel does not bound. Clones share everything.
#[derive(Clone, Debug, Default)]
pub(super) struct ResourceWatch(Arc<Mutex<WatchRound>>);

/// The sandboxes that are watched, and whether the task that walks over them runs.
#[derive(Debug, Default)]
struct WatchRound {
    watched: HashMap<SandboxId, WatchEntry>,
    walking: bool,
}

/// The watch over one life of a sandbox.
#[derive(Clone, Debug)]
struct WatchEntry {
    process: ProcessHandle,
    sandbox: Arc<Mutex<WatchedSandbox>>,
}

impl WatchRound {
    /// This entry and no other: the sandbox may have come back while its earlier life was looked at.
    fn remove(&mut self, id: &SandboxId, entry: &WatchEntry) {
        let known = self.watched.get(id);
        if known.is_some_and(|known| Arc::ptr_eq(&known.sandbox, &entry.sandbox)) {
            self.watched.remove(id);
        }
    }
}

/// One sandbox that is watched.
#[derive(Debug)]
struct WatchedSandbox {
    folder: SandboxFolder,
    pid: i32,
    pidfd: OwnedFd,
    disk: Option<WatchedDisk>,
    memory: Option<WatchedMemory>,
    /// Where a group bounds its memory.
    stall: Option<MemoryStall>,
}

impl ResourceWatch {
    pub(super) fn forget(&self, id: &SandboxId) {
        let watched = self.round().watched.remove(id);
        // Taken out under the lock and dropped after it: the entry may be the last owner, and is
        // under a look otherwise.
        drop(watched);
    }

    /// Whether it watches this life of it, which an earlier one is not.
    fn knows(&self, id: &SandboxId, process: &ProcessHandle) -> bool {
        let round = self.round();
        let known = round.watched.get(id);
        known.is_some_and(|known| known.process == *process)
    }

    /// Must be called within a runtime.
    fn add(&self, process: ProcessHandle, watched: WatchedSandbox) {
        let id = watched.folder.id.clone();
        let entry = WatchEntry {
            process,
            sandbox: Arc::new(Mutex::new(watched)),
        };
        let mut round = self.round();
        let earlier = round.watched.insert(id, entry);
        if !round.walking {
            round.walking = true;
            // Weak, so that the task ends with the backend and does not keep it.
            tokio::spawn(walk(Arc::downgrade(&self.0)));
        }
        drop(round);
        // After the lock, like in `forget`.
        drop(earlier);
    }

    fn round(&self) -> MutexGuard<'_, WatchRound> {
        lock(&self.0)
    }
}

impl NativeHost {
    /// Where the kernel keeps all limits of a sandbox, its share of the host's tables is left, and whether it
    /// gets on at the limit of its memory.
    pub(super) fn watch_over(
        &self,
        folder: &SandboxFolder,
        record: &SandboxRecord,
        (process, pidfd): (ProcessHandle, OwnedFd),
    ) {
        let (spec, made) = (&record.spec, &record.made);
        if self.watch.knows(&folder.id, &process) {
            return;
        }
        let memory = (!self.bounds_memory()).then(|| WatchedMemory {
            limit: spec.limits.memory_bytes,
            scratch: planning::scratch_bytes(&spec.limits, made.on_disk),
            owned_by_nobody: memory::owned_by_nobody().unwrap_or(u64::MAX),
            next: Instant::now(),
        });
        // One whose quotas were switched off since is counted like any other.
        let is_kept = made.project.is_some() && self.project_quotas().is_ok();
        let disk = (made.on_disk && !is_kept).then(|| WatchedDisk {
            folders: folder.trees(),
            overlaid: self.outer_container.is_some(),
            limit: DiskUsage {
                bytes: spec.limits.disk_bytes,
                inodes: spec.limits.inodes,
            },
            counted: DiskUsage::default(),
            whole: DiskUsage::of_all(&folder.workspace()).unwrap_or_default(),
            blame: UsageBlame::default(),
            // At once: it may have come back with files.
            next_count: Instant::now(),
        });
        let stall = match memory {
            None => MemoryStall::of(&made.groups),
            Some(_) => None,
        };
        let watched = WatchedSandbox {
            folder: folder.clone(),
            pid: process.pid,
            pidfd,
            disk,
            memory,
            stall,
        };
        self.watch.add(process, watched);
    }
}

/// Ends when there is nobody left to watch, or nobody left who wants it.
async fn walk(round: Weak<Mutex<WatchRound>>) {
    loop {
        tokio::time::sleep(DISK_CHECK_INTERVAL).await;
        let Some(round) = round.upgrade() else {
            return;
        };
        let watched: Vec<_> = {
            let mut round = lock(&round);
            // Said under the same lock under which the next one is added, so that either we see it
            // or it starts a walk anew.
            round.walking = !round.watched.is_empty();
            if !round.walking {
                return;
            }
            round
                .watched
                .iter()
                .map(|(id, entry)| (id.clone(), entry.clone()))
                .collect()
        };
        // Counting a tree reads a disk for seconds at times; no thread of the runtime waits for
        // that.
        let looked = tokio::task::spawn_blocking(move || look_at_all(watched)).await;
        for (id, entry) in looked.unwrap_or_default() {
            lock(&round).remove(&id, &entry);
        }
    }
}

/// Those that are gone, by themselves or by us.
fn look_at_all(watched: Vec<(SandboxId, WatchEntry)>) -> Vec<(SandboxId, WatchEntry)> {
    let shares: Vec<_> = KernelTable::ALL
        .into_iter()
        .filter_map(|table| Some((table, table.share_now()?)))
        .collect();
    let count = watched.len();
    watched
        .into_iter()
        .filter(|(_, entry)| !lock(&entry.sandbox).look(count, &shares))
        .collect()
}

impl WatchedSandbox {
    /// Whether it is still there afterwards.
    fn look(&mut self, watched: usize, shares: &[(KernelTable, u64)]) -> bool {
        if process::has_ended(self.pidfd.as_fd()) {
            return false;
        }
        match self.verdict(watched, shares) {
            Some(ended) => {
                self.end(ended);
                false
            }
            None => true,
        }
    }

    fn verdict(&mut self, watched: usize, shares: &[(KernelTable, u64)]) -> Option<EndReason> {
        let pid = self.pid;
        let disk = self.disk.as_mut();
        if disk.is_some_and(|disk| disk.is_over(pid, watched)) {
            return Some(EndReason::DiskLimit);
        }
        if self.memory.as_mut().is_some_and(|held| held.is_over(pid)) {
            return Some(EndReason::MemoryLimit);
        }
        let stall = self.stall.as_mut();
        if stall.is_some_and(|stall| stall.is_stuck(Instant::now())) {
            return Some(EndReason::MemoryLimit);
        }
        let over = shares
            .iter()
            .find(|(table, share)| table.part_of(pid) > *share);
        over.map(|(table, _)| match table {
            KernelTable::OpenFiles => EndReason::OpenFiles,
            KernelTable::TcpBuffers => EndReason::TcpBuffers,
        })
    }

    fn end(&self, ended: EndReason) {
        let limit = match ended {
            EndReason::DiskLimit => "disk",
            EndReason::MemoryLimit => "memory",
            EndReason::OpenFiles => "open files",
            EndReason::TcpBuffers => "TCP buffers",
        };
        tracing::warn!(sandbox = %self.folder.id, limit, "stopped at its limit");
        // Before the kill: whoever sees it end asks why at once.
        if let Err(error) = self.folder.note_ended(ended) {
            tracing::warn!(sandbox = %self.folder.id, %error, "the reason could not be kept");
        }
        process::kill(self.pidfd.as_fd(), Duration::from_secs(5));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::folder::FilesLayout;
    use super::*;

    fn bytes(bytes: u64) -> DiskUsage {
        DiskUsage { bytes, inodes: 0 }
    }

    fn disk() -> WatchedDisk {
        WatchedDisk {
            folders: Vec::new(),
            overlaid: false,
            limit: bytes(100),
            counted: DiskUsage::default(),
            whole: bytes(1000),
            blame: UsageBlame::default(),
            next_count: Instant::now(),
        }
    }

    #[tokio::test]
    async fn an_earlier_life_is_not_taken_for_the_next_one() {
        let (ours, other) = (std::process::id().cast_signed(), 1);
        let folder = tempfile::tempdir().unwrap();
        let id = SandboxId::random();
        let process = |pid| ProcessHandle::observe(pid).unwrap();
        let life = || WatchedSandbox {
            folder: SandboxFolder::new(folder.path(), &id, FilesLayout::Beside),
            pid: ours,
            pidfd: process(ours).open().unwrap(),
            disk: None,
            memory: None,
            stall: None,
        };
        let watch = ResourceWatch::default();
        watch.add(process(other), life());
        let earlier = watch.round().watched[&id].clone();
        assert!(watch.knows(&id, &process(other)));
        // It ended by itself and came back before anybody looked.
        assert!(!watch.knows(&id, &process(ours)));
        watch.add(process(ours), life());
        watch.round().remove(&id, &earlier);
        assert!(watch.knows(&id, &process(ours)));
    }

    #[test]
    fn who_hides_is_blamed_for_growth_that_nobody_explains() {
        let mut disk = disk();
        disk.weigh(bytes(20), bytes(1020), false);
        assert_eq!(disk.room().bytes, 80);
        // Something of its own lost its name, and nothing was freed.
        disk.weigh(bytes(10), bytes(1020), true);
        assert_eq!((disk.blame.charged().bytes, disk.room().bytes), (10, 80));
        // Others freed 500, and what is hidden is hidden still.
        disk.weigh(bytes(10), bytes(520), true);
        assert_eq!(disk.blame.charged().bytes, 10);
        // It hides more, behind what they freed.
        disk.weigh(bytes(10), bytes(610), true);
        assert_eq!((disk.blame.charged().bytes, disk.room().bytes), (90, 0));
        disk.weigh(bytes(10), bytes(610), false);
        assert_eq!(disk.room().bytes, 90);
    }

    #[test]
    fn others_that_write_and_free_in_turn_are_charged_once() {
        let mut disk = disk();
        disk.weigh(bytes(10), bytes(1000), true);
        for _ in 0..20 {
            disk.weigh(bytes(10), bytes(1040), true);
            disk.weigh(bytes(10), bytes(1000), true);
        }
        assert_eq!(disk.room().bytes, 50);
    }

    #[test]
    fn who_hides_nothing_is_not_blamed() {
        let mut disk = disk();
        disk.weigh(bytes(10), bytes(1000), false);
        disk.weigh(bytes(10), bytes(90_000), false);
        assert_eq!(disk.room().bytes, 90);
    }
}
