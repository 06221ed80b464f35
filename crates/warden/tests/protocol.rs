//! Bytes that nobody of ours has sent.

use bytes::Bytes;
use hermetic_warden::protocol::frame::{FrameCollector, FrameKind, header};
use hermetic_warden::protocol::{
    CommandEnd, MAX_REQUEST, ReadRequest, RunRequest, ShellRequest, WardenFailure, WardenReply,
    WardenRequest, decode, encode,
};
use proptest::prelude::*;

proptest! {
    #[test]
    fn no_bytes_make_the_parsers_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..64)) {
        let mut frames = FrameCollector::default();
        for chunk in chunks {
            let _ = decode::<WardenRequest>(&chunk, "request");
            let _ = decode::<WardenReply>(&chunk, "reply");
            let _ = decode::<CommandEnd>(&chunk, "end");
            let _ = decode::<WardenFailure>(&chunk, "failure");
            frames.push(Bytes::from(chunk));
            while let Ok(Some(frame)) = frames.next_frame() {
                prop_assert!(frame.payload.len() <= frame.kind.bound());
            }
        }
    }

    #[test]
    fn payloads_come_out_as_they_went_in(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 1..8), cut in 1usize..500) {
        let mut wire = Vec::new();
        for payload in &payloads {
            wire.extend_from_slice(&header(FrameKind::Out, payload.len()));
            wire.extend_from_slice(payload);
        }
        let mut frames = FrameCollector::default();
        let mut seen = Vec::new();
        for chunk in wire.chunks(cut) {
            frames.push(Bytes::copy_from_slice(chunk));
            while let Some(frame) = frames.next_frame().unwrap() {
                seen.push(frame.payload.to_vec());
            }
        }
        prop_assert_eq!(seen, payloads);
    }

    #[test]
    fn requests_survive_the_wire(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..9), text in any::<Vec<u8>>()) {
        for request in [WardenRequest::Run(RunRequest::new(words)), WardenRequest::Shell(ShellRequest::new("main", text))] {
            let bytes = encode(&request);
            prop_assert!(bytes.len() < MAX_REQUEST);
            prop_assert_eq!(decode::<WardenRequest>(&bytes, "request").unwrap(), request.clone());
            let longer = [bytes.as_slice(), &[0]].concat();
            prop_assert!(decode::<WardenRequest>(&longer, "request").is_err());
        }
    }
}

#[test]
fn a_length_in_a_structure_is_not_believed() {
    // A reply whose list claims 2^40 entries, and a read whose path claims as many bytes.
    let endless = [0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
    assert!(decode::<WardenReply>(&[&[3], &endless[..]].concat(), "reply").is_err());
    assert!(decode::<ReadRequest>(&[&[0], &endless[..]].concat(), "read").is_err());
}
