//! The frames of an answer: what the shell wrote, and what we have to say beside it.
//!
//! One letter, four bytes of length, the payload. What the shell writes stays in frames of its own, so that nothing
//! inside a sandbox can speak in our name.

use bytes::{BufMut as _, Bytes, BytesMut};

/// What a frame is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminalFrame {
    /// The name under which keys are sent. Always the first.
    Opened,
    Output,
    /// Keeps a connection from being taken for dead, and finds out where it is.
    Pulse,
    /// Why it is over. Always the last.
    Ended,
}

impl TerminalFrame {
    const fn letter(self) -> u8 {
        match self {
            Self::Opened => b'o',
            Self::Output => b'd',
            Self::Pulse => b'p',
            Self::Ended => b'e',
        }
    }

    pub(super) fn written(self, payload: &[u8]) -> Bytes {
        let mut frame = BytesMut::with_capacity(5 + payload.len());
        frame.put_u8(self.letter());
        // A frame of a warden is far smaller.
        frame.put_u32(u32::try_from(payload.len()).unwrap_or(u32::MAX));
        frame.put_slice(payload);
        frame.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_how_long_it_is() {
        let frame = TerminalFrame::Output.written(b"ab");
        assert_eq!(&frame[..], b"d\0\0\0\x02ab");
        assert_eq!(&TerminalFrame::Pulse.written(b"")[..], b"p\0\0\0\0");
    }
}
