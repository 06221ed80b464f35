//! Decisions as lines in a file, for people to read now and later.
//!
//! Bounded: a full file becomes the old one, and what was the old one goes. Several processes may
//! write; each line is one write at the end of whatever file has the name then.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hermetic_types::{SharedClock, Timestamp};
use serde::{Deserialize, Serialize};

use crate::audit::{EgressEntry, EgressRecorder};

/// A file with one line for each decision.
#[derive(Clone, Debug)]
pub struct EgressJournal {
    path: PathBuf,
    clock: SharedClock,
}

/// A decision and the time when it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    pub at: Timestamp,
    #[serde(flatten)]
    pub entry: EgressEntry,
}

/// Reads new entries as they come, also across a change of files.
#[derive(Debug)]
pub struct JournalTail {
    journal: EgressJournal,
    open: Option<(File, u64)>,
    rest: Vec<u8>,
}

/// A file of this size is put by in the place of the one before it, so that there are two at the most.
const MOST_JOURNAL_BYTES: u64 = 16 << 20;
/// Longer lines are not ours: a host name ends at 253 characters.
const LONGEST_JOURNAL_LINE: u64 = 64 << 10;

impl EgressJournal {
    /// Lines are stamped by this clock.
    pub fn at(path: impl Into<PathBuf>, clock: SharedClock) -> Self {
        Self {
            path: path.into(),
            clock,
        }
    }

    /// Everything that is kept, oldest first.
    pub fn past(&self) -> io::Result<Vec<JournalEntry>> {
        let mut all = Vec::new();
        for path in [self.old(), self.path.clone()] {
            match File::open(path) {
                Ok(file) => read_lines(BufReader::new(file), &mut all)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// The last that is kept in the newest file, oldest first, as far as it fits into so many bytes.
    pub fn recent(&self, most_bytes: u64) -> io::Result<Vec<JournalEntry>> {
        let mut entries = Vec::new();
        if let Some((mut file, _)) = self.open_to_read()? {
            let length = file.metadata()?.len();
            // The line in which it begins is cut, and passed over.
            file.seek(SeekFrom::Start(length.saturating_sub(most_bytes)))?;
            read_lines(BufReader::new(file.take(most_bytes)), &mut entries)?;
        }
        Ok(entries)
    }

    /// From the end of what is there now.
    pub fn tail(&self) -> io::Result<JournalTail> {
        let mut tail = JournalTail {
            journal: self.clone(),
            open: None,
            rest: Vec::new(),
        };
        if let Some((mut file, inode)) = self.open_to_read()? {
            file.seek(SeekFrom::End(0))?;
            tail.open = Some((file, inode));
        }
        Ok(tail)
    }

    fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.path)?;
        file.write_all(line)?;
        let full = file.metadata()?;
        // Looked at after the write, by the file that was written to: its name may mean another by
        // now.
        if full.len() > MOST_JOURNAL_BYTES {
            self.put_by(full.ino())?;
        }
        Ok(())
    }

    /// Moves the full file aside, unless somebody else has. Whoever does that holds a lock, in this process
    /// or another, so that the name cannot come to mean the next file between the look and the move.
    fn put_by(&self, full: u64) -> io::Result<()> {
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(with_suffix(&self.path, ".lock"))?;
        lock.lock()?;
        match fs::metadata(&self.path) {
            Ok(now) if now.ino() == full => fs::rename(&self.path, self.old()),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn open_to_read(&self) -> io::Result<Option<(File, u64)>> {
        match File::open(&self.path) {
            Ok(file) => {
                let inode = file.metadata()?.ino();
                Ok(Some((file, inode)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn old(&self) -> PathBuf {
        with_suffix(&self.path, ".1")
    }
}

impl EgressRecorder for EgressJournal {
    fn write(&self, entry: &EgressEntry) {
        let noted = JournalEntry {
            at: self.clock.now(),
            entry: entry.clone(),
        };
        let written = serde_json::to_vec(&noted)
            .map_err(io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                self.append(&line)
            });
        if let Err(error) = written {
            tracing::error!(%error, path = %self.path.display(), "a decision could not be written down");
        }
    }
}

impl JournalTail {
    /// What was written since the last call.
    pub fn more(&mut self) -> io::Result<Vec<JournalEntry>> {
        let mut all = Vec::new();
        loop {
            if let Some((file, _)) = &mut self.open {
                // The old file is read to its end before the new one is opened: what was written
                // just before the change is in there.
                file.read_to_end(&mut self.rest)?;
            }
            let now = self.journal.open_to_read()?;
            let moved = match (&self.open, &now) {
                (Some((_, before)), Some((_, now))) => before != now,
                (before, now) => before.is_none() && now.is_some(),
            };
            if !moved {
                break;
            }
            self.open = now;
        }
        let whole = self.rest.iter().rposition(|&byte| byte == b'\n');
        let lines: Vec<u8> = self.rest.drain(..whole.map_or(0, |at| at + 1)).collect();
        read_lines(lines.as_slice(), &mut all)?;
        Ok(all)
    }
}

/// Lines that are none of ours are passed over: a crash may have cut one.
fn read_lines(mut from: impl BufRead, into: &mut Vec<JournalEntry>) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = from
            .by_ref()
            .take(LONGEST_JOURNAL_LINE)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        into.extend(serde_json::from_slice::<JournalEntry>(&line).ok());
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hermetic_types::{ConversationKey, SystemClock};

    use super::*;
    use crate::audit::{EgressDecision, EgressMethod};

    fn entry(host: &str) -> EgressEntry {
        EgressEntry {
            conversation: ConversationKey::new("cli"),
            host: host.to_owned(),
            port: 443,
            address: None,
            how: EgressMethod::Connect,
            rule: String::new(),
            verdict: EgressDecision::Refused {
                reason: "no".to_owned(),
            },
            bytes_up: 0,
            bytes_down: 0,
            duration: Duration::ZERO,
        }
    }

    fn hosts(noted: &[JournalEntry]) -> Vec<&str> {
        noted
            .iter()
            .map(|noted| noted.entry.host.as_str())
            .collect()
    }

    #[test]
    fn what_is_written_is_read_now_and_later() {
        let folder = tempfile::tempdir().unwrap();
        let journal = EgressJournal::at(folder.path().join("egress.jsonl"), SystemClock::shared());
        let mut early = journal.tail().unwrap();
        journal.write(&entry("a.test"));
        let mut late = journal.tail().unwrap();
        fs::write(journal.old(), "not ours\n").unwrap();
        journal.write(&entry("b.test"));
        assert_eq!(hosts(&journal.past().unwrap()), ["a.test", "b.test"]);
        assert_eq!(hosts(&early.more().unwrap()), ["a.test", "b.test"]);
        assert_eq!(hosts(&late.more().unwrap()), ["b.test"]);
        assert!(late.more().unwrap().is_empty());
    }

    #[test]
    fn a_reader_follows_into_the_next_file() {
        let folder = tempfile::tempdir().unwrap();
        let journal = EgressJournal::at(folder.path().join("egress.jsonl"), SystemClock::shared());
        journal.write(&entry("a.test"));
        let mut tail = journal.tail().unwrap();
        journal.write(&entry("b.test"));
        fs::rename(&journal.path, journal.old()).unwrap();
        journal.write(&entry("c.test"));
        assert_eq!(hosts(&tail.more().unwrap()), ["b.test", "c.test"]);
        assert_eq!(
            hosts(&journal.past().unwrap()),
            ["a.test", "b.test", "c.test"]
        );
    }

    /// Two that saw the file full: only one of them moves it, or the second would put the new file, with
    /// one line in it, over the one that was just put by.
    #[test]
    fn a_full_file_is_put_by_once() {
        let folder = tempfile::tempdir().unwrap();
        let journal = EgressJournal::at(folder.path().join("egress.jsonl"), SystemClock::shared());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for round in 0..50 {
                        // The next line fills it.
                        if round % 10 == 0
                            && let Ok(file) = OpenOptions::new().write(true).open(&journal.path)
                        {
                            file.set_len(MOST_JOURNAL_BYTES).unwrap();
                        }
                        journal.write(&entry("a.test"));
                        if let Ok(old) = fs::metadata(journal.old()) {
                            assert!(old.len() >= MOST_JOURNAL_BYTES, "{}", old.len());
                        }
                    }
                });
            }
        });
    }
}
