//! Any bytes as a request, a response and a chunked body.

#![no_main]

use hermetic_egress::parsers::{ChunkDecoder, ChunkStep, EndSearch, RequestHead, ResponseHead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = EndSearch::default().go_on(bytes);
    let mut search = EndSearch::default();
    let piecewise = (0..=bytes.len()).find_map(|end| search.go_on(&bytes[..end]));
    assert_eq!(whole, piecewise);

    if let Ok(head) = RequestHead::parse(bytes) {
        assert_eq!(
            whole,
            Some(bytes.len()),
            "a head ends at its first empty line"
        );
        assert!(head.fields.iter().all(|(name, value)| {
            !name.is_empty() && !value.iter().any(|b| b"\r\n\0".contains(b))
        }));
    }
    let _ = ResponseHead::parse(bytes);

    let (mut decoder, mut at) = (ChunkDecoder::default(), 0);
    while at < bytes.len() {
        match decoder.step(&bytes[at..]) {
            Ok(ChunkStep::Framing(length) | ChunkStep::Data(length)) => {
                assert!(length > 0 && at + length <= bytes.len());
                at += length;
            }
            Ok(ChunkStep::Done) | Err(_) => break,
        }
    }
});
