//! Any bytes as a ClientHello: cut anywhere they are incomplete or refused, never another name.

#![no_main]

use hermetic_egress::parsers::{ClientHello, read_hello};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(ClientHello::Complete {
        server_name,
        length,
    }) = read_hello(bytes)
    else {
        return;
    };
    assert!(length <= bytes.len());
    assert_eq!(
        read_hello(&bytes[..length]),
        Ok(ClientHello::Complete {
            server_name: server_name.clone(),
            length
        })
    );
    for end in 0..length {
        match read_hello(&bytes[..end]) {
            Ok(ClientHello::Complete { .. }) => panic!("complete before its end"),
            Ok(ClientHello::Partial) | Err(_) => {}
        }
    }
});
