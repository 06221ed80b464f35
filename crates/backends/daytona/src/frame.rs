//! What goes over the terminal.
//!
//! A terminal has manners of its own: a shell greets, echoes and prompts before our program runs, so
//! its first bytes are a [`MAGIC`] that is looked for. The toolbox hangs up on a reader who lags
//! 256 messages behind, so our program sends no more than [`CREDIT`] pieces that were not
//! acknowledged. And neither end notices that the other is gone, so both say that they are there.

use std::time::Duration;

use thiserror::Error;

/// The program runs, and the warden is there.
pub(crate) const MAGIC: [u8; 8] = *b"\0hermtty";
/// The program runs, and there is no warden.
pub(crate) const NOBODY: [u8; 8] = *b"\0hermnot";

/// The toolbox takes messages of 64 KiB.
pub(crate) const LONGEST_FRAME: usize = 32 << 10;
/// What the program sends at once. The terminal may cut it into four messages.
#[cfg(feature = "inside")]
pub(crate) const PIECE: usize = 4096 - HEADER;
/// Pieces under way: four messages each, and the toolbox hangs up at 256.
pub(crate) const CREDIT: u16 = 48;

#[cfg(feature = "host")]
/// A quarter of [`LONGEST_SILENCE`], so that three may be late.
pub(crate) const BEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Whoever says nothing for so long is gone.
pub(crate) const LONGEST_SILENCE: Duration = Duration::from_secs(60);

const HEADER: usize = 3;
const DATA: u8 = b'd';
const ACK: u8 = b'a';
const BEATING: u8 = b'b';

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkFrame {
    /// At most [`LONGEST_FRAME`] bytes.
    Data(Vec<u8>),
    /// So many pieces have arrived.
    Ack(u16),
    Beat,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("the other end of the terminal speaks nonsense")]
pub(crate) struct MalformedFrame;

impl LinkFrame {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Data(payload) => data(payload),
            Self::Ack(count) => encode(ACK, &count.to_be_bytes()),
            Self::Beat => encode(BEATING, &[]),
        }
    }
}

/// As [`TerminalFrame::Data`], from bytes that somebody else holds.
pub(crate) fn data(payload: &[u8]) -> Vec<u8> {
    encode(DATA, &payload[..payload.len().min(LONGEST_FRAME)])
}

fn encode(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("no payload is longer than LONGEST");
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.push(kind);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Frames out of bytes that come in pieces of any size. Holds one frame at most, beyond the piece.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    held: Vec<u8>,
}

impl FrameReader {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Nothing where the next frame is not whole yet.
    pub(crate) fn next(&mut self) -> Result<Option<LinkFrame>, MalformedFrame> {
        let Some((&kind, rest)) = self.held.split_first() else {
            return Ok(None);
        };
        let Some((length, rest)) = rest.split_first_chunk::<2>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes(*length));
        let fits = match kind {
            DATA => length <= LONGEST_FRAME,
            ACK => length == 2,
            BEATING => length == 0,
            _ => false,
        };
        // Judged by the head alone: no more than one frame's length is ever waited for.
        if !fits {
            return Err(MalformedFrame);
        }
        let Some(payload) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = match (kind, payload) {
            (ACK, [high, low]) => LinkFrame::Ack(u16::from_be_bytes([*high, *low])),
            (DATA, payload) => LinkFrame::Data(payload.to_vec()),
            _ => LinkFrame::Beat,
        };
        self.held.drain(..HEADER + length);
        Ok(Some(frame))
    }
}

#[cfg(all(test, feature = "host"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame() -> impl Strategy<Value = LinkFrame> {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..2000).prop_map(LinkFrame::Data),
            any::<u16>().prop_map(LinkFrame::Ack),
            Just(LinkFrame::Beat),
        ]
    }

    fn drain(frames: &mut FrameReader) -> Vec<LinkFrame> {
        std::iter::from_fn(|| frames.next().ok().flatten()).collect()
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_however_they_are_cut(
            sent in proptest::collection::vec(frame(), 0..20),
            size in 1_usize..700,
        ) {
            let bytes: Vec<u8> = sent.iter().flat_map(LinkFrame::to_bytes).collect();
            let mut frames = FrameReader::default();
            let mut seen = Vec::new();
            for piece in bytes.chunks(size) {
                frames.push(piece);
                seen.extend(drain(&mut frames));
            }
            prop_assert_eq!(seen, sent);
        }

        #[test]
        fn hostile_bytes_are_refused_or_wait_within_bounds(
            bytes in proptest::collection::vec(any::<u8>(), 0..9_000),
        ) {
            let mut frames = FrameReader::default();
            for piece in bytes.chunks(512) {
                frames.push(piece);
                loop {
                    match frames.next() {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(MalformedFrame) => return Ok(()),
                    }
                }
                prop_assert!(frames.held.len() <= HEADER + LONGEST_FRAME);
            }
        }
    }

    #[test]
    fn a_frame_that_claims_too_much_is_no_frame() {
        for bytes in [
            &[DATA, 0xff, 0xff][..],
            &[ACK, 0, 3],
            &[BEATING, 0, 1],
            b"$ exec",
        ] {
            let mut frames = FrameReader::default();
            frames.push(bytes);
            assert_eq!(frames.next(), Err(MalformedFrame), "{bytes:?}");
        }
    }
}
