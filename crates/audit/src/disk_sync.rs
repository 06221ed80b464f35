//! Brings records to the disk a moment after they were written.
//!
//! Whoever decides something does not wait for the disk: a record survives the death of its process
//! anyway. A thread of the record's own syncs what was written, once for many records, so that a power
//! cut costs half a second of them and not half a minute, and never the whole file.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Records that come within this time are synced together.
const GATHERED_FOR: Duration = Duration::from_millis(500);

/// Ends, with a last sync, when it is dropped.
#[derive(Debug)]
pub(crate) struct DiskSync {
    state: Arc<SyncState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct SyncState {
    work: Mutex<SyncWork>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SyncWork {
    unsynced: bool,
    ends: bool,
    /// Why what was written may not be on the disk.
    trouble: Option<String>,
}

impl DiskSync {
    /// `files` hands out what is to be synced, in this order.
    pub(crate) fn start(
        files: impl Fn() -> io::Result<Vec<File>> + Send + 'static,
    ) -> io::Result<Self> {
        let sync = move || files()?.iter().try_for_each(File::sync_data);
        Self::start_with(sync, GATHERED_FOR)
    }

    fn start_with(
        sync: impl Fn() -> io::Result<()> + Send + 'static,
        gathered_for: Duration,
    ) -> io::Result<Self> {
        let state = Arc::new(SyncState::default());
        let thread = thread::Builder::new().name("audit-sync".to_owned());
        let thread = thread.spawn({
            let state = Arc::clone(&state);
            move || state.run(&sync, gathered_for)
        })?;
        Ok(Self {
            state,
            thread: Some(thread),
        })
    }

    pub(crate) fn note_written(&self) {
        let mut work = self.state.lock();
        // Woken for the first only: those that come within the half second are synced with it, and
        // need no call of the kernel's.
        if !work.unsynced {
            work.unsynced = true;
            self.state.changed.notify_all();
        }
    }

    /// Why what was written may not be on the disk, once the disk has failed. It stays: a kernel tells of lost
    /// pages once, so that a later sync which succeeds says nothing about those before it.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state.lock().trouble.clone()
    }
}

impl SyncState {
    fn run(&self, sync: &dyn Fn() -> io::Result<()>, gathered_for: Duration) {
        loop {
            let work = self.lock();
            let idle = |work: &mut SyncWork| !work.unsynced && !work.ends;
            let work = self.changed.wait_while(work, idle);
            let work = work.unwrap_or_else(PoisonError::into_inner);
            let goes_on = |work: &mut SyncWork| !work.ends;
            let waited = self.changed.wait_timeout_while(work, gathered_for, goes_on);
            let (mut work, _) = waited.unwrap_or_else(PoisonError::into_inner);
            // Taken before the sync, not after: what is written while the disk is busy marks it
            // again.
            let (unsynced, ends) = (std::mem::take(&mut work.unsynced), work.ends);
            // The lock is let go over the sync: a writer only marks, and must not wait for the disk
            // to do so.
            drop(work);
            // A disk that fails is tried again: what is written after it is synced all the same.
            if unsynced && let Err(error) = sync() {
                let mut work = self.lock();
                work.unsynced = !ends;
                work.trouble.get_or_insert_with(|| error.to_string());
            }
            if ends {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, SyncWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DiskSync {
    fn drop(&mut self) {
        self.state.lock().ends = true;
        self.state.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked: it only waits and syncs.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    const LONG: Duration = Duration::from_secs(3600);

    fn counted(gathered_for: Duration) -> (DiskSync, mpsc::Receiver<()>) {
        let (synced, syncs) = mpsc::channel();
        let sync = move || synced.send(()).map_err(io::Error::other);
        (DiskSync::start_with(sync, gathered_for).unwrap(), syncs)
    }

    #[test]
    fn what_was_written_is_synced_without_being_asked_for() {
        let (sync, syncs) = counted(Duration::from_millis(1));
        for _ in 0..3 {
            sync.note_written();
            syncs.recv().unwrap();
        }
    }

    #[test]
    fn many_records_are_one_sync_and_the_last_come_with_the_end() {
        let (sync, syncs) = counted(LONG);
        for _ in 0..100 {
            sync.note_written();
        }
        drop(sync);
        assert_eq!(syncs.iter().count(), 1);
    }

    #[test]
    fn where_nothing_was_written_nothing_is_synced() {
        let (sync, syncs) = counted(LONG);
        drop(sync);
        assert_eq!(syncs.iter().count(), 0);
    }

    #[test]
    fn a_disk_that_fails_is_tried_again() {
        let (tried, tries) = mpsc::channel();
        let sync = move || {
            let _ = tried.send(());
            Err(io::Error::other("no disk"))
        };
        let sync = DiskSync::start_with(sync, Duration::from_millis(1)).unwrap();
        sync.note_written();
        tries.recv().unwrap();
        tries.recv().unwrap();
        drop(sync);
    }

    #[test]
    fn a_disk_that_failed_once_stays_in_doubt() {
        let (synced, syncs) = mpsc::channel();
        let failed = AtomicBool::new(false);
        let sync = move || {
            let _ = synced.send(());
            match failed.swap(true, Ordering::Relaxed) {
                true => Ok(()),
                false => Err(io::Error::other("no disk")),
            }
        };
        let sync = DiskSync::start_with(sync, Duration::from_millis(1)).unwrap();
        assert_eq!(sync.trouble(), None);
        sync.note_written();
        syncs.recv().unwrap();
        syncs.recv().unwrap();
        assert_eq!(sync.trouble().as_deref(), Some("no disk"));
    }
}
