//! A record verified to its end, on more than one core.
//!
//! Parsing a line, its hash and its seal concern that line alone and take nearly all of the time; only the chain
//! is in order. So blocks of lines go to workers in turn and come back in turn, and one place holds them
//! against each other: the flaw that is found is the first in the file, whoever found it.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::LONGEST_RECORD_LINE;
use crate::chain_check::{ChainCheck, CheckedLine, SealCheck};
use crate::line::{ParsedLine, read_as};
use crate::seal::SealKey;
use crate::walk::WalkError;

/// Lines that one worker reads at once.
const BLOCK: usize = 4 * LONGEST_RECORD_LINE;

/// Blocks that wait for each worker, and that each has done and nobody took.
const WAITING: usize = 2;

/// More cores help little: one place chains what they read.
const MOST_WORKERS: usize = 4;

/// What becomes of a block.
type CheckedBlock = io::Result<Vec<CheckedLine>>;

pub(crate) fn to_the_end(
    lines: impl Read + Send,
    mut check: ChainCheck,
    key: Option<&SealKey>,
) -> Result<ChainCheck, WalkError> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut blocks = LineBlocks::new(lines);
    // A short record is read by the time that threads are there.
    let first = blocks.next();
    if let Some(block) = first {
        take(&mut check, block.map(|block| check_block(&block, key)))?;
    }
    match cores.min(MOST_WORKERS) {
        1 => {
            for block in blocks {
                take(&mut check, block.map(|block| check_block(&block, key)))?;
            }
        }
        workers => in_parallel(blocks, &mut check, key, workers)?,
    }
    check.close()?;
    Ok(check)
}

fn in_parallel(
    mut blocks: LineBlocks<impl Read + Send>,
    check: &mut ChainCheck,
    key: Option<&SealKey>,
    workers: usize,
) -> Result<(), WalkError> {
    let Some(second) = blocks.next() else {
        return Ok(());
    };
    thread::scope(|scope| {
        let (inputs, outputs): (Vec<_>, Vec<_>) = (0..workers)
            .map(|_| {
                // Bounded on both sides: a worker that is ahead waits, and the memory of a record
                // of gigabytes is that of some blocks.
                let (input, waiting) = sync_channel(WAITING);
                let (done, output) = sync_channel(WAITING);
                scope.spawn(move || work(&waiting, &done, key));
                (input, output)
            })
            .unzip();
        scope.spawn(move || {
            let blocks = std::iter::once(second).chain(blocks);
            for (block, input) in blocks.zip(inputs.iter().cycle()) {
                // A flaw was found: nobody wants the rest.
                if input.send(block).is_err() {
                    return;
                }
            }
        });
        // In the same turn as they were handed out. One that has ended has no more, nor has any after it.
        for output in outputs.iter().cycle() {
            // A worker ends when its input does, so nothing is behind this one either.
            let Ok(block) = output.recv() else {
                return Ok(());
            };
            take(check, block)?;
        }
        Ok(())
    })
}

fn work(
    waiting: &Receiver<io::Result<Vec<u8>>>,
    done: &SyncSender<CheckedBlock>,
    key: Option<&SealKey>,
) {
    for block in waiting {
        let checked = block.map(|block| check_block(&block, key));
        if done.send(checked).is_err() {
            return;
        }
    }
}

fn take(check: &mut ChainCheck, block: CheckedBlock) -> Result<(), WalkError> {
    let lines = block.map_err(|source| WalkError::Io {
        path: check.path().to_owned(),
        source,
    })?;
    lines.into_iter().try_for_each(|line| check.take(line))
}

fn check_block(block: &[u8], key: Option<&SealKey>) -> Vec<CheckedLine> {
    let lines = block.split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| check_line(line, key)).collect()
}

fn check_line(line: &[u8], key: Option<&SealKey>) -> CheckedLine {
    if line.len() > LONGEST_RECORD_LINE {
        return CheckedLine::TooLong;
    }
    match read_as(line.strip_suffix(b"\n").unwrap_or(line)) {
        ParsedLine::Forged => CheckedLine::Forged,
        ParsedLine::Scrap => CheckedLine::Scrap(line.to_vec()),
        ParsedLine::Record(link, hash, seal) => CheckedLine::Record {
            link,
            hash,
            seal: SealCheck::new(key, hash, seal),
        },
    }
}

/// Whole lines of a file, many at once; the last may lack its end, and a line that is longer than any record
/// comes in pieces that are too long as well.
struct LineBlocks<R> {
    lines: R,
    /// What was read behind the last whole line.
    rest: Vec<u8>,
    ended: bool,
}

impl<R: Read> LineBlocks<R> {
    fn new(lines: R) -> Self {
        Self {
            lines,
            rest: Vec::new(),
            ended: false,
        }
    }

    fn fill(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut block = std::mem::take(&mut self.rest);
        while !self.ended {
            let searched = block.len();
            let wanted = BLOCK as u64;
            let read = self.lines.by_ref().take(wanted).read_to_end(&mut block)?;
            self.ended = read == 0;
            let line_end = block[searched..].iter().rposition(|byte| *byte == b'\n');
            if let Some(at) = line_end {
                self.rest = block.split_off(searched + at + 1);
                return Ok(Some(block));
            }
            // Whoever looks at it sees that it is too long.
            if block.len() > LONGEST_RECORD_LINE {
                return Ok(Some(block));
            }
        }
        Ok((!block.is_empty()).then_some(block))
    }
}

impl<R: Read> Iterator for LineBlocks<R> {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let filled = self.fill();
        self.ended |= filled.is_err();
        filled.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives out a few bytes at a time, as a slow disk may.
    struct Dripping<'a>(&'a [u8], usize);

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len()).min(self.0.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    #[test]
    fn blocks_are_whole_lines_and_nothing_is_lost() {
        let mut text = Vec::new();
        for number in 0..20_000_usize {
            text.extend_from_slice(format!("{number}{}\n", "x".repeat(number % 97)).as_bytes());
        }
        text.extend_from_slice(b"cut");
        for step in [7, 4096, usize::MAX] {
            let blocks: Vec<_> = LineBlocks::new(Dripping(&text, step))
                .map(Result::unwrap)
                .collect();
            assert!(blocks.len() > 2);
            let (last, whole) = blocks.split_last().unwrap();
            assert!(whole.iter().all(|block| block.ends_with(b"\n")));
            assert!(last.ends_with(b"cut"));
            assert_eq!(blocks.concat(), text);
        }
        assert!(LineBlocks::new(&b""[..]).next().is_none());
    }

    #[test]
    fn a_line_without_end_is_handed_on_in_bounded_pieces() {
        let endless = io::repeat(b'x').take(40 * BLOCK as u64);
        for block in LineBlocks::new(endless) {
            let block = block.unwrap();
            assert!(block.len() <= 2 * BLOCK);
            assert!(matches!(
                check_block(&block, None)[..],
                [CheckedLine::TooLong]
            ));
        }
    }
}
