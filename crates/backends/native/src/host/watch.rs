//! The limits that no kernel mechanism keeps here, kept by looking.
//!
//! One task looks after all sandboxes of this process. Most looks cost next to nothing: the file
//! system as a whole is asked how full it is, and a sandbox's tree is counted only when it *could*
//! have passed its limit since the last count.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use hermetic_types::SandboxId;
use serde::{Deserialize, Serialize};

use super::disk::{self, Usage};
use super::folder::Folder;
use super::memory;
use super::native::Host;
use super::record::Record;
use hermetic_sandbox::host::{self as process, Process};

/// Why a sandbox was ended by its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    DiskLimit,
    MemoryLimit,
}

/// How often the disk is looked at. A disk writes some hundred megabytes in this time.
const BEAT: Duration = Duration::from_millis(50);

/// As fast as memory is ever filled, per second: tells how long a look stays good.
const FILL_RATE: u64 = 4 << 30;
const RAREST: Duration = Duration::from_millis(500);

#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<Round>>);

#[derive(Debug, Default)]
struct Round {
    watched: HashMap<SandboxId, Arc<Mutex<Watched>>>,
    walking: bool,
}

#[derive(Debug)]
struct Watched {
    folder: Folder,
    pid: i32,
    pidfd: OwnedFd,
    disk: Option<Disk>,
    memory: Option<Memory>,
}

#[derive(Debug)]
struct Disk {
    folders: Vec<PathBuf>,
    limit: Usage,
    /// The sandbox's share when it was last counted, and the whole file system's then.
    counted: Usage,
    whole: Usage,
    /// Until then its share is not known: it may have come back with files.
    was_counted: bool,
}

#[derive(Debug)]
struct Memory {
    limit: u64,
    next: Instant,
}

impl Watch {
    pub(super) fn forget(&self, id: &SandboxId) {
        let watched = self.round().watched.remove(id);
        drop(watched);
    }

    fn knows(&self, id: &SandboxId) -> bool {
        self.round().watched.contains_key(id)
    }

    /// Must be called within a runtime.
    fn add(&self, watched: Watched) {
        let id = watched.folder.id.clone();
        let mut round = self.round();
        round.watched.insert(id, Arc::new(Mutex::new(watched)));
        if !round.walking {
            round.walking = true;
            tokio::spawn(walk(Arc::downgrade(&self.0)));
        }
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        lock(&self.0)
    }
}

impl Host {
    /// Where a limit is kept by the kernel there is nothing to watch.
    pub(super) fn watch_over(
        &self,
        folder: &Folder,
        record: &Record,
        (process, pidfd): (Process, OwnedFd),
    ) {
        let (spec, made) = (&record.spec, &record.made);
        if self.watch.knows(&folder.id) {
            return;
        }
        let memory = (!self.bounds_memory()).then(|| Memory {
            limit: spec.limits.memory_bytes,
            next: Instant::now(),
        });
        let disk = made.on_disk.then(|| Disk {
            folders: vec![folder.workspace(), folder.home()],
            limit: Usage {
                bytes: spec.limits.disk_bytes,
                inodes: spec.limits.inodes,
            },
            counted: Usage::default(),
            whole: disk::in_use(&folder.workspace()).unwrap_or_default(),
            was_counted: false,
        });
        if memory.is_some() || disk.is_some() {
            self.watch.add(Watched {
                folder: folder.clone(),
                pid: process.pid,
                pidfd,
                disk,
                memory,
            });
        }
    }
}

/// Ends when there is nobody left to watch, or nobody left who wants it.
async fn walk(round: Weak<Mutex<Round>>) {
    loop {
        tokio::time::sleep(BEAT).await;
        let Some(round) = round.upgrade() else {
            return;
        };
        let watched: Vec<_> = {
            let mut round = lock(&round);
            round.walking = !round.watched.is_empty();
            if !round.walking {
                return;
            }
            round
                .watched
                .iter()
                .map(|(id, watched)| (id.clone(), Arc::clone(watched)))
                .collect()
        };
        let looked = tokio::task::spawn_blocking(move || look_at_all(watched)).await;
        for id in looked.unwrap_or_default() {
            lock(&round).watched.remove(&id);
        }
    }
}

/// Those that are gone, by themselves or by us.
fn look_at_all(watched: Vec<(SandboxId, Arc<Mutex<Watched>>)>) -> Vec<SandboxId> {
    watched
        .into_iter()
        .filter(|(_, watched)| !lock(watched).look())
        .map(|(id, _)| id)
        .collect()
}

impl Watched {
    /// Whether it is still there afterwards.
    fn look(&mut self) -> bool {
        if process::has_ended(self.pidfd.as_fd()) {
            return false;
        }
        match self.verdict() {
            Some(ended) => {
                self.end(ended);
                false
            }
            None => true,
        }
    }

    fn verdict(&mut self) -> Option<Ended> {
        let pid = self.pid;
        if self.disk.as_mut().is_some_and(|disk| disk.is_over(pid)) {
            return Some(Ended::DiskLimit);
        }
        if self.memory.as_mut().is_some_and(|held| held.is_over(pid)) {
            return Some(Ended::MemoryLimit);
        }
        None
    }

    fn end(&self, ended: Ended) {
        let limit = match ended {
            Ended::DiskLimit => "disk",
            Ended::MemoryLimit => "memory",
        };
        tracing::warn!(sandbox = %self.folder.id, limit, "stopped at its limit");
        if let Err(error) = self.folder.note_ended(ended) {
            tracing::warn!(sandbox = %self.folder.id, %error, "the reason could not be kept");
        }
        process::kill(self.pidfd.as_fd(), Duration::from_secs(5));
    }
}

impl Disk {
    fn is_over(&mut self, pid: i32) -> bool {
        let Some(folder) = self.folders.first() else {
            return false;
        };
        let Ok(whole) = disk::in_use(folder) else {
            return false;
        };
        let grown = Usage {
            bytes: whole.bytes.saturating_sub(self.whole.bytes),
            inodes: whole.inodes.saturating_sub(self.whole.inodes),
        };
        let room = self.room();
        let has_room = grown.bytes < room.bytes && grown.inodes < room.inodes;
        if has_room && std::mem::replace(&mut self.was_counted, true) {
            return false;
        }
        // A tree that cannot be counted is taken to be all that has grown: doubt is no excuse.
        self.counted = self.count(pid).unwrap_or(Usage {
            bytes: self.counted.bytes + grown.bytes,
            inodes: self.counted.inodes + grown.inodes,
        });
        self.whole = whole;
        let room = self.room();
        room.bytes == 0 || room.inodes == 0
    }

    fn count(&self, pid: i32) -> io::Result<Usage> {
        let named = disk::count(&self.folders)?;
        let device = disk::device(&self.folders[0])?;
        let unnamed = disk::count_unnamed(&memory::family(pid), device);
        Ok(Usage {
            bytes: named.bytes + unnamed.bytes,
            inodes: named.inodes + unnamed.inodes,
        })
    }

    fn room(&self) -> Usage {
        Usage {
            bytes: self.limit.bytes.saturating_sub(self.counted.bytes),
            inodes: self.limit.inodes.saturating_sub(self.counted.inodes),
        }
    }
}

impl Memory {
    fn is_over(&mut self, pid: i32) -> bool {
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        let held = memory::resident(&memory::family(pid), self.limit);
        let room = self.limit.saturating_sub(held);
        let good_for = Duration::from_millis(room.saturating_mul(1000) / FILL_RATE);
        self.next = now + good_for.min(RAREST);
        room == 0
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
