//! A death between the lines of one write and their note.

use std::fs;

use hermetic_types::Timestamp;

use super::*;
use crate::{ChainReport, walk};

const NOW: Timestamp = Timestamp::from_millis(1);

struct Lab {
    folder: tempfile::TempDir,
    /// As it was before the write.
    note: Vec<u8>,
    /// Where each line of the record ends.
    ends: Vec<usize>,
    last: ChainHead,
}

fn event() -> AuditEvent {
    AuditEvent::Sealed {
        key: "any".to_owned(),
    }
}

impl Lab {
    /// One record, and three that were one write.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let log = AuditLog::open(&path).unwrap();
        log.append(&event(), NOW).unwrap();
        let note = fs::read(log.places.head()).unwrap();
        let (queued, outcomes): (Vec<_>, Vec<_>) = (0..3)
            .map(|_| QueuedEvent::alone(WrittenEvent::new(&event(), NOW)))
            .unzip();
        log.append_all(&mut log.open.lock().unwrap(), &queued, LOCK_TIMEOUT);
        let last = outcomes[2].take().unwrap().unwrap();
        assert_eq!(last.seq, 4);
        let bytes = fs::read(&path).unwrap();
        let ends = (1..=bytes.len()).filter(|end| bytes[end - 1] == b'\n');
        Self {
            ends: ends.collect(),
            folder,
            note,
            last,
        }
    }

    fn open(&self) -> AuditLog {
        AuditLog::open(&self.folder.path().join("audit.jsonl")).unwrap()
    }

    /// As a death leaves it that came before the note, with so many lines, and whoever cut some off.
    fn die_with(&self, lines: usize) {
        let log = self.open();
        fs::write(log.places.head(), &self.note).unwrap();
        log.noted.announce(self.last, &log.key).unwrap();
        let bytes = fs::read(log.path()).unwrap();
        fs::write(log.path(), &bytes[..self.ends[lines - 1]]).unwrap();
    }

    fn verify(&self) -> ChainReport {
        walk(self.open().path()).unwrap().finish().unwrap()
    }
}

#[test]
fn lines_that_were_announced_and_are_not_there_are_missed() {
    let lab = Lab::new();
    for lines in [3, 2, 1] {
        lab.die_with(lines);
        let report = lab.verify();
        assert_eq!(report.unfinished, Some(lab.last));
        lab.open().append(&event(), NOW).unwrap();
        let report = lab.verify();
        assert_eq!((report.resumed, report.unfinished), (1, None));
        assert_eq!(report.records, lines as u64 + 2);
    }
}

#[test]
fn a_process_that_knows_the_end_misses_them_as_well() {
    let lab = Lab::new();
    lab.die_with(1);
    let other = lab.open();
    // It finds the record as long as it left it.
    {
        let mut open = other.open.lock().unwrap();
        let length = lab.ends[0] as u64;
        let tail = RecordTail::read(&open.file, length, ChainHead::START);
        let Ok(RecordTail::Whole { head, .. }) = tail else {
            panic!("it is whole");
        };
        (open.head, open.length) = (head, length);
    }
    other.append(&event(), NOW).unwrap();
    assert_eq!(lab.verify().resumed, 1);
}

#[test]
fn a_death_behind_the_lines_is_nothing_to_tell() {
    let lab = Lab::new();
    lab.die_with(4);
    assert_eq!(lab.verify().unfinished, None);
    lab.open().append(&event(), NOW).unwrap();
    let report = lab.verify();
    assert_eq!((report.records, report.resumed), (5, 0));
}
