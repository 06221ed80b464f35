//! Walking the chain from its first line to its last.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Take};
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use crate::line::{ChainHead, ParsedLine, RecordDigest, read};
use crate::places::AuditPaths;
use crate::seal::{HeadWitness, Seal, SealKey, witness};
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
}

/// The records of a file, each held against the one before.
#[derive(Debug)]
pub struct RecordWalk {
    path: PathBuf,
    lines: BufReader<Take<File>>,
    at: u64,
    /// Bytes since the last record that are none.
    scrap: Vec<u8>,
    /// The line in which they begin.
    scrap_at: u64,
    report: ChainReport,
    ended: bool,
    key: Option<SealKey>,
    noted: Option<HeadWitness>,
}

/// Opens a file to walk it. Writers are waited for only as long as it takes to learn its length:
/// what they add later is not looked at.
pub fn walk(path: &Path) -> Result<RecordWalk, WalkError> {
    walk_at(&AuditPaths::beside(path))
}

/// The same, with a key and a note that may lie elsewhere.
pub fn walk_at(places: &AuditPaths) -> Result<RecordWalk, WalkError> {
    let path = places.record();
    let open = || {
        let key = SealKey::load(places.key())?;
        let file = File::open(path)?;
        file.lock_shared()?;
        let length = file.metadata()?.len();
        let noted = key
            .as_ref()
            .map(|key| witness(places.head(), key))
            .transpose();
        file.unlock()?;
        Ok((BufReader::new(file.take(length)), key, noted?))
    };
    let (lines, key, noted) = open().map_err(|source| WalkError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(RecordWalk {
        path: path.to_owned(),
        lines,
        at: 0,
        scrap: Vec::new(),
        scrap_at: 0,
        report: ChainReport::default(),
        ended: false,
        key,
        noted,
    })
}

impl RecordWalk {
    /// What was seen so far: of the whole file once the walk is at its end.
    pub fn report(&self) -> &ChainReport {
        &self.report
    }

    /// To the end, without looking at what the records say.
    pub fn finish(mut self) -> Result<ChainReport, WalkError> {
        for next in self.by_ref() {
            next?;
        }
        Ok(self.report)
    }

    fn step(&mut self) -> Result<Option<AuditRecord>, WalkError> {
        loop {
            let mut line = Vec::new();
            let bound = LONGEST_RECORD_LINE as u64 + 1;
            let read_in = self.lines.by_ref().take(bound).read_until(b'\n', &mut line);
            read_in.map_err(|source| WalkError::Io {
                path: self.path.clone(),
                source,
            })?;
            if line.is_empty() {
                self.report.torn = self.scrap.len() as u64;
                return self.close().map(|()| None);
            }
            self.at += 1;
            if line.len() > LONGEST_RECORD_LINE {
                return Err(self.flaw(self.at, ChainFlaw::TooLong));
            }
            match read(line.strip_suffix(b"\n").unwrap_or(&line)) {
                ParsedLine::Forged => return Err(self.flaw(self.at, ChainFlaw::Changed)),
                // Cut at its last byte, the end of line, it is whole all the same.
                ParsedLine::Record(record, hash, seal) => {
                    self.check_seal(hash, seal)?;
                    self.chain(&record, hash)?;
                    return Ok(Some(record));
                }
                ParsedLine::Scrap => self.keep_scrap(&line)?,
            }
        }
    }

    fn check_seal(&mut self, hash: RecordDigest, seal: Option<Seal>) -> Result<(), WalkError> {
        match (&self.key, seal) {
            (Some(key), Some(seal)) if key.seal(hash) != seal => {
                Err(self.flaw(self.at, ChainFlaw::ForeignSeal))
            }
            (_, None) if self.report.sealed > 0 => Err(self.flaw(self.at, ChainFlaw::Unsealed)),
            (_, seal) => {
                self.report.sealed += u64::from(seal.is_some());
                Ok(())
            }
        }
    }

    /// Holds the end against the note of where it stood.
    fn close(&mut self) -> Result<(), WalkError> {
        let ChainReport {
            records,
            sealed,
            head,
            ..
        } = self.report;
        if let Some(HeadWitness::Head(noted)) = self.noted {
            self.report.noted = Some(noted);
            let here = head.map_or(0, |head| head.seq);
            // What was noted was sealed; a chain without seals is not the one.
            if records > 0 && sealed == 0 {
                return Err(self.flaw(self.at, ChainFlaw::Unsealed));
            }
            if records > 0 && here < noted.seq {
                return Err(self.flaw(self.at, ChainFlaw::Cut));
            }
            if head.is_some_and(|head| head.seq == noted.seq && head != noted) {
                return Err(self.flaw(self.at, ChainFlaw::Replaced));
            }
        }
        self.report.proof = match self.noted {
            None => ProofStrength::NoKey,
            Some(_) if records > 0 && sealed == 0 => ProofStrength::Unsealed,
            Some(HeadWitness::Head(_)) if sealed < records => ProofStrength::OldBeginning,
            Some(HeadWitness::Head(_)) => ProofStrength::Whole,
            Some(_) if records == 0 => ProofStrength::Whole,
            Some(_) => ProofStrength::NoNote,
        };
        Ok(())
    }

    fn keep_scrap(&mut self, line: &[u8]) -> Result<(), WalkError> {
        if self.scrap.is_empty() {
            self.scrap_at = self.at;
        }
        self.scrap.extend_from_slice(line);
        // No number of crashes between two records leaves more.
        if self.scrap.len() > 3 * LONGEST_RECORD_LINE {
            return Err(self.flaw(self.scrap_at, ChainFlaw::NoRecord));
        }
        Ok(())
    }

    fn chain(&mut self, record: &AuditRecord, hash: RecordDigest) -> Result<(), WalkError> {
        let follows = match self.report.head {
            Some(head) => record.seq == head.seq + 1 && record.prev == head.hash,
            // A first line starts the chain, or goes on after a file that is kept elsewhere.
            None => record.seq > 1 || (record.seq == 1 && record.prev == ChainHead::START.hash),
        };
        if !follows {
            return Err(self.flaw(self.at, ChainFlaw::Unchained));
        }
        if !self.scrap.is_empty() {
            if !vouches(record, &self.scrap) {
                return Err(self.flaw(self.scrap_at, ChainFlaw::NoRecord));
            }
            self.scrap.clear();
            self.report.mended += 1;
        }
        // Passing the note on the way, another record must not stand in its place.
        if let Some(HeadWitness::Head(noted)) = self.noted
            && noted.seq == record.seq
            && noted.hash != hash
        {
            return Err(self.flaw(self.at, ChainFlaw::Replaced));
        }
        let kind = record.event.get("kind").and_then(|kind| kind.as_str());
        self.report.resumed += u64::from(kind == Some("resumed"));
        self.report.records += 1;
        self.report.first.get_or_insert(record.seq);
        self.report.head = Some(ChainHead {
            seq: record.seq,
            hash,
        });
        Ok(())
    }

    fn flaw(&self, line: u64, flaw: ChainFlaw) -> WalkError {
        WalkError::Tampered {
            path: self.path.clone(),
            line,
            flaw,
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

fn vouches(record: &AuditRecord, scrap: &[u8]) -> bool {
    let said = |name: &str| record.event.get(name);
    said("kind").and_then(|kind| kind.as_str()) == Some("mended")
        && said("bytes").and_then(|bytes| bytes.as_u64()) == Some(scrap.len() as u64)
        && said("sha256").and_then(|hash| hash.as_str())
            == Some(RecordDigest::of(scrap).to_string().as_str())
}
