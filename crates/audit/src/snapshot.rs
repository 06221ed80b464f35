//! The record as it is at one moment, for a copy of it.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::places::AuditPaths;

/// What belongs together: the record up to a length, its key and its note.
#[derive(Debug)]
pub struct RecordSnapshot {
    /// Only its first [`RecordSnapshot::length`] bytes are of this moment. Records are only ever added.
    pub record: File,
    pub length: u64,
    pub key: Option<Vec<u8>>,
    pub head: Option<Vec<u8>>,
}

/// A writer holds the lock for one write. One that holds it longer was stopped or hangs.
const PATIENCE: Duration = Duration::from_secs(5);

impl RecordSnapshot {
    /// `None` where there is no record yet. No writer is between two of its files meanwhile.
    pub fn take(places: &AuditPaths) -> io::Result<Option<Self>> {
        let record = match File::open(places.record()) {
            Ok(record) => record,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // Shared: writers wait, other readers do not. The three files are of one moment only under
        // it.
        lock(&record)?;
        let taken = Self::locked(record, places);
        // Dropped with the file in any case; a copy may take long, and writers need not wait for it.
        if let Ok(taken) = &taken {
            taken.record.unlock()?;
        }
        taken.map(Some)
    }

    fn locked(record: File, places: &AuditPaths) -> io::Result<Self> {
        Ok(Self {
            length: record.metadata()?.len(),
            key: read(places.key())?,
            head: read(places.head())?,
            record,
        })
    }
}

fn lock(record: &File) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match record.try_lock_shared() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another process holds the record"));
            }
        }
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
