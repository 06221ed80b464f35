//! Holds each line of a record against the one before, and the end against the note of where it stood.

use std::path::{Path, PathBuf};

use crate::LONGEST_RECORD_LINE;
use crate::digest::RecordDigest;
use crate::line::ChainHead;
use crate::record_link::{EventMark, RecordLink};
use crate::seal::{HeadWitness, Seal, SealKey};
use crate::walk::{ChainFlaw, ChainReport, ProofStrength, WalkError};
use crate::witness::WitnessedHead;

/// The chain as far as it was seen. Lines come in the order of the file.
#[derive(Debug)]
pub(crate) struct ChainCheck {
    path: PathBuf,
    /// The number of the last line.
    at: u64,
    /// Bytes since the last record that are none.
    scrap: Vec<u8>,
    /// The line in which they begin.
    scrap_at: u64,
    report: ChainReport,
    noted: EndNote,
    /// What was being written when the note was last written.
    announced: Option<ChainHead>,
    /// What this chain says of others.
    witnessed: Vec<WitnessedHead>,
    /// The hash of each record, where somebody else's word is to be held against them.
    hashes: Option<Vec<RecordDigest>>,
}

/// What is known of the note of where the chain stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndNote {
    /// There is neither a key nor a note.
    None,
    /// Something was noted, and there is no key to hold it against.
    Unchecked,
    Checked(HeadWitness),
}

/// A line by itself.
#[derive(Debug)]
pub(crate) enum CheckedLine {
    Record {
        link: RecordLink,
        hash: RecordDigest,
        seal: SealCheck,
    },
    Forged,
    /// With its end of line, where it has one.
    Scrap(Vec<u8>),
    TooLong,
}

/// What is known of a line's seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealCheck {
    Missing,
    /// There is no key to hold it against.
    Unchecked,
    Ours,
    Foreign,
}

impl SealCheck {
    pub(crate) fn new(key: Option<&SealKey>, hash: RecordDigest, seal: Option<Seal>) -> Self {
        match (key, seal) {
            (_, None) => Self::Missing,
            (None, Some(_)) => Self::Unchecked,
            (Some(key), Some(seal)) if key.seal(hash) == seal => Self::Ours,
            (Some(_), Some(_)) => Self::Foreign,
        }
    }
}

impl ChainCheck {
    pub(crate) fn new(path: &Path, noted: EndNote, announced: Option<ChainHead>) -> Self {
        Self {
            path: path.to_owned(),
            at: 0,
            scrap: Vec::new(),
            scrap_at: 0,
            report: ChainReport::default(),
            noted,
            announced,
            witnessed: Vec::new(),
            hashes: None,
        }
    }

    /// Keeps what other chains are checked by, and this one by them.
    pub(crate) fn keep_for_others(&mut self) {
        self.hashes = Some(Vec::new());
    }

    pub(crate) fn into_kept(self) -> (ChainReport, Vec<WitnessedHead>, Vec<RecordDigest>) {
        (self.report, self.witnessed, self.hashes.unwrap_or_default())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn report(&self) -> &ChainReport {
        &self.report
    }

    /// The next line.
    pub(crate) fn take(&mut self, line: CheckedLine) -> Result<(), WalkError> {
        self.at += 1;
        match line {
            CheckedLine::TooLong => Err(self.flaw(self.at, ChainFlaw::TooLong)),
            CheckedLine::Forged => Err(self.flaw(self.at, ChainFlaw::Changed)),
            CheckedLine::Scrap(bytes) => self.keep_scrap(&bytes),
            CheckedLine::Record { link, hash, seal } => {
                self.check_seal(seal)?;
                self.chain(&link, hash)
            }
        }
    }

    /// There are no more lines. Holds the end against the note of where it stood.
    pub(crate) fn close(&mut self) -> Result<(), WalkError> {
        self.report.torn = self.scrap.len() as u64;
        let ChainReport {
            records,
            sealed,
            head,
            ..
        } = self.report;
        if records == 0 {
            self.check_emptiness()?;
        }
        if let EndNote::Checked(HeadWitness::Head(noted)) = self.noted {
            self.report.noted = Some(noted);
            let here = head.map_or(0, |head| head.seq);
            // What was noted was sealed; a chain without seals is not the one.
            if records > 0 && sealed == 0 {
                return Err(self.flaw(self.at, ChainFlaw::Unsealed));
            }
            // Shorter than it was noted to be. The other way round is fine: the note is written
            // behind the lines, so a crash leaves it one behind.
            if records > 0 && here < noted.seq {
                return Err(self.flaw(self.at, ChainFlaw::Cut));
            }
            if head.is_some_and(|head| head.seq == noted.seq && head != noted) {
                return Err(self.flaw(self.at, ChainFlaw::Replaced));
            }
        }
        let here = head.map_or(0, |head| head.seq);
        self.report.unfinished = self.announced.filter(|announced| announced.seq > here);
        self.report.proof = match self.noted {
            EndNote::None | EndNote::Unchecked => ProofStrength::NoKey,
            EndNote::Checked(_) if records > 0 && sealed == 0 => ProofStrength::Unsealed,
            EndNote::Checked(HeadWitness::Head(_)) if sealed < records => {
                ProofStrength::OldBeginning
            }
            EndNote::Checked(HeadWitness::Head(_)) => ProofStrength::Whole,
            EndNote::Checked(_) => ProofStrength::NoNote,
        };
        Ok(())
    }

    /// Nothing is recorded. A key is made together with a note of an empty record, so that a key without one, or
    /// a note of more, says that there were records.
    fn check_emptiness(&self) -> Result<(), WalkError> {
        let flaw = match self.noted {
            EndNote::None => return Ok(()),
            EndNote::Checked(HeadWitness::Head(noted)) if noted.seq == 0 => return Ok(()),
            EndNote::Checked(HeadWitness::Head(noted)) => ChainFlaw::Emptied { noted: noted.seq },
            EndNote::Checked(_) | EndNote::Unchecked => ChainFlaw::NothingLeft,
        };
        Err(self.flaw(self.at, flaw))
    }

    fn check_seal(&mut self, seal: SealCheck) -> Result<(), WalkError> {
        match seal {
            SealCheck::Foreign => Err(self.flaw(self.at, ChainFlaw::ForeignSeal)),
            // Lines without a seal are from before there was a key, so they come first and never
            // again.
            SealCheck::Missing if self.report.sealed > 0 => {
                Err(self.flaw(self.at, ChainFlaw::Unsealed))
            }
            SealCheck::Missing => Ok(()),
            SealCheck::Unchecked | SealCheck::Ours => {
                self.report.sealed += 1;
                Ok(())
            }
        }
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

    fn chain(&mut self, record: &RecordLink, hash: RecordDigest) -> Result<(), WalkError> {
        let follows = match self.report.head {
            Some(head) => record.seq == head.seq + 1 && record.prev == head.hash,
            // A first line starts the chain, or goes on after a file that is kept elsewhere.
            None => record.seq > 1 || (record.seq == 1 && record.prev == ChainHead::START.hash),
        };
        if !follows {
            return Err(self.flaw(self.at, ChainFlaw::Unchained));
        }
        if !self.scrap.is_empty() {
            // The very next record, and by length and hash: otherwise anybody could put bytes
            // between two records and call them a crash.
            if !record.mark.vouches_for(&self.scrap) {
                return Err(self.flaw(self.scrap_at, ChainFlaw::NoRecord));
            }
            self.scrap.clear();
            self.report.mended += 1;
        }
        // Passing the note on the way, another record must not stand in its place.
        if let EndNote::Checked(HeadWitness::Head(noted)) = self.noted
            && noted.seq == record.seq
            && noted.hash != hash
        {
            return Err(self.flaw(self.at, ChainFlaw::Replaced));
        }
        if self
            .announced
            .is_some_and(|head| head.seq == record.seq && head.hash != hash)
        {
            return Err(self.flaw(self.at, ChainFlaw::Replaced));
        }
        if let Some(hashes) = &mut self.hashes {
            hashes.push(hash);
            if let EventMark::Witnessed(published) = record.mark {
                self.witnessed.push(WitnessedHead {
                    record: record.seq,
                    published,
                });
            }
        }
        self.report.resumed += u64::from(record.mark == EventMark::Resumed);
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
