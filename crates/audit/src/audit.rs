//! Adding to the record.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{self, Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hermetic_types::Timestamp;
use thiserror::Error;

use crate::disk_sync::DiskSync;
use crate::line::ChainHead;
use crate::places::AuditPaths;
use crate::seal::{HeadFile, HeadWitness, SealKey, witness};
use crate::tail::{RecordTail, TornWrite};
use crate::{AuditEvent, LONGEST_RECORD_LINE};

/// The open record. One in each process; several processes share the file.
#[derive(Debug)]
pub struct AuditLog {
    places: AuditPaths,
    key: SealKey,
    noted: HeadFile,
    open: Arc<Mutex<OpenRecord>>,
    /// Started by the first record of this process.
    sync: OnceLock<Option<DiskSync>>,
}

#[derive(Debug, Error)]
pub enum AppendError {
    #[error("cannot write to {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("another process has held {} for {} seconds", path.display(), LOCK_TIMEOUT.as_secs())]
    Busy { path: PathBuf },
    /// Going on would bury the place where it was changed.
    #[error("{} does not end as we left it: it was changed, or the disk failed", path.display())]
    Broken { path: PathBuf },
    #[error("a record of {bytes} bytes is too long")]
    TooLong { bytes: usize },
    /// A new key would make everything before it look forged.
    #[error("the key of {} is gone: put {} back, or move the record and its note aside to begin a new one", path.display(), key.display())]
    NoKey { path: PathBuf, key: PathBuf },
}

#[derive(Debug)]
struct OpenRecord {
    file: File,
    /// What is known of the end, to be read again if the file has another length.
    head: ChainHead,
    /// 0 for a file we have not looked at.
    length: u64,
}

/// A writer holds the lock for one write. One that holds it longer was stopped or hangs.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

impl AuditLog {
    /// Opens the file, or begins it, with its key and its note beside it. Its folder is there already.
    pub fn open(path: &Path) -> Result<Self, AppendError> {
        Self::open_at(AuditPaths::beside(path))
    }

    pub fn open_at(places: AuditPaths) -> Result<Self, AppendError> {
        let io = |path: &Path, source| AppendError::Io {
            path: path.to_owned(),
            source,
        };
        let file = open(places.record()).map_err(|error| io(places.record(), error))?;
        let key = match SealKey::load(places.key()).map_err(|error| io(places.key(), error))? {
            Some(key) => key,
            None if is_sealed(&places, &file).map_err(|error| io(places.record(), error))? => {
                return Err(AppendError::NoKey {
                    path: places.record().to_owned(),
                    key: places.key().to_owned(),
                });
            }
            None => SealKey::create(places.key()).map_err(|error| io(places.key(), error))?,
        };
        Ok(Self {
            key,
            noted: HeadFile::open(places.head()).map_err(|error| io(places.head(), error))?,
            places,
            open: Arc::new(Mutex::new(OpenRecord {
                file,
                head: ChainHead::START,
                length: 0,
            })),
            sync: OnceLock::new(),
        })
    }

    pub fn path(&self) -> &Path {
        self.places.record()
    }

    /// Where the record was noted to stand, for a log that others keep. `None` where that is not known.
    pub fn noted_head(&self) -> Option<ChainHead> {
        match witness(self.places.head(), &self.key) {
            Ok(HeadWitness::Head(head)) => Some(head),
            _ => None,
        }
    }

    /// Adds one record. Blocks for the length of a small write, longer only while another process
    /// writes: for seconds, where that one hangs.
    pub fn append(&self, event: &AuditEvent, at: Timestamp) -> Result<ChainHead, AppendError> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        self.append_within(LOCK_TIMEOUT, open, event, at)
    }

    /// The same for a thread that others rely on: nothing where somebody else writes at this moment.
    pub fn try_append(
        &self,
        event: &AuditEvent,
        at: Timestamp,
    ) -> Option<Result<ChainHead, AppendError>> {
        let open = match self.open.try_lock() {
            Ok(open) => open,
            Err(sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(sync::TryLockError::WouldBlock) => return None,
        };
        match self.append_within(Duration::ZERO, open, event, at) {
            Err(AppendError::Busy { .. }) => None,
            tried => Some(tried),
        }
    }

    fn append_within(
        &self,
        patience: Duration,
        mut open: MutexGuard<'_, OpenRecord>,
        event: &AuditEvent,
        at: Timestamp,
    ) -> Result<ChainHead, AppendError> {
        self.lock_current(&mut open, patience)?;
        let written = self.append_locked(&mut open, event, at);
        // Closing would let go of it as well; nothing can be done about a lock that does not open.
        let _ = open.file.unlock();
        drop(open);
        if written.is_ok()
            && let Some(sync) = self.sync.get_or_init(|| self.start_sync())
        {
            sync.note_written();
        }
        written
    }

    /// The record first: a note that is ahead of it would look like a record that was cut. A process that
    /// can have no thread leaves syncing to the kernel.
    fn start_sync(&self) -> Option<DiskSync> {
        let open = Arc::clone(&self.open);
        let noted = self.noted.handle().ok()?;
        let files = move || {
            let open = open.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(vec![open.file.try_clone()?, noted.try_clone()?])
        };
        DiskSync::start(files).ok()
    }

    fn append_locked(
        &self,
        open: &mut OpenRecord,
        event: &AuditEvent,
        at: Timestamp,
    ) -> Result<ChainHead, AppendError> {
        let length = open.file.metadata().map_err(|error| self.io(error))?.len();
        // A file that nobody has written to may follow one that was moved away.
        let looked_at = length > 0 || open.head != ChainHead::START;
        if length == open.length && looked_at {
            return self.write(open, b"", event, at);
        }
        let noted = witness(self.places.head(), &self.key).map_err(|error| self.io(error))?;
        let before = match noted {
            // The file was moved away: the chain goes on after it.
            HeadWitness::Head(head) if open.head == ChainHead::START => head,
            _ => open.head,
        };
        let broken = || AppendError::Broken {
            path: self.path().to_owned(),
        };
        let tail = RecordTail::read(&open.file, length, before).map_err(|error| self.io(error))?;
        let RecordTail::Whole {
            head,
            seal,
            begun,
            scrap,
            open: unended,
        } = tail
        else {
            return Err(broken());
        };
        let ours = seal == Some(self.key.seal(head.hash));
        if open.went_back(head) || seal.is_some() && !ours {
            return Err(broken());
        }
        let note = match noted {
            // A chain that was sealed does not go on without seals, nor from another record.
            HeadWitness::Head(noted)
                if begun && !ours || noted.seq == head.seq && noted != head =>
            {
                return Err(broken());
            }
            HeadWitness::Head(noted) if noted.seq > head.seq => {
                Some(resumed(head, noted.to_string()))
            }
            HeadWitness::Head(_) => None,
            _ if begun && !ours => Some(AuditEvent::Sealed {
                key: self.key.name(),
            }),
            HeadWitness::Missing if !begun => None,
            HeadWitness::Missing => Some(resumed(head, "nothing".to_owned())),
            HeadWitness::Unreadable => Some(resumed(head, "something unreadable".to_owned())),
        };
        (open.head, open.length) = (head, length);
        let mut end: &[u8] = if unended { b"\n" } else { b"" };
        if let Some(scrap) = scrap {
            self.write(open, end, &vouch_for(&scrap), at)?;
            end = b"";
        }
        if let Some(note) = note {
            self.write(open, end, &note, at)?;
            end = b"";
        }
        self.write(open, end, event, at)
    }

    fn write(
        &self,
        open: &mut OpenRecord,
        before: &[u8],
        event: &AuditEvent,
        at: Timestamp,
    ) -> Result<ChainHead, AppendError> {
        let (line, head) = open.head.next(at, event, &self.key);
        if line.len() > LONGEST_RECORD_LINE {
            return Err(AppendError::TooLong { bytes: line.len() });
        }
        let bytes = [before, &line].concat();
        // Whatever a failed write left behind is found by its length next time.
        open.file
            .write_all(&bytes)
            .map_err(|error| self.io(error))?;
        open.head = head;
        open.length += bytes.len() as u64;
        // Behind the line: a death in between leaves a sealed line too many, never one too few.
        self.noted
            .note(head, &self.key)
            .map_err(|error| self.io(error))?;
        Ok(head)
    }

    /// Locks the file that has our name. Where somebody moved it away (to keep it elsewhere), the
    /// chain goes on in a new one.
    fn lock_current(&self, open: &mut OpenRecord, patience: Duration) -> Result<(), AppendError> {
        let until = Instant::now() + patience;
        loop {
            match open.file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(AppendError::Busy {
                        path: self.path().to_owned(),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(self.io(error)),
            }
            if is_at(&open.file, self.path()).map_err(|error| self.io(error))? {
                return Ok(());
            }
            open.file = self::open(self.path()).map_err(|error| self.io(error))?;
            open.length = 0;
        }
    }

    fn io(&self, source: io::Error) -> AppendError {
        AppendError::Io {
            path: self.path().to_owned(),
            source,
        }
    }
}

impl OpenRecord {
    /// Whether this very file once held records that are not in it any more.
    fn went_back(&self, head: ChainHead) -> bool {
        let known = self.length > 0;
        known && (head.seq < self.head.seq || head.seq == self.head.seq && head != self.head)
    }
}

/// Whether a key made something of this once.
fn is_sealed(places: &AuditPaths, file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let tail = RecordTail::read(file, length, ChainHead::START)?;
    let noted = fs::metadata(places.head()).is_ok_and(|file| file.len() > 0);
    Ok(noted || matches!(tail, RecordTail::Whole { seal: Some(_), .. }))
}

fn resumed(found: ChainHead, noted: String) -> AuditEvent {
    AuditEvent::Resumed {
        found: found.to_string(),
        noted,
    }
}

fn vouch_for(scrap: &TornWrite) -> AuditEvent {
    AuditEvent::Mended {
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
