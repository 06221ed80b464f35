use proptest::prelude::*;

use super::*;

fn prefixed(bytes: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
    out.extend_from_slice(bytes);
    out
}

fn sni(names: &[&str]) -> Vec<u8> {
    let mut list = Vec::new();
    for name in names {
        list.push(0);
        list.extend(prefixed(name.as_bytes()));
    }
    extension(0, &prefixed(&list))
}

fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    let mut out = kind.to_be_bytes().to_vec();
    out.extend(prefixed(data));
    out
}

fn message(extensions: &[u8]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.push(0);
    body.extend(prefixed(&[0x13, 0x01]));
    body.extend([1, 0]);
    body.extend(prefixed(extensions));
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let mut out = vec![1, length[1], length[2], length[3]];
    out.extend(body);
    out
}

fn records(message: &[u8], piece: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for fragment in message.chunks(piece) {
        out.extend([22, 3, 1]);
        out.extend(prefixed(fragment));
    }
    out
}

fn hello(extensions: &[u8]) -> Vec<u8> {
    records(&message(extensions), 4096)
}

fn named(name: &str, bytes: &[u8]) -> Result<ClientHello, ClientHelloError> {
    Ok(ClientHello::Complete {
        server_name: HostName::parse(name).unwrap(),
        length: bytes.len(),
    })
}

#[test]
fn the_name_is_found_among_other_extensions() {
    let mut extensions = extension(43, &[2, 3, 4]);
    extensions.extend(sni(&["Example.com"]));
    extensions.extend(extension(0x0a0a, &[0; 40]));
    let bytes = hello(&extensions);
    assert_eq!(read(&bytes), named("example.com", &bytes));
}

#[test]
fn fragments_are_put_together() {
    let message = message(&sni(&["example.com"]));
    for piece in 2..message.len() {
        let bytes = records(&message, piece);
        assert_eq!(
            read(&bytes),
            named("example.com", &bytes),
            "records of {piece}"
        );
        for end in 0..bytes.len() {
            assert_eq!(
                read(&bytes[..end]),
                Ok(ClientHello::Partial),
                "records of {piece}, {end} bytes"
            );
        }
    }
    assert_eq!(
        read(&records(&message, 1)),
        Err(ClientHelloError::Malformed),
        "one byte a record"
    );
}

#[test]
fn bytes_after_the_hello_are_left_alone() {
    let mut bytes = hello(&sni(&["example.com"]));
    let alone = bytes.clone();
    bytes.extend([20, 3, 3, 0, 1, 1]);
    assert_eq!(read(&bytes), named("example.com", &alone));
}

#[test]
fn anything_but_one_plain_name_is_refused() {
    let double = [sni(&["a.test"]), sni(&["b.test"])].concat();
    for (extensions, error) in [
        (Vec::new(), ClientHelloError::NoServerName),
        (extension(43, &[2, 3, 4]), ClientHelloError::NoServerName),
        (
            [sni(&["a.test"]), extension(0xfe0d, &[0; 40])].concat(),
            ClientHelloError::Encrypted,
        ),
        (sni(&["a.test", "b.test"]), ClientHelloError::SeveralNames),
        (double, ClientHelloError::Malformed),
        (sni(&[""]), ClientHelloError::BadServerName),
        (sni(&["127.0.0.1"]), ClientHelloError::BadServerName),
        (sni(&["::1"]), ClientHelloError::BadServerName),
        (sni(&["a.test."]), ClientHelloError::BadServerName),
        (sni(&["bücher.de"]), ClientHelloError::BadServerName),
        (sni(&["a.test\0b.test"]), ClientHelloError::BadServerName),
        (extension(0, &[]), ClientHelloError::Malformed),
        (extension(0, &[0, 0]), ClientHelloError::Malformed),
        (
            extension(0, &[0, 9, 0, 0, 1, b'a']),
            ClientHelloError::Malformed,
        ),
        (
            extension(0, &[0, 4, 1, 0, 1, b'a']),
            ClientHelloError::Malformed,
        ),
        (
            extension(0, &[0, 4, 0, 0, 1, b'a', 0]),
            ClientHelloError::Malformed,
        ),
    ] {
        assert_eq!(read(&hello(&extensions)), Err(error), "{extensions:?}");
    }
}

#[test]
fn other_protocols_are_refused_at_their_first_byte() {
    for bytes in [
        &b"G"[..],
        b"SSH-2.0",
        b"\x16\x02",
        b"\x80\x2e\x01",
        b"\x17\x03\x03\x00\x05hello",
        b"\x00",
    ] {
        assert_eq!(read(bytes), Err(ClientHelloError::NotTls), "{bytes:?}");
    }
    assert_eq!(
        read(&[22, 3, 1, 0, 4, 2, 0, 0, 0]),
        Err(ClientHelloError::NotClientHello)
    );
    assert_eq!(read(&[22, 3, 1, 0, 0]), Err(ClientHelloError::Malformed));
    assert_eq!(
        read(&[22, 3, 1, 0xff, 0xff]),
        Err(ClientHelloError::Malformed)
    );
    assert_eq!(
        read(&[22, 3, 1, 0, 4, 1, 0xff, 0, 0]),
        Err(ClientHelloError::TooLarge)
    );
}

#[test]
fn a_second_message_in_the_record_is_refused() {
    let mut message = message(&sni(&["example.com"]));
    message.extend([1, 0, 0, 0]);
    assert_eq!(
        read(&records(&message, 4096)),
        Err(ClientHelloError::Malformed)
    );
}

proptest! {
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes);
        let _ = read(&records(&bytes, 100));
        let _ = read(&hello(&bytes));
    }

    #[test]
    fn a_flipped_byte_never_yields_another_name_unnoticed(at in 0usize..100, to: u8) {
        let mut bytes = hello(&sni(&["example.com"]));
        let at = at % bytes.len();
        bytes[at] = to;
        if let Ok(ClientHello::Complete { server_name, .. }) = read(&bytes) {
            let text = server_name.to_string();
            prop_assert!(bytes.windows(text.len()).any(|w| w.eq_ignore_ascii_case(text.as_bytes())));
        }
    }
}
