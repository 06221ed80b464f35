//! Takes a secret out of what a websocket brings back.
//!
//! Frames cut a text wherever they like, so it is searched across them: what frames it is passed over
//! and stays as it is. What cannot be searched ends the connection: compression was not asked for, and
//! bytes that are no frames are no websocket.

use thiserror::Error;

use super::CredentialRedactor;

/// One per connection, for what comes from the origin.
pub(crate) struct FrameRedactor {
    /// Across the frames of all messages.
    data: CredentialRedactor,
    /// For the small frames between them, each by itself.
    control: CredentialRedactor,
    /// The head of a frame, as far as it has come.
    head: Vec<u8>,
    /// How many bytes of the frame are still to come.
    left: u64,
    /// The payload of a control frame, which is short.
    small: Option<Vec<u8>>,
}

/// The reason why a websocket cannot be searched for the credential.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum UnsearchableFrames {
    #[error("the websocket sends compressed frames, which cannot be searched for the credential")]
    Compressed,
    #[error("the websocket sends frames that the protocol does not know")]
    Unknown,
    #[error("the websocket sends masked frames, which only a client may")]
    Masked,
}

impl FrameRedactor {
    pub(crate) fn new(redactor: &CredentialRedactor) -> Self {
        Self {
            data: redactor.fresh(),
            control: redactor.fresh(),
            head: Vec::new(),
            left: 0,
            small: None,
        }
    }

    /// What may be passed on after these bytes have come in.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<u8>, UnsearchableFrames> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let count = usize::try_from(self.left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                let (payload, rest) = bytes.split_at(count);
                bytes = rest;
                self.left -= count as u64;
                self.take(payload);
                continue;
            }
            self.head.push(bytes[0]);
            bytes = &bytes[1..];
            if let Some(frame) = FrameHeader::parse(&self.head)? {
                let head = std::mem::take(&mut self.head);
                self.data.look_past(&head);
                self.left = frame.length;
                self.small = frame.control.then(Vec::new);
                self.take(&[]);
            }
        }
        Ok(self.data.pass_on())
    }

    pub(crate) fn finish(&mut self) -> Vec<u8> {
        if let Some(rest) = self.small.take() {
            self.take_control(&rest);
        }
        let head = std::mem::take(&mut self.head);
        self.data.look_past(&head);
        self.data.finish()
    }

    fn take(&mut self, payload: &[u8]) {
        match &mut self.small {
            None => self.data.look_at(payload),
            Some(small) => {
                small.extend_from_slice(payload);
                if self.left == 0 {
                    let whole = std::mem::take(small);
                    self.small = None;
                    self.take_control(&whole);
                }
            }
        }
    }

    fn take_control(&mut self, payload: &[u8]) {
        // Each by itself: what stands in a ping is no part of the text around it.
        let mut control = self.control.fresh();
        let mut masked = control.push(payload);
        masked.extend(control.finish());
        self.data.look_past(&masked);
    }
}

/// The header of one websocket frame.
struct FrameHeader {
    control: bool,
    length: u64,
}

impl FrameHeader {
    /// `None` as long as the head is not whole.
    fn parse(head: &[u8]) -> Result<Option<Self>, UnsearchableFrames> {
        let [first, rest @ ..] = head else {
            return Ok(None);
        };
        if first & 0x70 != 0 {
            return Err(UnsearchableFrames::Compressed);
        }
        let control = first & 0x08 != 0;
        if !matches!(first & 0x0f, 0..=2 | 8..=10) {
            return Err(UnsearchableFrames::Unknown);
        }
        let [second, rest @ ..] = rest else {
            return Ok(None);
        };
        if second & 0x80 != 0 {
            return Err(UnsearchableFrames::Masked);
        }
        let length = match (second & 0x7f, rest) {
            (126 | 127, _) if control => return Err(UnsearchableFrames::Unknown),
            (126, [a, b]) => u64::from(u16::from_be_bytes([*a, *b])),
            (127, [a, b, c, d, e, f, g, h]) => u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
            (126 | 127, _) => return Ok(None),
            (length, _) => u64::from(length),
        };
        if length >> 63 == 1 {
            return Err(UnsearchableFrames::Unknown);
        }
        Ok(Some(Self { control, length }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::credential::spellings::SecretSpellings;

    const SECRET: &str = "ghp_s3cr3tWithEnoughLetters";

    fn frames() -> FrameRedactor {
        FrameRedactor::new(&CredentialRedactor::new([Arc::new(SecretSpellings::of(
            &[SECRET],
        ))]))
    }

    fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![opcode];
        match u8::try_from(payload.len()) {
            Ok(length) if length < 126 => frame.push(length),
            _ => {
                frame.push(126);
                frame.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
            }
        }
        frame.extend_from_slice(payload);
        frame
    }

    fn through(bytes: &[u8], size: usize) -> Vec<u8> {
        let mut frames = frames();
        let mut out = Vec::new();
        for piece in bytes.chunks(size) {
            out.extend(frames.push(piece).unwrap());
        }
        out.extend(frames.finish());
        out
    }

    #[test]
    fn a_secret_over_any_two_frames_is_overwritten_and_the_frames_stay() {
        for cut in 0..SECRET.len() {
            let (one, two) = SECRET.as_bytes().split_at(cut);
            for (first, second) in [(0x01, 0x80), (0x81, 0x81), (0x82, 0x81)] {
                let sent = [
                    frame(first, &[b"a ", one].concat()),
                    frame(0x89, b"ping"),
                    frame(second, &[two, b" b"].concat()),
                ]
                .concat();
                for size in [1, 2, 5, sent.len()] {
                    let out = through(&sent, size);
                    assert_eq!(out.len(), sent.len());
                    let letters: Vec<u8> =
                        out.iter().copied().filter(u8::is_ascii_graphic).collect();
                    let seen = String::from_utf8(letters).unwrap();
                    assert!(
                        !seen.contains("s3cr3t") && !seen.contains("EnoughL"),
                        "{cut} {size}: {seen}"
                    );
                    // Headers and what stands around it are as they were sent.
                    assert!(out.starts_with(&sent[..4]), "{cut} {size}");
                    assert!(out.ends_with(b" b"), "{cut} {size}");
                }
            }
        }
    }

    #[test]
    fn a_control_frame_does_not_carry_it() {
        let sent = [frame(0x89, SECRET.as_bytes()), frame(0x88, b"\x03\xe8bye")].concat();
        let out = through(&sent, 3);
        assert_eq!(out.len(), sent.len());
        assert!(!String::from_utf8_lossy(&out).contains("s3cr3t"));
    }

    #[test]
    fn frames_without_text_are_not_held_without_end() {
        let mut frames = frames();
        let mut sent = frame(0x01, &SECRET.as_bytes()[..12]);
        let mut out = frames.push(&sent).unwrap();
        for between in [frame(0x89, b"ping"), frame(0x00, b"")] {
            let many = between.repeat(4096);
            for _ in 0..32 {
                out.extend(frames.push(&many).unwrap());
                sent.extend(&many);
                assert!(sent.len() - out.len() <= (128 << 10));
            }
        }
        out.extend(frames.finish());
        assert_eq!(out.len(), sent.len());
        // What frames the text is as it was sent.
        assert_eq!(out[14..], sent[14..]);
    }

    #[test]
    fn a_frame_that_holds_no_part_of_it_is_passed_on_at_once() {
        let mut frames = frames();
        for text in [&b"hello"[..], b"{\"type\":\"g\"}", &[b'x'; 400]] {
            let sent = frame(0x81, text);
            assert_eq!(frames.push(&sent).unwrap(), sent);
        }
    }

    #[test]
    fn what_cannot_be_searched_ends_the_connection() {
        for (bytes, why) in [
            (&[0xc1_u8, 0x05][..], UnsearchableFrames::Compressed),
            (&[0x83, 0x00], UnsearchableFrames::Unknown),
            (&[0x81, 0x85], UnsearchableFrames::Masked),
            (&[0x89, 126], UnsearchableFrames::Unknown),
            (
                &[0x81, 127, 0xff, 0, 0, 0, 0, 0, 0, 0],
                UnsearchableFrames::Unknown,
            ),
        ] {
            assert_eq!(frames().push(bytes), Err(why));
        }
    }
}
