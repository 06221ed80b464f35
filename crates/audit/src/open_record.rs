//! The file as this process has it open: what is known of its end, and lines added to it.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::line::ChainHead;

/// The length of a file whose end has to be read again.
pub(crate) const UNKNOWN_END: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct OpenRecord {
    pub(crate) file: File,
    /// What is known of the end, to be read again if the file has another length.
    pub(crate) head: ChainHead,
    /// 0 for a file we have not looked at.
    pub(crate) length: u64,
}

/// Why the file could not be locked.
#[derive(Debug)]
pub(crate) enum LockFailure {
    Busy,
    Io(io::Error),
}

impl From<io::Error> for LockFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl OpenRecord {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: open(path)?,
            head: ChainHead::START,
            length: 0,
        })
    }

    /// Whether this very file once held records that are not in it any more.
    pub(crate) fn went_back(&self, head: ChainHead) -> bool {
        let known = self.length > 0;
        known && (head.seq < self.head.seq || head.seq == self.head.seq && head != self.head)
    }

    /// Locks the file that has our name, and tells its length. Where somebody moved it away (to keep it
    /// elsewhere), the chain goes on in a new one.
    pub(crate) fn lock_current(
        &mut self,
        path: &Path,
        patience: Duration,
    ) -> Result<u64, LockFailure> {
        let until = Instant::now() + patience;
        loop {
            match self.file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(TryLockError::WouldBlock) => return Err(LockFailure::Busy),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            // Under the lock: the file could be moved away between the look and the lock, and the
            // line would go where nobody looks.
            match self.current(path) {
                Ok(Some(length)) => return Ok(length),
                Ok(None) => {}
                Err(error) => {
                    // Others would wait for it until we write again.
                    let _ = self.file.unlock();
                    return Err(error.into());
                }
            }
        }
    }

    /// The length of the file that has our name, if it is the one that is open; else that one is opened.
    fn current(&mut self, path: &Path) -> io::Result<Option<u64>> {
        let ours = self.file.metadata()?;
        if is_at(&ours, path)? {
            return Ok(Some(ours.len()));
        }
        // The lock is on the old file and goes with it; the loop takes the one on the new file.
        self.file = open(path)?;
        self.length = 0;
        Ok(None)
    }

    /// Adds bytes at the end. Tells how many of them were written before it failed, if it did.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut written = 0;
        while written < bytes.len() {
            match self.file.write(&bytes[written..]) {
                Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
                Ok(many) => written += many,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        // The kernel puts each write at the end, also where another process has written since we
        // looked.
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

fn is_at(ours: &Metadata, path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
