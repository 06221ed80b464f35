//! One byte of kind, four of length (big endian), then the payload.
//!
//! [`FrameCollector`] is the parser of both sides: bytes go in as they come, frames come out, and nothing
//! larger than the bound of its kind is ever collected.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

use super::{MAX_DATA, MAX_REPLY, MAX_REQUEST};

pub const HEADER: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// Gateway to warden, first on a stream: what is asked.
    Request = 1,
    /// The answer of calls that have a single one.
    Reply = 2,
    /// The call ends with a [`WardenFailure`](super::WardenFailure).
    Failed = 3,

    /// Bytes for the command's stdin.
    Stdin = 10,
    StdinEnd = 11,
    /// A signal number, `i32`.
    Signal = 12,
    /// A new [`WindowSize`](super::WindowSize).
    Resize = 13,

    /// The command's process id, `u32`.
    Started = 20,
    Out = 21,
    Err = 22,
    /// So many bytes of stdin were taken, `u32`; as many more may be sent.
    StdinTaken = 23,
    /// So many bytes of output were not kept, `u64`; they belong here.
    Skipped = 24,
    Ended = 25,

    /// A file's bytes.
    Data = 30,
    DataEnd = 31,

    /// Warden to gateway, first on a stream it opened: the listener, `u32`. Raw bytes follow.
    Accepted = 40,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WardenFrame {
    pub kind: FrameKind,
    pub payload: Bytes,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    #[error("unknown frame kind {0}")]
    UnknownKind(u8),
    #[error("a {kind:?} frame of {length} bytes is over its bound of {bound}")]
    TooLong {
        kind: FrameKind,
        length: usize,
        bound: usize,
    },
}

impl FrameKind {
    pub fn bound(self) -> usize {
        match self {
            Self::Request => MAX_REQUEST,
            Self::Reply => MAX_REPLY,
            Self::Stdin | Self::Out | Self::Err | Self::Data => MAX_DATA,
            Self::Failed | Self::Ended => 64 << 10,
            Self::StdinEnd | Self::DataEnd => 0,
            Self::Signal
            | Self::Resize
            | Self::Started
            | Self::StdinTaken
            | Self::Skipped
            | Self::Accepted => 16,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Request,
            2 => Self::Reply,
            3 => Self::Failed,
            10 => Self::Stdin,
            11 => Self::StdinEnd,
            12 => Self::Signal,
            13 => Self::Resize,
            20 => Self::Started,
            21 => Self::Out,
            22 => Self::Err,
            23 => Self::StdinTaken,
            24 => Self::Skipped,
            25 => Self::Ended,
            30 => Self::Data,
            31 => Self::DataEnd,
            40 => Self::Accepted,
            _ => return None,
        })
    }
}

/// The header of a frame whose payload is `length` bytes.
pub fn header(kind: FrameKind, length: usize) -> [u8; HEADER] {
    debug_assert!(length <= kind.bound(), "we keep our own bounds");
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [kind as u8, a, b, c, d]
}

/// Collects bytes until they are frames.
#[derive(Debug, Default)]
pub struct FrameCollector {
    chunks: VecDeque<Bytes>,
    length: usize,
}

impl FrameCollector {
    pub fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.length += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    /// The next whole frame. After an error the stream has no meaning any more.
    pub fn next_frame(&mut self) -> Result<Option<WardenFrame>, FrameError> {
        let Some((kind, length)) = self.peek_header()? else {
            return Ok(None);
        };
        if self.length < HEADER + length {
            return Ok(None);
        }
        self.take(HEADER);
        Ok(Some(WardenFrame {
            kind,
            payload: self.take(length),
        }))
    }

    /// What came after the last frame that was taken, for streams that go on as raw bytes.
    pub fn into_rest(mut self) -> Bytes {
        let length = self.length;
        self.take(length)
    }

    fn peek_header(&self) -> Result<Option<(FrameKind, usize)>, FrameError> {
        if self.length < HEADER {
            return Ok(None);
        }
        let mut bytes = [0; HEADER];
        let all = self.chunks.iter().flat_map(|chunk| chunk.iter());
        for (slot, byte) in bytes.iter_mut().zip(all) {
            *slot = *byte;
        }
        let [kind, length @ ..] = bytes;
        let kind = FrameKind::from_byte(kind).ok_or(FrameError::UnknownKind(kind))?;
        let length = u32::from_be_bytes(length) as usize;
        // Judged by the header alone, before a byte of the payload is waited for.
        if length > kind.bound() {
            return Err(FrameError::TooLong {
                kind,
                length,
                bound: kind.bound(),
            });
        }
        Ok(Some((kind, length)))
    }

    /// The next `length` bytes, which are there; without a copy when one chunk holds them all.
    fn take(&mut self, length: usize) -> Bytes {
        self.length -= length;
        let mut gathered = BytesMut::new();
        let mut missing = length;
        while missing > 0 {
            let Some(front) = self.chunks.front_mut() else {
                break;
            };
            if front.len() > missing {
                if gathered.is_empty() {
                    return front.split_to(missing);
                }
                gathered.extend_from_slice(&front[..missing]);
                front.advance(missing);
                break;
            }
            missing -= front.len();
            let whole = self.chunks.pop_front().unwrap_or_default();
            if missing == 0 && gathered.is_empty() {
                return whole;
            }
            gathered.extend_from_slice(&whole);
        }
        gathered.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(kind: FrameKind, payload: &[u8]) -> Vec<u8> {
        let mut bytes = header(kind, payload.len()).to_vec();
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn frames_come_out_whole_however_the_bytes_were_cut() {
        let mut wire = framed(FrameKind::Out, b"hello");
        wire.extend(framed(FrameKind::StdinEnd, b""));
        wire.extend(framed(FrameKind::Err, &[7; 3000]));
        for size in 1..wire.len() {
            let mut frames = FrameCollector::default();
            let mut seen = Vec::new();
            for chunk in wire.chunks(size) {
                frames.push(Bytes::copy_from_slice(chunk));
                while let Some(frame) = frames.next_frame().unwrap() {
                    seen.push((frame.kind, frame.payload.len()));
                }
            }
            assert_eq!(
                seen,
                [
                    (FrameKind::Out, 5),
                    (FrameKind::StdinEnd, 0),
                    (FrameKind::Err, 3000)
                ]
            );
        }
    }

    #[test]
    fn a_length_over_the_bound_is_refused_before_anything_is_collected() {
        let mut frames = FrameCollector::default();
        frames.push(Bytes::from_static(&[21, 0xff, 0xff, 0xff, 0xff]));
        assert!(matches!(
            frames.next_frame(),
            Err(FrameError::TooLong {
                kind: FrameKind::Out,
                ..
            })
        ));
    }
}
