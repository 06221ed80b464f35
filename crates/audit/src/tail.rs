//! How the file ends: the last record, and what lies behind it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::LONGEST_RECORD_LINE;
use crate::digest::RecordDigest;
use crate::line::{ChainHead, ParsedLine, read};
use crate::seal::Seal;

#[derive(Debug)]
pub(crate) enum RecordTail {
    /// The chain can go on from here, over the scrap where there is some.
    Whole {
        head: ChainHead,
        /// Of the last record, where it has one.
        seal: Option<Seal>,
        /// Whether there is a record at all.
        begun: bool,
        scrap: Option<TornWrite>,
        /// The last line has no end yet.
        open: bool,
    },
    /// The last lines are no record, and no crash leaves such.
    Broken,
}

/// What a cut write left behind the last record.
#[derive(Debug)]
pub(crate) struct TornWrite {
    pub(crate) bytes: u64,
    pub(crate) sha256: RecordDigest,
}

/// A record that was cut, the record that vouched for it and was cut as well, and the last whole one.
const WINDOW: usize = 4 * LONGEST_RECORD_LINE;

impl RecordTail {
    /// Of a file of that length, under the lock. `before` is where the chain stood when it was begun.
    pub(crate) fn read(file: &File, length: u64, before: ChainHead) -> io::Result<Self> {
        let from = length.saturating_sub(WINDOW as u64);
        let mut window = vec![0; usize::try_from(length - from).unwrap_or(WINDOW)];
        file.read_exact_at(&mut window, from)?;

        let mut end = window.len();
        loop {
            // `end` stands behind a line's end, or at the end of the file.
            let line_end = match window[..end].last() {
                None => break,
                Some(b'\n') => end - 1,
                Some(_) => end,
            };
            let start = window[..line_end]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            // The line begins before the window, so it is longer than any record: no crash leaves
            // that, and to read on could be the whole file.
            if start == 0 && from > 0 {
                return Ok(Self::Broken);
            }
            match read(&window[start..line_end]) {
                ParsedLine::Record(record, hash, seal) => {
                    let head = ChainHead {
                        seq: record.seq,
                        hash,
                    };
                    return Ok(Self::whole(head, seal, true, &window, end));
                }
                // Not skipped like a scrap: a whole line whose hash is wrong was changed by
                // somebody, not cut.
                ParsedLine::Forged => return Ok(Self::Broken),
                ParsedLine::Scrap => end = start,
            }
        }
        Ok(Self::whole(before, None, false, &window, 0))
    }

    fn whole(head: ChainHead, seal: Option<Seal>, begun: bool, window: &[u8], end: usize) -> Self {
        let behind = &window[end..];
        Self::Whole {
            head,
            seal,
            begun,
            scrap: (!behind.is_empty()).then(|| TornWrite::of(behind)),
            open: window.last().is_some_and(|byte| *byte != b'\n'),
        }
    }
}

impl TornWrite {
    /// With the end of line that it will have.
    fn of(bytes: &[u8]) -> Self {
        let mut ended = bytes.to_vec();
        if !bytes.ends_with(b"\n") {
            ended.push(b'\n');
        }
        Self {
            bytes: ended.len() as u64,
            sha256: RecordDigest::of(&ended),
        }
    }
}
