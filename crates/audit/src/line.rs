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
use std::io::Write as _;
use std::str::FromStr;

use hermetic_types::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::AuditEvent;
use crate::digest::RecordDigest;
use crate::seal::{Seal, SealKey};

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
pub(crate) enum ParsedLine<R = AuditRecord> {
    Record(R, RecordDigest, Option<Seal>),
    /// A whole line whose content and hash do not belong together.
    Forged,
    /// Not a whole line of ours: what a cut write leaves behind.
    Scrap,
}

/// An event as it will stand in a line, written out before the record is locked.
#[derive(Debug)]
pub(crate) struct WrittenEvent {
    at: Timestamp,
    json: Vec<u8>,
}

const OPENING: &[u8] = b"{\"hash\":\"";
const SEAL: &[u8] = b"\",\"seal\":\"";
const MIDDLE: &[u8] = b"\",\"record\":";
const CLOSING: &[u8] = b"}";

/// What a line has besides its event, and room for the longest number.
const FRAME_BYTES: usize = 320;

impl WrittenEvent {
    pub(crate) fn new(event: &AuditEvent, at: Timestamp) -> Self {
        Self {
            at,
            // Here, before anybody holds a lock: under it only the number, the hashes and the seal
            // are left to do.
            json: serde_json::to_vec(event).expect("plain data of strings and numbers"),
        }
    }

    pub(crate) fn at(&self) -> Timestamp {
        self.at
    }
}

impl ChainHead {
    /// Before the first record.
    pub(crate) const START: Self = Self {
        seq: 0,
        hash: RecordDigest::ZERO,
    };

    /// Adds the line after this one, with its end of line, to `lines`. Tells where the chain stands then.
    pub(crate) fn add_next(self, event: &WrittenEvent, key: &SealKey, lines: &mut Vec<u8>) -> Self {
        let seq = self.seq + 1;
        let mut body = Vec::with_capacity(event.json.len() + FRAME_BYTES);
        write!(
            body,
            "{{\"seq\":{seq},\"at\":{},\"prev\":\"",
            event.at.millis()
        )
        .expect("memory takes any write");
        body.extend_from_slice(&self.hash.hex());
        body.extend_from_slice(b"\",\"event\":");
        body.extend_from_slice(&event.json);
        body.extend_from_slice(CLOSING);
        // Over the bytes as they are written, not over what they mean: whoever checks needs no
        // parser that agrees with ours.
        let hash = RecordDigest::of_record(&body);
        lines.reserve(body.len() + FRAME_BYTES);
        lines.extend_from_slice(OPENING);
        lines.extend_from_slice(&hash.hex());
        lines.extend_from_slice(SEAL);
        lines.extend_from_slice(&key.seal(hash).hex());
        lines.extend_from_slice(MIDDLE);
        lines.extend_from_slice(&body);
        lines.extend_from_slice(CLOSING);
        lines.push(b'\n');
        Self { seq, hash }
    }
}

/// Reads a line without its end.
pub(crate) fn read(line: &[u8]) -> ParsedLine {
    read_as(line)
}

/// The same, looking only for what `R` wants to know of a record.
pub(crate) fn read_as<'a, R: Deserialize<'a>>(line: &'a [u8]) -> ParsedLine<R> {
    let framed = line
        .strip_prefix(OPENING)
        .and_then(|rest| rest.split_at_checked(64))
        .and_then(|(hash, rest)| {
            let (seal, rest) = match rest.strip_prefix(SEAL) {
                Some(sealed) => {
                    let (seal, rest) = sealed.split_at_checked(64)?;
                    std::str::from_utf8(seal).ok()?;
                    (Some(seal), rest)
                }
                None => (None, rest),
            };
            let body = rest.strip_prefix(MIDDLE)?.strip_suffix(CLOSING)?;
            std::str::from_utf8(hash).ok()?;
            Some((hash, seal, body))
        });
    let Some((hash, seal, body)) = framed else {
        return ParsedLine::Scrap;
    };
    // Whole JSON in a whole frame was not cut by anything.
    let Ok(record) = serde_json::from_slice::<R>(body) else {
        let whole = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        return if whole {
            ParsedLine::Forged
        } else {
            ParsedLine::Scrap
        };
    };
    let seal = match seal.map(RecordDigest::from_hex) {
        None => None,
        Some(Some(seal)) => Some(seal),
        Some(None) => return ParsedLine::Forged,
    };
    match RecordDigest::from_hex(hash) {
        Some(hash) if hash == RecordDigest::of_record(body) => {
            ParsedLine::Record(record, hash, seal)
        }
        _ => ParsedLine::Forged,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What earlier versions wrote through the derive of their struct.
    #[derive(Serialize)]
    struct DerivedRecord<'a> {
        seq: u64,
        at: Timestamp,
        prev: RecordDigest,
        event: &'a AuditEvent,
    }

    #[test]
    fn a_line_is_written_as_it_always_was() {
        let folder = tempfile::tempdir().unwrap();
        let key = SealKey::create(&folder.path().join("key")).unwrap();
        let event = AuditEvent::Sealed {
            key: "ä \"quoted\"\n\u{1}".to_owned(),
        };
        let mut head = ChainHead::START;
        for millis in [0, -5, i64::MAX] {
            let at = Timestamp::from_millis(millis);
            let mut line = Vec::new();
            let next = head.add_next(&WrittenEvent::new(&event, at), &key, &mut line);
            let derived = DerivedRecord {
                seq: head.seq + 1,
                at,
                prev: head.hash,
                event: &event,
            };
            let body = serde_json::to_string(&derived).unwrap();
            let hash = RecordDigest::of_record(body.as_bytes());
            let seal = key.seal(hash);
            let expected =
                format!("{{\"hash\":\"{hash}\",\"seal\":\"{seal}\",\"record\":{body}}}\n");
            assert_eq!(String::from_utf8(line).unwrap(), expected);
            assert_eq!(
                next,
                ChainHead {
                    seq: head.seq + 1,
                    hash
                }
            );
            head = next;
        }
    }
}
