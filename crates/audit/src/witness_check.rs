//! Chains held against what other chains say of them.
//!
//! Only hashes and numbers are compared, no times: a gateway's clock may be wrong, and a wrong clock is no
//! tampering.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use thiserror::Error;

use crate::digest::RecordDigest;
use crate::line::ChainHead;
use crate::seal::SealKey;
use crate::walk::ChainReport;
use crate::witness::{ChainName, PublishedHead, WitnessedHead};

/// A chain that holds by itself, with what others are checked by.
#[derive(Debug)]
pub struct VerifiedChain {
    pub path: PathBuf,
    pub report: ChainReport,
    pub(crate) witnessed: Vec<WitnessedHead>,
    /// Of its records, from the first in the file on.
    pub(crate) hashes: Vec<RecordDigest>,
    pub(crate) key: Option<SealKey>,
}

/// What became of everything that these chains say of each other.
#[derive(Debug, Default, Serialize)]
pub struct WitnessReport {
    /// Heads that are where somebody else saw them.
    pub proven: u64,
    pub flaws: Vec<WitnessFlaw>,
    pub doubts: Vec<WitnessDoubt>,
}

/// A chain is not what somebody else saw of it.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
#[serde(tag = "flaw", rename_all = "snake_case")]
pub enum WitnessFlaw {
    #[error(
        "{} was cut off: it ends at record {ends}, and record {record} of {} saw it at {witnessed}",
        path.display(), by.display()
    )]
    Cut {
        path: PathBuf,
        ends: u64,
        /// The first that is missing by that word.
        witnessed: u64,
        by: PathBuf,
        record: u64,
    },
    #[error(
        "{} was written anew from record {witnessed} on or before: record {record} of {} saw another one there",
        path.display(), by.display()
    )]
    Rewritten {
        path: PathBuf,
        witnessed: u64,
        by: PathBuf,
        record: u64,
    },
}

/// What these chains leave open.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
#[serde(tag = "doubt", rename_all = "snake_case")]
pub enum WitnessDoubt {
    #[error(
        "{heads} heads of chain {chain}, which is not among these files (or its key is not beside it); the last is \
         {last}, seen by record {record} of {}",
        by.display()
    )]
    Missing {
        chain: ChainName,
        heads: u64,
        last: ChainHead,
        by: PathBuf,
        record: u64,
    },
    #[error(
        "{heads} heads of chain {chain} that were not its own word: somebody wrote them into the store (record \
         {record} of {} is the first)",
        by.display()
    )]
    Forged {
        chain: ChainName,
        heads: u64,
        by: PathBuf,
        record: u64,
    },
    #[error(
        "{heads} heads of chain {chain} from before the first record that is here; verify the files that they were moved to"
    )]
    Earlier { chain: ChainName, heads: u64 },
}

/// How a chain stands to a head that somebody saw.
enum Standing {
    Holds,
    Earlier,
    Ends(u64),
    Another,
}

/// Holds each of these chains against what the others say of it.
pub fn check_witnesses(chains: &[VerifiedChain]) -> WitnessReport {
    let mut named: BTreeMap<ChainName, Vec<&VerifiedChain>> = BTreeMap::new();
    for chain in chains {
        if let Some(key) = &chain.key {
            named.entry(ChainName::of(key)).or_default().push(chain);
        }
    }
    let mut tally = WitnessTally::default();
    for by in chains {
        for said in &by.witnessed {
            let of = named.get(&said.published.chain);
            tally.take(by, said, of.map_or(&[], Vec::as_slice));
        }
    }
    tally.into_report()
}

/// One entry for each chain and kind, however many heads say the same.
#[derive(Default)]
struct WitnessTally {
    proven: u64,
    flaws: BTreeMap<PathBuf, WitnessFlaw>,
    missing: BTreeMap<ChainName, WitnessDoubt>,
    forged: BTreeMap<ChainName, WitnessDoubt>,
    earlier: BTreeMap<ChainName, u64>,
}

impl WitnessTally {
    fn take(&mut self, by: &VerifiedChain, said: &WitnessedHead, of: &[&VerifiedChain]) {
        let published = &said.published;
        let chain = published.chain;
        let Some(first) = of.first() else {
            return self.note_missing(by, said);
        };
        // All of one name have one key.
        let is_own_word = first
            .key
            .as_ref()
            .is_some_and(|key| key.seal_published(published.head) == published.seal);
        if !is_own_word {
            return self.note_forged(by, said);
        }
        // Two homes may have one key, copied from one to the other: then either may be the one that was seen.
        let mut flaw = None;
        for candidate in of {
            match candidate.standing(published.head) {
                Standing::Holds => return self.proven += 1,
                Standing::Earlier => return *self.earlier.entry(chain).or_default() += 1,
                Standing::Ends(ends) => {
                    flaw = flaw.or(Some(WitnessFlaw::Cut {
                        path: candidate.path.clone(),
                        ends,
                        witnessed: published.head.seq,
                        by: by.path.clone(),
                        record: said.record,
                    }));
                }
                Standing::Another => {
                    flaw = flaw.or(Some(WitnessFlaw::Rewritten {
                        path: candidate.path.clone(),
                        witnessed: published.head.seq,
                        by: by.path.clone(),
                        record: said.record,
                    }));
                }
            }
        }
        if let Some(flaw) = flaw {
            self.note_flaw(flaw);
        }
    }

    /// The earliest place counts: from there on nothing of that chain is what it was.
    fn note_flaw(&mut self, flaw: WitnessFlaw) {
        let (path, at) = flaw.place();
        match self.flaws.get(path) {
            Some(known) if known.place().1 <= at => {}
            _ => {
                self.flaws.insert(path.clone(), flaw);
            }
        }
    }

    fn note_missing(&mut self, by: &VerifiedChain, said: &WitnessedHead) {
        let known = self.missing.remove(&said.published.chain);
        let (before, latest) = match known {
            Some(WitnessDoubt::Missing {
                heads,
                last,
                by,
                record,
                ..
            }) => (heads, Some((last, by, record))),
            _ => (0, None),
        };
        let here = (said.published.head, by.path.clone(), said.record);
        let (last, by, record) = match latest {
            Some(latest) if latest.0.seq >= here.0.seq => latest,
            _ => here,
        };
        let chain = said.published.chain;
        let doubt = WitnessDoubt::Missing {
            chain,
            heads: before + 1,
            last,
            by,
            record,
        };
        self.missing.insert(chain, doubt);
    }

    fn note_forged(&mut self, by: &VerifiedChain, said: &WitnessedHead) {
        let chain = said.published.chain;
        let doubt = self
            .forged
            .entry(chain)
            .or_insert_with(|| WitnessDoubt::Forged {
                chain,
                heads: 0,
                by: by.path.clone(),
                record: said.record,
            });
        if let WitnessDoubt::Forged { heads, .. } = doubt {
            *heads += 1;
        }
    }

    fn into_report(self) -> WitnessReport {
        let earlier = self.earlier.into_iter();
        let earlier = earlier.map(|(chain, heads)| WitnessDoubt::Earlier { chain, heads });
        WitnessReport {
            proven: self.proven,
            flaws: self.flaws.into_values().collect(),
            doubts: self
                .forged
                .into_values()
                .chain(self.missing.into_values())
                .chain(earlier)
                .collect(),
        }
    }
}

impl WitnessFlaw {
    fn place(&self) -> (&PathBuf, u64) {
        match self {
            Self::Cut { path, ends, .. } => (path, *ends + 1),
            Self::Rewritten {
                path, witnessed, ..
            } => (path, *witnessed),
        }
    }
}

impl VerifiedChain {
    /// No chain, but what stands in rows somewhere: each is a head that a gateway told others of its own.
    pub fn of_rows(place: PathBuf, rows: Vec<PublishedHead>) -> Self {
        let witnessed = (1..)
            .zip(rows)
            .map(|(record, published)| WitnessedHead { record, published });
        Self {
            path: place,
            report: ChainReport::default(),
            witnessed: witnessed.collect(),
            hashes: Vec::new(),
            key: None,
        }
    }

    /// Of which chain this is, where its key is at hand.
    pub fn name(&self) -> Option<ChainName> {
        self.key.as_ref().map(ChainName::of)
    }

    fn standing(&self, head: ChainHead) -> Standing {
        let Some(first) = self.report.first else {
            return Standing::Ends(0);
        };
        let Some(at) = head.seq.checked_sub(first) else {
            return Standing::Earlier;
        };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        match self.hashes.get(at) {
            Some(hash) if *hash == head.hash => Standing::Holds,
            Some(_) => Standing::Another,
            None => Standing::Ends(first + self.hashes.len() as u64 - 1),
        }
    }
}
