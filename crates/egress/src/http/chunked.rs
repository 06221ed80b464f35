//! Chunked bodies, decoded strictly and without a buffer of their own.

use thiserror::Error;

/// Reads the framing of a chunked body as it passes by.
#[derive(Clone, Debug)]
pub struct ChunkDecoder {
    state: ChunkState,
    /// Bytes of the line being read, bounded.
    line: Vec<u8>,
    trailer_bytes: usize,
}

/// The part of the framing that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    Size,
    Data(u64),
    DataEnd,
    Trailer,
    Done,
}

/// The error of a body that is not chunked as the standard has it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the chunked body is malformed")]
pub struct ChunkError;

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkStep {
    /// So many of the bytes given are framing: skip them.
    Framing(usize),
    /// So many of the bytes given are data.
    Data(usize),
    Done,
}

const LONGEST_CHUNK_LINE: usize = 256;
const LONGEST_TRAILER: usize = 8 * 1024;
/// A terabyte, far below where a sum of sizes could overflow.
const LARGEST_CHUNK: u64 = 1 << 40;

impl Default for ChunkDecoder {
    fn default() -> Self {
        Self {
            state: ChunkState::Size,
            line: Vec::new(),
            trailer_bytes: 0,
        }
    }
}

impl ChunkDecoder {
    pub fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }

    /// Looks at the front of `bytes`, which must not be empty unless the body is done.
    pub fn step(&mut self, bytes: &[u8]) -> Result<ChunkStep, ChunkError> {
        match self.state {
            ChunkState::Done => Ok(ChunkStep::Done),
            ChunkState::Data(left) => {
                let take = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - take as u64;
                self.state = if left == 0 {
                    ChunkState::DataEnd
                } else {
                    ChunkState::Data(left)
                };
                Ok(ChunkStep::Data(take))
            }
            ChunkState::Size | ChunkState::DataEnd | ChunkState::Trailer => self.line_step(bytes),
        }
    }

    fn line_step(&mut self, bytes: &[u8]) -> Result<ChunkStep, ChunkError> {
        let end = bytes.iter().position(|&b| b == b'\n');
        let taken = end.map_or(bytes.len(), |at| at + 1);
        if self.line.len() + taken > LONGEST_CHUNK_LINE {
            return Err(ChunkError);
        }
        self.line.extend_from_slice(&bytes[..taken]);
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            // A bare line feed ends the line for some servers and not for others; between two of
            // those a request could be smuggled.
            let line = line.strip_suffix(b"\r\n").ok_or(ChunkError)?;
            self.finish_line(line)?;
        }
        Ok(ChunkStep::Framing(taken))
    }

    fn finish_line(&mut self, line: &[u8]) -> Result<(), ChunkError> {
        let plain = line.iter().all(|&b| b == b'\t' || (b >= 0x20 && b != 0x7f));
        if !plain {
            return Err(ChunkError);
        }
        self.state = match self.state {
            ChunkState::Size => match size(line)? {
                0 => ChunkState::Trailer,
                size => ChunkState::Data(size),
            },
            ChunkState::DataEnd if line.is_empty() => ChunkState::Size,
            ChunkState::Trailer if line.is_empty() => ChunkState::Done,
            ChunkState::Trailer => {
                self.trailer_bytes += line.len();
                if self.trailer_bytes > LONGEST_TRAILER {
                    return Err(ChunkError);
                }
                ChunkState::Trailer
            }
            ChunkState::DataEnd | ChunkState::Data(_) | ChunkState::Done => return Err(ChunkError),
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
        let (mut decoder, mut data, mut at) = (ChunkDecoder::default(), Vec::new(), 0);
        loop {
            let end = bytes.len().min(at + piece);
            match decoder.step(&bytes[at..end])? {
                ChunkStep::Done => return Ok((data, at)),
                ChunkStep::Framing(n) => at += n,
                ChunkStep::Data(n) => {
                    data.extend_from_slice(&bytes[at..at + n]);
                    at += n;
                }
            }
            if at == bytes.len() && decoder.state != ChunkState::Done {
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
            let (mut decoder, mut at) = (ChunkDecoder::default(), 0);
            while at < bytes.len() {
                match decoder.step(&bytes[at..]) {
                    Ok(ChunkStep::Framing(n) | ChunkStep::Data(n)) => { prop_assert!(n > 0); at += n; }
                    Ok(ChunkStep::Done) | Err(ChunkError) => break,
                }
            }
        }
    }
}
