//! Adding to the record.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hermetic_types::Timestamp;
use thiserror::Error;

use crate::line::Head;
use crate::tail::{Scrap, Tail};
use crate::{Event, LONGEST_LINE};

/// The open record. One in each process; several processes share the file.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug, Error)]
pub enum AppendError {
    #[error("cannot write to {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("another process has held {} for {} seconds", path.display(), PATIENCE.as_secs())]
    Busy { path: PathBuf },
    /// Going on would bury the place where it was changed.
    #[error("{} does not end as we left it: it was changed, or the disk failed", path.display())]
    Broken { path: PathBuf },
    #[error("a record of {bytes} bytes is too long")]
    TooLong { bytes: usize },
}

#[derive(Debug)]
struct Open {
    file: File,
    /// What is known of the end, to be read again if the file has another length.
    head: Head,
    /// 0 for a file we have not looked at.
    length: u64,
}

/// A writer holds the lock for one write. One that holds it longer was stopped or hangs.
const PATIENCE: Duration = Duration::from_secs(5);

impl Audit {
    /// Opens the file, or begins it. Its folder is there already.
    pub fn open(path: &Path) -> Result<Self, AppendError> {
        let file = open(path).map_err(|source| AppendError::Io {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            open: Mutex::new(Open {
                file,
                head: Head::START,
                length: 0,
            }),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds one record. Blocks for the length of a small write, longer only while another process
    /// writes.
    pub fn append(&self, event: &Event, at: Timestamp) -> Result<Head, AppendError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock_current(&mut open)?;
        let written = self.append_locked(&mut open, event, at);
        // Closing would let go of it as well; nothing can be done about a lock that does not open.
        let _ = open.file.unlock();
        written
    }

    fn append_locked(
        &self,
        open: &mut Open,
        event: &Event,
        at: Timestamp,
    ) -> Result<Head, AppendError> {
        let length = open.file.metadata().map_err(|error| self.io(error))?.len();
        if length == open.length {
            return self.write(open, b"", event, at);
        }
        let tail = Tail::read(&open.file, length, open.head);
        match tail.map_err(|error| self.io(error))? {
            Tail::Whole {
                head,
                scrap,
                open: unended,
            } if !open.went_back(head) => {
                (open.head, open.length) = (head, length);
                let mut end: &[u8] = if unended { b"\n" } else { b"" };
                if let Some(scrap) = scrap {
                    self.write(open, end, &vouch_for(&scrap), at)?;
                    end = b"";
                }
                self.write(open, end, event, at)
            }
            _ => Err(AppendError::Broken {
                path: self.path.clone(),
            }),
        }
    }

    fn write(
        &self,
        open: &mut Open,
        before: &[u8],
        event: &Event,
        at: Timestamp,
    ) -> Result<Head, AppendError> {
        let (line, head) = open.head.next(at, event);
        if line.len() > LONGEST_LINE {
            return Err(AppendError::TooLong { bytes: line.len() });
        }
        let bytes = [before, &line].concat();
        // Whatever a failed write left behind is found by its length next time.
        open.file
            .write_all(&bytes)
            .map_err(|error| self.io(error))?;
        open.head = head;
        open.length += bytes.len() as u64;
        Ok(head)
    }

    /// Locks the file that has our name. Where somebody moved it away (to keep it elsewhere), the
    /// chain goes on in a new one.
    fn lock_current(&self, open: &mut Open) -> Result<(), AppendError> {
        let until = Instant::now() + PATIENCE;
        loop {
            match open.file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(AppendError::Busy {
                        path: self.path.clone(),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(self.io(error)),
            }
            if is_at(&open.file, &self.path).map_err(|error| self.io(error))? {
                return Ok(());
            }
            open.file = self::open(&self.path).map_err(|error| self.io(error))?;
            open.length = 0;
        }
    }

    fn io(&self, source: io::Error) -> AppendError {
        AppendError::Io {
            path: self.path.clone(),
            source,
        }
    }
}

impl Open {
    /// Whether this very file once held records that are not in it any more.
    fn went_back(&self, head: Head) -> bool {
        let known = self.length > 0;
        known && (head.seq < self.head.seq || head.seq == self.head.seq && head != self.head)
    }
}

fn vouch_for(scrap: &Scrap) -> Event {
    Event::Mended {
        bytes: scrap.bytes,
        sha256: scrap.sha256.to_string(),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
