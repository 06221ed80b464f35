//! What a gateway tells others of its chain, and what they write down of it.
//!
//! A chain that was cut or written anew by somebody who has its key and may write its note looks whole by
//! itself. Gateways that share a store tell each other where theirs stand, and each writes what it heard into its
//! own: whoever cuts one has to cut all.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::line::ChainHead;
use crate::seal::{Seal, SealKey};

/// The name of a chain's key, by which its chain is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainName(u64);

#[derive(Debug, Error, PartialEq, Eq)]
#[error("no name of a chain; expected 16 hex digits")]
pub struct InvalidChainName;

/// Where a chain stands, by the word of whoever has its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedHead {
    pub chain: ChainName,
    pub head: ChainHead,
    /// Whoever writes the rows of the store can write a head there, and not this.
    pub seal: Seal,
}

/// What a record of one chain says of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WitnessedHead {
    /// The number of the record that says so.
    pub record: u64,
    pub published: PublishedHead,
}

impl ChainName {
    pub(crate) fn of(key: &SealKey) -> Self {
        key.name()
            .parse()
            .expect("a key's name is sixteen hex digits")
    }
}

impl FromStr for ChainName {
    type Err = InvalidChainName;

    fn from_str(text: &str) -> Result<Self, InvalidChainName> {
        let is_name = text.len() == 16
            && text
                .bytes()
                .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        match u64::from_str_radix(text, 16) {
            Ok(name) if is_name => Ok(Self(name)),
            _ => Err(InvalidChainName),
        }
    }
}

impl fmt::Display for ChainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for ChainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ChainName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
