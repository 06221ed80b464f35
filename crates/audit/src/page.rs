//! The end of the record, read backwards a piece at a time.
//!
//! Nothing is proven here: that takes the whole chain ([`walk`](crate::walk)). Every line that is shown has
//! the hash of its own content all the same.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::line::{ParsedLine, read};
use crate::{AuditRecord, LONGEST_RECORD_LINE};

/// Records that stand together in the file.
#[derive(Clone, Debug, Default)]
pub struct RecordPage {
    /// The latest first.
    pub records: Vec<AuditRecord>,
    /// Lines in between that are no records of ours.
    pub unreadable: usize,
    /// Where the records before these end; nothing where there are none.
    pub before: Option<u64>,
}

/// How much is read at once. The longest line fits several times.
const PIECE: usize = 8 * LONGEST_RECORD_LINE;

/// Reads backwards from `end`, or from the end of the file, until `wanted` has taken `most` records or
/// `most_bytes` were read.
pub fn page_before(
    path: &Path,
    end: Option<u64>,
    most: usize,
    most_bytes: u64,
    mut wanted: impl FnMut(&AuditRecord) -> bool,
) -> io::Result<RecordPage> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(RecordPage::default()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut end = end.unwrap_or(length).min(length);
    let oldest = end.saturating_sub(most_bytes);
    let mut page = RecordPage::default();
    // What begins before the piece that was read last.
    let mut tail = Vec::new();
    while end > oldest && page.records.len() < most {
        let start = end.saturating_sub(PIECE as u64);
        let mut piece = vec![0; usize::try_from(end - start).unwrap_or_default()];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut piece)?;
        piece.append(&mut tail);
        // The first line may begin earlier.
        let whole = match start {
            0 => 0,
            _ => match piece.iter().position(|&byte| byte == b'\n') {
                Some(at) => at + 1,
                None => piece.len(),
            },
        };
        let mut upto = piece.len();
        for line in piece[whole..].split(|&byte| byte == b'\n').rev() {
            let begins = upto - line.len();
            if !line.is_empty() {
                match read(line) {
                    ParsedLine::Record(record, ..) if wanted(&record) => page.records.push(record),
                    ParsedLine::Record(..) => {}
                    ParsedLine::Forged | ParsedLine::Scrap => page.unreadable += 1,
                }
            }
            upto = begins.saturating_sub(1);
            if page.records.len() >= most {
                let at = start + begins as u64;
                page.before = (at > 0).then_some(at);
                return Ok(page);
            }
        }
        end = start;
        tail = piece;
        tail.truncate(whole);
        // Let go, or a file without a line's end would be gathered here piece by piece.
        if tail.len() > LONGEST_RECORD_LINE + PIECE {
            // No line of ours is so long.
            page.unreadable += 1;
            tail.clear();
        }
    }
    let at = end + tail.len() as u64;
    page.before = (end > 0).then_some(at);
    Ok(page)
}

#[cfg(test)]
mod tests {
    use hermetic_types::Timestamp;

    use super::*;
    use crate::{AuditEvent, AuditLog};

    #[test]
    fn every_record_is_met_once_whatever_the_size_of_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let none = page_before(&path, None, 5, 1000, |_| true).unwrap();
        assert!(none.records.is_empty() && none.before.is_none());
        let log = AuditLog::open(&path).unwrap();
        for number in 0..3000 {
            let key = format!("{number}{}", "x".repeat(number % 700));
            log.append(&AuditEvent::Sealed { key }, Timestamp::from_millis(1))
                .unwrap();
        }
        for (most, bytes) in [(7, u64::MAX), (100, 3000), (5000, u64::MAX), (1, 1)] {
            let (mut seen, mut end) = (Vec::new(), None);
            loop {
                let page = page_before(&path, end, most, bytes, |_| true).unwrap();
                assert_eq!(page.unreadable, 0);
                assert!(page.records.len() <= most);
                seen.extend(page.records.iter().map(|record| record.seq));
                end = page.before;
                if end.is_none() {
                    break;
                }
            }
            let first = *seen.first().unwrap();
            let expected: Vec<u64> = (1..=first).rev().collect();
            assert_eq!(seen, expected, "{most} {bytes}");
        }
        let odd = |record: &AuditRecord| record.seq.is_multiple_of(1000);
        let page = page_before(&path, None, 2, u64::MAX, odd).unwrap();
        let seen: Vec<u64> = page.records.iter().map(|record| record.seq).collect();
        assert_eq!(seen, [3000, 2000]);
    }
}
