//! One line of the file: a record and its hash.
//!
//! ```text
//! {"hash":"<64 hex>","seal":"<64 hex>","record":{"seq":1,"at":<ms>,"prev":"<64 hex>","event":{…}}}
//! ```
//!
//! The hash is over the record's own bytes, which hold the hash of the line before. The seal is over the
//! hash, by a key ([`crate::seal`]); lines of earlier versions have none. The frame has one
//! spelling only, so that it can be taken apart without asking what else JSON would allow.

use std::fmt;
use std::str::FromStr;

use hermetic_types::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::AuditEvent;
use crate::seal::{Seal, SealKey};

/// A SHA-256, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RecordDigest([u8; 32]);

/// Where a chain stands: the number of its last record and that record's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ChainHead {
    pub seq: u64,
    pub hash: RecordDigest,
}

/// One record, as it was read.
#[derive(Clone, Debug, Deserialize)]
pub struct AuditRecord {
    pub seq: u64,
    pub at: Timestamp,
    pub prev: RecordDigest,
    /// As written: what a later version adds is shown as well.
    pub event: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{text:?} is no head; expected a number, a colon and 64 hex digits")]
pub struct InvalidHead {
    text: String,
}

/// What a line turned out to be.
#[derive(Debug)]
pub(crate) enum ParsedLine {
    Record(AuditRecord, RecordDigest, Option<Seal>),
    /// A whole line whose content and hash do not belong together.
    Forged,
    /// Not a whole line of ours: what a cut write leaves behind.
    Scrap,
}

#[derive(Serialize)]
struct RecordLine<'a> {
    seq: u64,
    at: Timestamp,
    prev: RecordDigest,
    event: &'a AuditEvent,
}

const OPENING: &[u8] = b"{\"hash\":\"";
const SEAL: &[u8] = b"\",\"seal\":\"";
const MIDDLE: &[u8] = b"\",\"record\":";
const CLOSING: &[u8] = b"}";

impl ChainHead {
    /// Before the first record.
    pub(crate) const START: Self = Self {
        seq: 0,
        hash: RecordDigest([0; 32]),
    };

    /// The line after this one, with its end of line, and where the chain stands then.
    pub(crate) fn next(self, at: Timestamp, event: &AuditEvent, key: &SealKey) -> (Vec<u8>, Self) {
        let written = RecordLine {
            seq: self.seq + 1,
            at,
            prev: self.hash,
            event,
        };
        let body = serde_json::to_vec(&written).expect("plain data of strings and numbers");
        let hash = RecordDigest::of_record(&body);
        let mut line = Vec::with_capacity(body.len() + 200);
        line.extend_from_slice(OPENING);
        line.extend_from_slice(hash.to_string().as_bytes());
        line.extend_from_slice(SEAL);
        line.extend_from_slice(key.seal(hash).to_string().as_bytes());
        line.extend_from_slice(MIDDLE);
        line.extend_from_slice(&body);
        line.extend_from_slice(CLOSING);
        line.push(b'\n');
        let head = Self {
            seq: written.seq,
            hash,
        };
        (line, head)
    }
}

/// Reads a line without its end.
pub(crate) fn read(line: &[u8]) -> ParsedLine {
    let framed = line
        .strip_prefix(OPENING)
        .and_then(|rest| rest.split_at_checked(64))
        .and_then(|(hash, rest)| {
            let (seal, rest) = match rest.strip_prefix(SEAL) {
                Some(sealed) => {
                    let (seal, rest) = sealed.split_at_checked(64)?;
                    (Some(std::str::from_utf8(seal).ok()?), rest)
                }
                None => (None, rest),
            };
            let body = rest.strip_prefix(MIDDLE)?.strip_suffix(CLOSING)?;
            Some((std::str::from_utf8(hash).ok()?, seal, body))
        });
    let Some((hash, seal, body)) = framed else {
        return ParsedLine::Scrap;
    };
    // Whole JSON in a whole frame was not cut by anything.
    let Ok(record) = serde_json::from_slice::<AuditRecord>(body) else {
        let whole = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        return if whole {
            ParsedLine::Forged
        } else {
            ParsedLine::Scrap
        };
    };
    let seal = match seal.map(str::parse) {
        None => None,
        Some(Ok(seal)) => Some(seal),
        Some(Err(_)) => return ParsedLine::Forged,
    };
    match hash.parse() {
        Ok(hash) if hash == RecordDigest::of_record(body) => ParsedLine::Record(record, hash, seal),
        _ => ParsedLine::Forged,
    }
}

impl RecordDigest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn of_record(body: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"hermetic audit 1\n");
        hash.update(body);
        Self(hash.finalize().into())
    }
}

impl fmt::Display for RecordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RecordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RecordDigest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "expected 64 lower-case hex digits";
        let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() != 64 || !text.bytes().all(lower) {
            return Err(wrong);
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for RecordDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RecordDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for ChainHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl FromStr for ChainHead {
    type Err = InvalidHead;

    fn from_str(text: &str) -> Result<Self, InvalidHead> {
        let head = text.split_once(':').and_then(|(seq, hash)| {
            Some(Self {
                seq: seq.parse().ok()?,
                hash: hash.parse().ok()?,
            })
        });
        head.ok_or_else(|| InvalidHead {
            text: text.chars().take(100).collect(),
        })
    }
}
