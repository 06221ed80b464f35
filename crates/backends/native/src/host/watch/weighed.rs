//! What one sandbox is charged with: its disk and its memory, weighed from outside.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hermetic_sandbox::host::held::{self, OnDevice};
use hermetic_sandbox::host::{DiskUsage, UsageBlame, process_tree};

use crate::host::{disk, memory};

/// As fast as memory is ever filled, per second: tells how long a look stays good.
const FILL_RATE: u64 = 4 << 30;
const RAREST: Duration = Duration::from_millis(500);

/// How often a sandbox's files are counted though the file system has not grown: somebody else may
/// free as much as it writes.
const RECOUNT: Duration = Duration::from_secs(5);
/// Of its time, what counting may take for all sandboxes together: one part in so many.
const RECOUNT_COST: u32 = 20;

/// What is known about the disk use of one sandbox.
#[derive(Debug)]
pub(super) struct WatchedDisk {
    pub(super) folders: Vec<PathBuf>,
    pub(super) overlaid: bool,
    pub(super) limit: DiskUsage,
    /// The sandbox's share when it was last counted.
    pub(super) counted: DiskUsage,
    /// The least that was in use on the whole file system since then: what others freed before does
    /// not hide what is written after.
    pub(super) whole: DiskUsage,
    pub(super) blame: UsageBlame,
    pub(super) next_count: Instant,
}

/// What is known about the memory of one sandbox.
#[derive(Debug)]
pub(super) struct WatchedMemory {
    pub(super) limit: u64,
    /// The size of its scratch space, which is memory.
    pub(super) scratch: u64,
    /// The least that was owned by nobody on the host since the watch began.
    pub(super) owned_by_nobody: u64,
    pub(super) next: Instant,
}

impl WatchedDisk {
    pub(super) fn is_over(&mut self, pid: i32, watched: usize) -> bool {
        let Some(folder) = self.folders.first() else {
            return false;
        };
        let Ok(whole) = DiskUsage::of_all(folder) else {
            return false;
        };
        self.whole = self.whole.least(whole);
        let grown = whole.minus(self.whole);
        let room = self.room();
        let has_room = grown.bytes < room.bytes && grown.inodes < room.inodes;
        let now = Instant::now();
        if has_room && now < self.next_count {
            return false;
        }
        match self.count(pid) {
            Ok((counted, doubt)) => self.weigh(counted, whole, doubt),
            // A tree that cannot be counted is taken to be all that has grown: doubt is no excuse.
            Err(_) => self.counted = self.counted.plus(grown),
        }
        self.whole = whole;
        let took = now.elapsed() * RECOUNT_COST * u32::try_from(watched).unwrap_or(u32::MAX);
        self.next_count = now + took.max(RECOUNT);
        let room = self.room();
        room.bytes == 0 || room.inodes == 0
    }

    pub(super) fn weigh(&mut self, counted: DiskUsage, whole: DiskUsage, doubt: bool) {
        self.blame.weigh(counted, whole, doubt);
        self.counted = counted;
    }

    /// What is its own, and whether there may be more.
    pub(super) fn count(&self, pid: i32) -> io::Result<(DiskUsage, bool)> {
        let named = disk::count(&self.folders)?;
        let device = OnDevice {
            number: disk::device(&self.folders[0])?,
            overlaid: self.overlaid,
        };
        let held = held::look(&process_tree(pid), device);
        Ok((named.plus(held.unnamed), held.disk_doubt))
    }

    pub(super) fn room(&self) -> DiskUsage {
        self.limit.minus(self.counted.plus(self.blame.charged()))
    }
}

impl WatchedMemory {
    pub(super) fn is_over(&mut self, pid: i32) -> bool {
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        let room = self.limit.saturating_sub(self.charge(pid));
        let good_for = Duration::from_millis(room.saturating_mul(1000) / FILL_RATE);
        self.next = now + good_for.min(RAREST);
        room == 0
    }

    /// What its processes have, and what has grown since that no process has and this sandbox may.
    pub(super) fn charge(&mut self, pid: i32) -> u64 {
        let family = process_tree(pid);
        let resident = memory::resident(&family, self.limit);
        // A host that cannot be asked this time has not shrunk to nothing.
        let unowned = memory::owned_by_nobody().unwrap_or(self.owned_by_nobody);
        self.owned_by_nobody = self.owned_by_nobody.min(unowned);
        let grown = unowned - self.owned_by_nobody;
        let most = resident.own + grown.max(resident.shared);
        if most < self.limit {
            // The exact look opens every descriptor of every process; it is spared as long as the
            // worst case is within the limit.
            return most;
        }
        // No device to ask about: files on disk are no memory.
        let nowhere = OnDevice {
            number: u64::MAX,
            overlaid: false,
        };
        let held = held::look(&family, nowhere);
        let hidden = if held.memory_doubt {
            grown
        } else {
            let possible = self.scratch + held.in_memory + held.buffers;
            grown.min(possible + resident.shared)
        };
        resident.own + hidden.max(resident.shared)
    }
}
