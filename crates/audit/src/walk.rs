//! Walking the chain from its first line to its last.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Take};
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use crate::chain_check::{ChainCheck, CheckedLine, EndNote, SealCheck};
use crate::line::{ChainHead, ParsedLine, read};
use crate::places::AuditPaths;
use crate::record_link::RecordLink;
use crate::seal::{SealKey, announced, is_noted, witness};
use crate::verify;
use crate::witness_check::VerifiedChain;
use crate::{AuditRecord, LONGEST_RECORD_LINE};

/// A file whose chain holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    pub records: u64,
    /// The number of the first record: more than 1 where the file goes on after an earlier one.
    pub first: Option<u64>,
    pub head: Option<ChainHead>,
    /// Writes that were cut by a crash and vouched for by the next.
    pub mended: u64,
    /// Bytes of a cut write at the very end, which the next writer will vouch for.
    pub torn: u64,
    /// Records whose seal was held against the key.
    pub sealed: u64,
    /// Times the record went on although it did not end where it was noted to.
    pub resumed: u64,
    /// Where the chain was noted to stand, once the walk is at its end and the key is there.
    pub noted: Option<ChainHead>,
    /// Where the chain would stand, had what was being written been written: a death cut that short, or somebody
    /// cut it off.
    pub unfinished: Option<ChainHead>,
    pub proof: ProofStrength,
}

/// How much is proven against somebody who may write the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofStrength {
    /// All of it, and that nothing was cut off.
    Whole,
    /// The first records are older than the key.
    OldBeginning,
    /// Nothing carries a seal.
    Unsealed,
    /// The key is not there: a record that was written anew as a whole would look the same.
    #[default]
    NoKey,
    /// Nothing says where the chain stood: its end may have been cut off.
    NoNote,
}

#[derive(Debug, Error)]
pub enum WalkError {
    #[error("cannot read {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("line {line} of {}: {flaw}", path.display())]
    Tampered {
        path: PathBuf,
        line: u64,
        flaw: ChainFlaw,
    },
}

/// What no crash explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChainFlaw {
    #[error("its content was changed: the hash is of something else")]
    Changed,
    #[error("the line before it was changed, removed or put there: the chain does not hold")]
    Unchained,
    #[error("it is no record, and the next one does not vouch for it")]
    NoRecord,
    #[error("it is longer than any record")]
    TooLong,
    #[error("it carries no seal, and others do: it was not written by us")]
    Unsealed,
    #[error("its seal is not ours: it was forged, or the key was replaced")]
    ForeignSeal,
    #[error(
        "records that were noted behind it are missing: they were cut off, or lost in a power cut"
    )]
    Cut,
    #[error("the record that was noted to stand there is another one")]
    Replaced,
    #[error(
        "no record is left of {noted} that were noted: the file was emptied or removed, or moved away to be kept \
         elsewhere since the last record"
    )]
    Emptied { noted: u64 },
    #[error(
        "there is no record, and its key or the note of its end is gone or not ours: all were removed, or nothing \
         was ever recorded with this key"
    )]
    NothingLeft,
}

/// The records of a file, each held against the one before.
#[derive(Debug)]
pub struct RecordWalk {
    path: PathBuf,
    /// `None` where there is no file.
    lines: Option<BufReader<Take<File>>>,
    check: ChainCheck,
    ended: bool,
    key: Option<SealKey>,
}

/// Opens a file to walk it. Writers are waited for only as long as it takes to learn its length:
/// what they add later is not looked at.
pub fn walk(path: &Path) -> Result<RecordWalk, WalkError> {
    walk_at(&AuditPaths::beside(path))
}

/// The same, with a key and a note that may lie elsewhere. They are asked also where the record is missing: a
/// file that somebody removed must not look like one that was never written.
pub fn walk_at(places: &AuditPaths) -> Result<RecordWalk, WalkError> {
    let path = places.record();
    let open = || {
        // Before the record is looked at, so that also a record that is not there is held against
        // it.
        let key = SealKey::load(places.key())?;
        let file = match File::open(path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let Some(file) = file else {
            let noted = end_note(places, key.as_ref())?;
            return Ok((None, key, (noted, None)));
        };
        // Only for the length and the note: they have to be of one moment, and what was written up
        // to there never changes.
        file.lock_shared()?;
        let length = file.metadata()?.len();
        let noted = end_note(places, key.as_ref());
        let announced = key.as_ref().map(|key| announced(places.head(), key));
        file.unlock()?;
        let announced = announced.transpose()?.flatten();
        let lines = BufReader::new(file.take(length));
        Ok((Some(lines), key, (noted?, announced)))
    };
    let (lines, key, (noted, announced)) = open().map_err(|source| WalkError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(RecordWalk {
        path: path.to_owned(),
        lines,
        check: ChainCheck::new(path, noted, announced),
        ended: false,
        key,
    })
}

fn end_note(places: &AuditPaths, key: Option<&SealKey>) -> io::Result<EndNote> {
    match key {
        Some(key) => witness(places.head(), key).map(EndNote::Checked),
        None if is_noted(places.head()) => Ok(EndNote::Unchecked),
        None => Ok(EndNote::None),
    }
}

impl RecordWalk {
    /// What was seen so far: of the whole file once the walk is at its end.
    pub fn report(&self) -> &ChainReport {
        self.check.report()
    }

    /// To the end, without looking at what the records say.
    pub fn finish(self) -> Result<ChainReport, WalkError> {
        let (check, _) = self.walked()?;
        Ok(check.report().clone())
    }

    /// The same, keeping what is needed to hold it against the chains of other gateways. From its first record on:
    /// a walk that has begun knows nothing of those that it has passed.
    pub fn finish_for_others(mut self) -> Result<VerifiedChain, WalkError> {
        self.check.keep_for_others();
        let path = self.path.clone();
        let (check, key) = self.walked()?;
        let (report, witnessed, hashes) = check.into_kept();
        Ok(VerifiedChain {
            path,
            report,
            witnessed,
            hashes,
            key,
        })
    }

    fn walked(self) -> Result<(ChainCheck, Option<SealKey>), WalkError> {
        let Self {
            lines, check, key, ..
        } = self;
        let check = match lines {
            Some(lines) => verify::to_the_end(lines, check, key.as_ref()),
            None => verify::to_the_end(io::empty(), check, key.as_ref()),
        };
        Ok((check?, key))
    }

    fn step(&mut self) -> Result<Option<AuditRecord>, WalkError> {
        loop {
            let mut line = Vec::new();
            // One more than a line may have: it tells one that is too long from one that just fits,
            // without reading all of it.
            let bound = LONGEST_RECORD_LINE as u64 + 1;
            if let Some(lines) = &mut self.lines {
                let read_in = lines.take(bound).read_until(b'\n', &mut line);
                read_in.map_err(|source| WalkError::Io {
                    path: self.path.clone(),
                    source,
                })?;
            }
            if line.is_empty() {
                return self.check.close().map(|()| None);
            }
            if line.len() > LONGEST_RECORD_LINE {
                self.check.take(CheckedLine::TooLong)?;
                continue;
            }
            match read(line.strip_suffix(b"\n").unwrap_or(&line)) {
                ParsedLine::Forged => self.check.take(CheckedLine::Forged)?,
                ParsedLine::Scrap => self.check.take(CheckedLine::Scrap(line))?,
                // Cut at its last byte, the end of line, it is whole all the same.
                ParsedLine::Record(record, hash, seal) => {
                    self.check.take(CheckedLine::Record {
                        link: RecordLink::of(&record),
                        hash,
                        seal: SealCheck::new(self.key.as_ref(), hash, seal),
                    })?;
                    return Ok(Some(record));
                }
            }
        }
    }
}

impl Iterator for RecordWalk {
    type Item = Result<AuditRecord, WalkError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.step().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
