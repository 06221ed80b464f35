//! SOCKS5 in every odd shape.

use std::io::{Read, Write};

use super::dns::Answer;
use super::namespace::PUBLIC;
use super::stage::Stage;

pub(super) fn shapes(stage: &Stage) {
    stage.dns.tell("world.test", Answer::of(&[PUBLIC]));
    stage.dns.tell("plain.test", Answer::of(&[PUBLIC]));
    stage.dns.tell("lie.test", Answer::of(&["10.1.2.3"]));
    assert_eq!(reply(stage, &named(1, b"plain.test", 22)), Some(0));
    assert_eq!(reply(stage, &named(1, b"PLAIN.test.", 22)), Some(0));
    stage.trap.after(2);

    let v4 = |command| vec![5, command, 0, 1, 20, 20, 20, 20, 1, 187];
    let v6 = [&[5, 1, 0, 4][..], &[0; 15], &[1, 1, 187]].concat();
    for (probe, request, code) in [
        ("an address", v4(1), 8),
        ("an IPv6 address", v6, 8),
        ("bind", named(2, b"plain.test", 22), 7),
        ("udp", named(3, b"plain.test", 22), 7),
        ("no command we know", named(9, b"plain.test", 22), 7),
        ("an address as a name", named(1, b"127.0.0.1", 443), 2),
        ("an octal address as a name", named(1, b"0177.1", 443), 2),
        ("a bracketed address", named(1, b"[::1]", 443), 2),
        ("an empty name", named(1, b"", 443), 2),
        ("a nul", named(1, b"plain.test\0", 22), 2),
        ("bytes that are no text", named(1, b"\xff\xfe.test", 22), 2),
        ("userinfo", named(1, b"a@plain.test", 22), 2),
        ("a port in the name", named(1, b"plain.test:22", 22), 2),
        ("port 0", named(1, b"plain.test", 0), 2),
        ("another port", named(1, b"plain.test", 8443), 2),
        ("a lie", named(1, b"lie.test", 443), 2),
        ("an unknown name", named(1, b"evil.example", 443), 2),
        ("a denied name", named(1, b"denied.test", 443), 2),
        ("255 bytes of name", named(1, &[b'a'; 255], 443), 2),
        ("an unknown kind of address", vec![5, 1, 0, 2, 0, 0], 8),
    ] {
        assert_eq!(reply(stage, &request), Some(code), "{probe}");
        stage.nobody_came(probe);
    }
    for (probe, request) in [
        ("another version", vec![4, 1, 0, 3, 1, b'a', 1, 187]),
        ("a reserved byte", vec![5, 1, 7, 3, 1, b'a', 1, 187]),
        ("a name that is cut", vec![5, 1, 0, 3, 200, b'a']),
        ("nothing", Vec::new()),
    ] {
        assert_eq!(reply(stage, &request), None, "{probe}");
        stage.nobody_came(probe);
    }
    // Only those who come without authentication are spoken to; SOCKS4 knows no names.
    for (greeting, answer) in [
        (&[5, 1, 2][..], &[5, 0xff][..]),
        (&[5, 0], &[5, 0xff]),
        (
            &[4, 1, 1, 187, 20, 20, 20, 20, 0],
            &[0, 0x5b, 0, 0, 0, 0, 0, 0],
        ),
    ] {
        assert_eq!(stage.ask(greeting), answer, "{greeting:?}");
        stage.nobody_came("a greeting");
    }
}

fn named(command: u8, name: &[u8], port: u16) -> Vec<u8> {
    let mut request = vec![5, command, 0, 3, u8::try_from(name.len()).unwrap()];
    request.extend(name);
    request.extend(port.to_be_bytes());
    request
}

/// The code of the answer; nothing where there is none.
fn reply(stage: &Stage, request: &[u8]) -> Option<u8> {
    let mut stream = stage.dial();
    stream.write_all(&[5, 1, 0]).unwrap();
    let mut method = [0; 2];
    stream.read_exact(&mut method).unwrap();
    assert_eq!(method, [5, 0]);
    stream.write_all(request).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = [0; 10];
    stream.read_exact(&mut answer).ok()?;
    Some(answer[1])
}
