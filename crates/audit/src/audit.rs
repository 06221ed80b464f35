//! Adding to the record.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{self, Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hermetic_types::Timestamp;
use thiserror::Error;

use crate::append_queue::{AppendQueue, QueuedEvent, abandoned};
use crate::disk_sync::DiskSync;
use crate::line::{ChainHead, WrittenEvent};
use crate::open_record::{LockFailure, OpenRecord, UNKNOWN_END};
use crate::places::AuditPaths;
use crate::seal::{HeadFile, HeadWitness, SealKey, is_noted, witness};
use crate::tail::{RecordTail, TornWrite};
use crate::witness::{ChainName, PublishedHead};
use crate::{AuditEvent, LONGEST_RECORD_LINE};

/// The open record. One in each process; several processes share the file.
#[derive(Debug)]
pub struct AuditLog {
    places: AuditPaths,
    key: SealKey,
    noted: HeadFile,
    open: Arc<Mutex<OpenRecord>>,
    /// What other threads of this process want to add while one adds.
    queue: AppendQueue,
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
        let open = OpenRecord::open(places.record()).map_err(|error| io(places.record(), error))?;
        let noted = HeadFile::open(places.head()).map_err(|error| io(places.head(), error))?;
        let key = match SealKey::load(places.key()).map_err(|error| io(places.key(), error))? {
            Some(key) => key,
            // A new key only for a record that never had one: beside sealed lines it would make all
            // of them look forged, and whoever removed the old one would have covered their tracks.
            None if is_sealed(&places, &open.file)
                .map_err(|error| io(places.record(), error))? =>
            {
                return Err(AppendError::NoKey {
                    path: places.record().to_owned(),
                    key: places.key().to_owned(),
                });
            }
            None => begin(&open, &places, &noted).map_err(|error| io(places.key(), error))?,
        };
        Ok(Self {
            key,
            noted,
            places,
            open: Arc::new(Mutex::new(open)),
            queue: AppendQueue::default(),
            sync: OnceLock::new(),
        })
    }

    pub fn path(&self) -> &Path {
        self.places.record()
    }

    /// Where the record was noted to stand, for a log that others keep. `None` where that is not known.
    pub fn noted_head(&self) -> Option<ChainHead> {
        match witness(self.places.head(), &self.key) {
            Ok(HeadWitness::Head(head)) if head != ChainHead::START => Some(head),
            _ => None,
        }
    }

    /// Which chain this is, for others that witness it.
    pub fn chain(&self) -> ChainName {
        ChainName::of(&self.key)
    }

    /// Where the chain was noted to stand, sealed for others that witness it.
    pub fn published_head(&self) -> Option<PublishedHead> {
        let head = self.noted_head()?;
        Some(PublishedHead {
            chain: self.chain(),
            head,
            seal: self.key.seal_published(head),
        })
    }

    /// Adds one record. Blocks for the length of a small write, longer only while another process
    /// writes: for seconds, where that one hangs.
    pub fn append(&self, event: &AuditEvent, at: Timestamp) -> Result<ChainHead, AppendError> {
        let outcome = self.queue.join(WrittenEvent::new(event, at));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // Whoever wrote meanwhile may have written this one as well.
            if let Some(came_of_it) = outcome.take() {
                return came_of_it;
            }
            let queued = self.queue.take();
            if queued.is_empty() {
                return Err(abandoned(self.path()));
            }
            self.append_all(&mut open, &queued, LOCK_TIMEOUT);
        }
    }

    /// The same for a thread that others rely on: nothing where somebody else writes at this moment.
    pub fn try_append(
        &self,
        event: &AuditEvent,
        at: Timestamp,
    ) -> Option<Result<ChainHead, AppendError>> {
        let mut open = match self.open.try_lock() {
            Ok(open) => open,
            Err(sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(sync::TryLockError::WouldBlock) => return None,
        };
        // Past the queue: those that wait in it have threads of their own that may wait. This one
        // may not, and writes no more than its own line.
        let (queued, outcome) = QueuedEvent::alone(WrittenEvent::new(event, at));
        self.append_all(&mut open, &[queued], Duration::ZERO);
        match outcome.take()? {
            Err(AppendError::Busy { .. }) => None,
            tried => Some(tried),
        }
    }

    /// Adds records with one write, and settles each of them.
    fn append_all(&self, open: &mut OpenRecord, queued: &[QueuedEvent], patience: Duration) {
        let locked = open.lock_current(self.path(), patience);
        let length = match locked {
            Ok(length) => length,
            Err(LockFailure::Busy) => {
                let path = || self.path().to_owned();
                return settle_all(queued, || AppendError::Busy { path: path() });
            }
            Err(LockFailure::Io(error)) => return settle_all(queued, || self.io(again(&error))),
        };
        self.append_locked(open, queued, length);
        // Closing would let go of it as well; nothing can be done about a lock that does not open.
        let _ = open.file.unlock();
        // Started with the first record and not with the process: most commands of the command line
        // add none.
        if let Some(sync) = self.sync.get_or_init(|| self.start_sync()) {
            sync.note_written();
        }
    }

    /// Why the disk may not have what was recorded: it failed to take it once.
    pub fn disk_trouble(&self) -> Option<String> {
        self.sync.get()?.as_ref()?.trouble()
    }

    /// The record first: a note that is ahead of it would look like a record that was cut. A process that
    /// can have no thread leaves syncing to the kernel.
    fn start_sync(&self) -> Option<DiskSync> {
        let open = Arc::clone(&self.open);
        let noted = self.noted.handle().ok()?;
        // Asked for anew each time: the record may have been moved away since, and another file may
        // be the open one.
        let files = move || {
            let open = open.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(vec![open.file.try_clone()?, noted.try_clone()?])
        };
        DiskSync::start(files).ok()
    }

    fn append_locked(&self, open: &mut OpenRecord, queued: &[QueuedEvent], length: u64) {
        let Some(first) = queued.first() else {
            return;
        };
        let before = match self.catch_up(open, length, first.event.at()) {
            Ok(before) => before,
            Err(error) => return settle_all(queued, || error.again()),
        };
        let mut lines = before.to_vec();
        let (mut head, mut placed) = (open.head, Vec::with_capacity(queued.len()));
        for one in queued {
            let begins = lines.len();
            let next = head.add_next(&one.event, &self.key, &mut lines);
            let bytes = lines.len() - begins;
            if bytes > LONGEST_RECORD_LINE {
                // Taken out again whole: the chain goes on over it, and its thread alone is told.
                lines.truncate(begins);
                one.settle(Err(AppendError::TooLong { bytes }));
                continue;
            }
            head = next;
            placed.push((one, head, lines.len()));
        }
        self.write(open, &lines, &placed);
    }

    /// Learns how the file ends, where somebody else wrote to it, and writes down what is strange about that.
    /// Tells what has to stand before the next line.
    fn catch_up(
        &self,
        open: &mut OpenRecord,
        length: u64,
        at: Timestamp,
    ) -> Result<&'static [u8], AppendError> {
        // A file that nobody has written to may follow one that was moved away.
        // The length tells whether somebody else wrote: lines are only ever added, and under this
        // lock by one at a time.
        let looked_at = length > 0 || open.head != ChainHead::START;
        let announced = self
            .noted
            .announced(&self.key)
            .map_err(|error| self.io(error))?;
        let announced = announced.filter(|announced| announced.seq > open.head.seq);
        // Also where the length is the one we know: lines that another process wrote and died over may have
        // been cut off again.
        if length == open.length && looked_at && announced.is_none() {
            return Ok(b"");
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
        // Refused rather than repaired: a record that goes on over such a place hides where it was
        // changed.
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
            // Several lines were being written, and not all of them are here: cut short by a death, or
            // by somebody who knew that they were not noted yet. Nothing tells the two apart, so it is said.
            HeadWitness::Head(_) => announced
                .filter(|announced| announced.seq > head.seq)
                .map(|announced| resumed(head, announced.to_string())),
            _ if begun && !ours => Some(AuditEvent::Sealed {
                key: self.key.name(),
            }),
            // Also of an empty record, which is noted from its beginning on.
            HeadWitness::Missing => Some(resumed(head, "nothing".to_owned())),
            HeadWitness::Unreadable => Some(resumed(head, "something unreadable".to_owned())),
        };
        (open.head, open.length) = (head, length);
        let mut end: &'static [u8] = if unended { b"\n" } else { b"" };
        // What is vouched for comes first: the record that does so has to follow right behind those
        // bytes.
        for event in scrap.as_ref().map(vouch_for).into_iter().chain(note) {
            self.write_own(open, end, &event, at)?;
            end = b"";
        }
        Ok(end)
    }

    /// Adds a record of our own about the record.
    fn write_own(
        &self,
        open: &mut OpenRecord,
        before: &[u8],
        event: &AuditEvent,
        at: Timestamp,
    ) -> Result<(), AppendError> {
        let (queued, outcome) = QueuedEvent::alone(WrittenEvent::new(event, at));
        let mut lines = before.to_vec();
        let head = open.head.add_next(&queued.event, &self.key, &mut lines);
        let end = lines.len();
        self.write(open, &lines, &[(&queued, head, end)]);
        let settled = outcome.take();
        settled.map_or_else(|| Err(abandoned(self.path())), |came| came.map(drop))
    }

    /// Writes lines and notes where the chain stands then. Each record is told where its line ends in `lines`;
    /// those that were written whole before a write failed are in the record, and the others are not.
    fn write(
        &self,
        open: &mut OpenRecord,
        lines: &[u8],
        placed: &[(&QueuedEvent, ChainHead, usize)],
    ) {
        let begins = open.length;
        // One line alone is not announced: nobody acts on it before it is noted, and it would be one more
        // write for each record.
        if let [_, .., (_, last, _)] = placed
            && let Err(error) = self.noted.announce(*last, &self.key)
        {
            for (queued, ..) in placed {
                queued.settle(Err(self.io(again(&error))));
            }
            return;
        }
        let (written, failed) = open.write(lines);
        let whole = placed.iter().take_while(|(.., end)| *end <= written);
        let whole = whole.count();
        let (there, missing) = placed.split_at(whole);
        if let Some((_, head, end)) = there.last() {
            // Whatever a failed write left behind is found by the file's length next time.
            (open.head, open.length) = (*head, begins + *end as u64);
            // Behind the lines: a death in between leaves sealed lines too many, never one too few.
            let noted = self.noted.note(*head, &self.key);
            for (queued, head, _) in there {
                queued.settle(match &noted {
                    Ok(()) => Ok(*head),
                    Err(error) => Err(self.io(again(error))),
                });
            }
        }
        // The lines that are there were settled above: a thread whose line was written must not be
        // told that it was not, or it would refuse what is in the record as allowed.
        if let Err(error) = failed {
            // What was to stand before these lines may be missing too, and the file as long as it was.
            open.length = UNKNOWN_END;
            if there.is_empty() {
                // What was announced does not come, and this process knows why. Where this fails too, it is
                // said in the record.
                let _ = self.noted.note(open.head, &self.key);
            }
            for (queued, ..) in missing {
                queued.settle(Err(self.io(again(&error))));
            }
        }
    }

    fn io(&self, source: io::Error) -> AppendError {
        AppendError::Io {
            path: self.path().to_owned(),
            source,
        }
    }
}

impl AppendError {
    /// The same once more: several records of one write fail for one reason.
    fn again(&self) -> Self {
        match self {
            Self::Io { path, source } => Self::Io {
                path: path.clone(),
                source: again(source),
            },
            Self::Busy { path } => Self::Busy { path: path.clone() },
            Self::Broken { path } => Self::Broken { path: path.clone() },
            Self::TooLong { bytes } => Self::TooLong { bytes: *bytes },
            Self::NoKey { path, key } => Self::NoKey {
                path: path.clone(),
                key: key.clone(),
            },
        }
    }
}

fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

fn settle_all(queued: &[QueuedEvent], error: impl Fn() -> AppendError) {
    for one in queued {
        one.settle(Err(error()));
    }
}

/// Whether a key made something of this once.
fn is_sealed(places: &AuditPaths, file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let tail = RecordTail::read(file, length, ChainHead::START)?;
    Ok(is_noted(places.head()) || matches!(tail, RecordTail::Whole { seal: Some(_), .. }))
}

/// Makes the key, and with it a note that nothing is recorded yet: a key without a note says from then on that
/// somebody removed it. Only here: a note that whoever finds an empty record made for it would call it whole. Nobody
/// writes a record between the two.
fn begin(open: &OpenRecord, places: &AuditPaths, noted: &HeadFile) -> io::Result<SealKey> {
    open.file.lock()?;
    let begun = SealKey::create(places.key()).and_then(|key| {
        if open.file.metadata()?.len() == 0 && !is_noted(places.head()) {
            noted.note(ChainHead::START, &key)?;
            noted.sync()?;
        }
        Ok(key)
    });
    open.file.unlock()?;
    begun
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

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
