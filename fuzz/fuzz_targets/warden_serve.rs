//! A hostile gateway: what the warden parses before it does anything.

#![no_main]

use bytes::Bytes;
use hermetic_warden::protocol::frame::FrameCollector;
use hermetic_warden::protocol::{WardenRequest, WindowSize, decode, encode, hello};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(first) = bytes.first_chunk::<{ hello::LENGTH }>() {
        let _ = hello::check(*first);
    }
    let size = usize::from(bytes.first().copied().unwrap_or(1)).max(1);
    let mut frames = FrameCollector::default();
    for chunk in bytes.chunks(size) {
        frames.push(Bytes::copy_from_slice(chunk));
        while let Ok(Some(frame)) = frames.next_frame() {
            assert!(frame.payload.len() <= frame.kind.bound());
            let _ = decode::<i32>(&frame.payload, "signal");
            let _ = decode::<WindowSize>(&frame.payload, "size");
            if let Ok(request) = decode::<WardenRequest>(&frame.payload, "request") {
                let again = decode::<WardenRequest>(&encode(&request), "request");
                assert_eq!(again, Ok(request));
            }
        }
    }
});
