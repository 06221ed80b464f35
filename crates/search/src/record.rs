//! What is found, as bytes on a pipe: four of length, big endian, then postcard.

use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SearchRecord {
    Row(MatchRow),
    File {
        path: Vec<u8>,
    },
    Count {
        path: Vec<u8>,
        count: u64,
    },
    /// The last one.
    End {
        /// Results that were seen, those that were left out included.
        total: u64,
        /// There may be more.
        more: bool,
        /// Files that could not be read.
        unreadable: u64,
    },
    /// The question makes no sense.
    Wrong {
        text: String,
    },
}

/// A line that matches, or one near it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchRow {
    pub path: Vec<u8>,
    pub line: u64,
    pub matches: bool,
    /// The beginning of the line, if it is long.
    pub text: Vec<u8>,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("what the search said makes no sense")]
pub struct MalformedRecord;

/// A path and a line fit into this many times over.
const LONGEST_RECORD: usize = 64 << 10;

impl SearchRecord {
    pub fn encode(&self) -> Vec<u8> {
        // Writing postcard to a `Vec` has no way to fail for such types.
        let body = postcard::to_stdvec(self).unwrap_or_default();
        let mut bytes = u32::try_from(body.len())
            .unwrap_or(u32::MAX)
            .to_be_bytes()
            .to_vec();
        bytes.extend(body);
        bytes
    }
}

/// Reads records from bytes as they come, and keeps no more than one.
#[derive(Debug, Default)]
pub struct RecordParser(Vec<u8>);

impl RecordParser {
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next whole one, if it is there.
    pub fn take(&mut self) -> Result<Option<SearchRecord>, MalformedRecord> {
        let Some((head, rest)) = self.0.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        // Judged before the record is waited for: a length that was made up would have us collect
        // for ever.
        if length > LONGEST_RECORD {
            return Err(MalformedRecord);
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let record = match postcard::take_from_bytes(body) {
            Ok((record, [])) => record,
            _ => return Err(MalformedRecord),
        };
        self.0.drain(..4 + length);
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_any_cutting() {
        let all = [
            SearchRecord::File {
                path: b"a\xff\n".to_vec(),
            },
            SearchRecord::Row(MatchRow {
                path: b"b".to_vec(),
                line: 7,
                matches: true,
                text: vec![0, 1, 2],
            }),
            SearchRecord::End {
                total: 2,
                more: false,
                unreadable: 1,
            },
        ];
        let bytes: Vec<u8> = all.iter().flat_map(SearchRecord::encode).collect();
        for size in 1..=bytes.len() {
            let (mut records, mut found) = (RecordParser::default(), Vec::new());
            for piece in bytes.chunks(size) {
                records.push(piece);
                while let Some(record) = records.take().unwrap() {
                    found.push(record);
                }
            }
            assert_eq!(found, all, "{size}");
        }
    }

    #[test]
    fn rubbish_is_noticed() {
        for rubbish in [&[0xff; 8][..], &[0, 0, 0, 1, 99], &[0, 0, 0, 2, 1, 200]] {
            let mut records = RecordParser::default();
            records.push(rubbish);
            assert_eq!(records.take(), Err(MalformedRecord), "{rubbish:?}");
        }
    }
}
