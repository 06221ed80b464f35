//! Chunked bodies, decoded strictly and without a buffer of their own.

use thiserror::Error;

/// Reads the framing of a chunked body as it passes by.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
    /// Bytes of the line being read, bounded.
    line: Vec<u8>,
    trailer_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size,
    Data(u64),
    DataEnd,
    Trailer,
    Done,
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the chunked body is malformed")]
pub struct ChunkError;

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So many of the bytes given are framing: skip them.
    Framing(usize),
    /// So many of the bytes given are data.
    Data(usize),
    Done,
}

const LONGEST_LINE: usize = 256;
const LONGEST_TRAILER: usize = 8 * 1024;
const LARGEST_CHUNK: u64 = 1 << 40;

impl Default for Decoder {
    fn default() -> Self {
        Self {
            state: State::Size,
            line: Vec::new(),
            trailer_bytes: 0,
        }
    }
}

impl Decoder {
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Looks at the front of `bytes`, which must not be empty unless the body is done.
    pub fn step(&mut self, bytes: &[u8]) -> Result<Step, ChunkError> {
        match self.state {
            State::Done => Ok(Step::Done),
            State::Data(left) => {
                let take = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - take as u64;
                self.state = if left == 0 {
                    State::DataEnd
                } else {
                    State::Data(left)
                };
                Ok(Step::Data(take))
            }
            State::Size | State::DataEnd | State::Trailer => self.line_step(bytes),
        }
    }

    fn line_step(&mut self, bytes: &[u8]) -> Result<Step, ChunkError> {
        let end = bytes.iter().position(|&b| b == b'\n');
        let taken = end.map_or(bytes.len(), |at| at + 1);
        if self.line.len() + taken > LONGEST_LINE {
            return Err(ChunkError);
        }
        self.line.extend_from_slice(&bytes[..taken]);
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            let line = line.strip_suffix(b"\r\n").ok_or(ChunkError)?;
            self.finish_line(line)?;
        }
        Ok(Step::Framing(taken))
    }

    fn finish_line(&mut self, line: &[u8]) -> Result<(), ChunkError> {
        let plain = line.iter().all(|&b| b == b'\t' || (b >= 0x20 && b != 0x7f));
        if !plain {
            return Err(ChunkError);
        }
        self.state = match self.state {
            State::Size => match size(line)? {
                0 => State::Trailer,
                size => State::Data(size),
            },
            State::DataEnd if line.is_empty() => State::Size,
            State::Trailer if line.is_empty() => State::Done,
            State::Trailer => {
                self.trailer_bytes += line.len();
                if self.trailer_bytes > LONGEST_TRAILER {
                    return Err(ChunkError);
                }
                State::Trailer
            }
            State::DataEnd | State::Data(_) | State::Done => return Err(ChunkError),
        };
        Ok(())
    }
}

/// Hexadecimal digits and nothing else. Extensions are refused: no honest client sends them, and
/// servers disagree about where they end.
fn size(line: &[u8]) -> Result<u64, ChunkError> {
    let digits = (1..=16).contains(&line.len()) && line.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(line).map_err(|_| ChunkError)?;
    match u64::from_str_radix(text, 16) {
        Ok(size) if digits && size <= LARGEST_CHUNK => Ok(size),
        _ => Err(ChunkError),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The data and what follows the body, feeding `piece` bytes at a time.
    fn decode(bytes: &[u8], piece: usize) -> Result<(Vec<u8>, usize), ChunkError> {
        let (mut decoder, mut data, mut at) = (Decoder::default(), Vec::new(), 0);
        loop {
            let end = bytes.len().min(at + piece);
            match decoder.step(&bytes[at..end])? {
                Step::Done => return Ok((data, at)),
                Step::Framing(n) => at += n,
                Step::Data(n) => {
                    data.extend_from_slice(&bytes[at..at + n]);
                    at += n;
                }
            }
            if at == bytes.len() && decoder.state != State::Done {
                return Err(ChunkError);
            }
        }
    }

    #[test]
    fn data_comes_out_whatever_the_pieces() {
        let body = b"4\r\nWiki\r\n5\r\npedia\r\n0\r\nX: y\r\n\r\nNEXT";
        for piece in 1..body.len() {
            assert_eq!(
                decode(body, piece),
                Ok((b"Wikipedia".to_vec(), body.len() - 4)),
                "{piece}"
            );
        }
    }

    #[test]
    fn malformed_chunks_are_refused() {
        for body in [
            "4\nWiki\r\n0\r\n\r\n",
            "4\r\nWikiX\r\n0\r\n\r\n",
            "0x4\r\nWiki\r\n0\r\n\r\n",
            "+4\r\nWiki\r\n0\r\n\r\n",
            " 4\r\nWiki\r\n0\r\n\r\n",
            "4 \r\nWiki\r\n0\r\n\r\n",
            "\r\n",
            "g\r\n",
            "4;a=b\r\nWiki\r\n0\r\n\r\n",
            "ffffffffffffffff\r\n",
            "00000000000000004\r\n",
            "4\r\nWiki\n0\r\n\r\n",
            "0\r\n\n",
            "-1\r\n",
        ] {
            assert!(decode(body.as_bytes(), 64).is_err(), "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_and_every_step_moves(bytes in proptest::collection::vec(any::<u8>(), 1..200)) {
            let (mut decoder, mut at) = (Decoder::default(), 0);
            while at < bytes.len() {
                match decoder.step(&bytes[at..]) {
                    Ok(Step::Framing(n) | Step::Data(n)) => { prop_assert!(n > 0); at += n; }
                    Ok(Step::Done) | Err(ChunkError) => break,
                }
            }
        }
    }
}
