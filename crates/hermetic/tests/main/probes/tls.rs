//! What may be said in a tunnel: a hello for its own name, then anything.

use std::io::Write;

use super::dns::Answer;
use super::hello::Hello;
use super::namespace::PUBLIC;
use super::stage::{Stage, heard};

const TARGET: &str = "world.test:443";

pub(super) fn names(stage: &Stage) {
    for name in ["world.test", "other.test"] {
        stage.dns.tell(name, Answer::of(&[PUBLIC]));
    }
    let own = || Hello::naming(&[b"world.test"]);
    let grease = own().with(0x0a0a, &[0]).with(0x7a7a, &[]);
    let ancient = Hello {
        version: [3, 1],
        ..own()
    };
    let fine: &[(&str, Vec<u8>)] = &[
        ("plain", own().bytes()),
        ("upper case", Hello::naming(&[b"WORLD.test"]).bytes()),
        ("grease", grease.bytes()),
        ("tls 1.0", ancient.bytes()),
        ("many records", own().records(3)),
        (
            "early data behind it",
            [own().bytes(), vec![23, 3, 3, 0, 1, 0]].concat(),
        ),
    ];
    for (probe, bytes) in fine {
        let (_, visits) = stage.tunnel(TARGET, bytes);
        assert_eq!(visits.len(), 1, "{probe}");
        assert!(visits[0].is_public(), "{probe}");
    }

    let twice = Hello::naming(&[b"world.test", b"evil.example"]);
    let two_lists = own().with(0, &Hello::naming(&[b"evil.example"]).extensions[0].1);
    let hidden = own().with(0xfe0d, &[0; 64]);
    let nothing = Hello {
        extensions: Vec::new(),
        ..own()
    };
    for (probe, hello) in [
        ("no name", nothing),
        ("an empty name", Hello::naming(&[b""])),
        ("another name", Hello::naming(&[b"evil.example"])),
        ("another allowed name", Hello::naming(&[b"other.test"])),
        ("a name below", Hello::naming(&[b"a.world.test"])),
        ("a name above", Hello::naming(&[b"test"])),
        ("a trailing dot", Hello::naming(&[b"world.test."])),
        ("an address", Hello::naming(&[b"20.20.20.20"])),
        ("an IPv6 address", Hello::naming(&[b"::1"])),
        ("a nul", Hello::naming(&[b"world.test\0.evil.example"])),
        ("a space", Hello::naming(&[b"world.test "])),
        (
            "bytes that are no text",
            Hello::naming(&[b"world\xff.test"]),
        ),
        ("two names", twice),
        ("two lists of names", two_lists),
        ("a hidden hello", hidden),
    ] {
        for bytes in [hello.bytes(), hello.records(7)] {
            let (_, visits) = stage.tunnel(TARGET, &bytes);
            assert!(visits.is_empty(), "{probe}: {visits:?}");
        }
    }
}

pub(super) fn shapes(stage: &Stage) {
    stage.dns.tell("world.test", Answer::of(&[PUBLIC]));
    stage.dns.tell("plain.test", Answer::of(&[PUBLIC]));
    let own = Hello::naming(&[b"world.test"]);
    let whole = own.bytes();
    let mut doubled = own.message();
    doubled.extend(Hello::naming(&[b"evil.example"]).message());
    let doubled = [&[22, 3, 1], &record_length(&doubled)[..], &doubled[..]].concat();
    let mut too_long = whole.clone();
    too_long[7] = 0x7f;
    for (probe, bytes) in [
        ("nothing", Vec::new()),
        (
            "http",
            b"GET / HTTP/1.1\r\nHost: world.test\r\n\r\n".to_vec(),
        ),
        ("http/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("ssh", b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()),
        ("socks", vec![5, 1, 0]),
        (
            "a proxy line",
            b"PROXY TCP4 10.0.0.1 10.0.0.2 1 443\r\n".to_vec(),
        ),
        ("an alert", vec![0x15, 3, 3, 0, 2, 1, 0]),
        ("a record of the wrong make", vec![22, 2, 0, 0, 1, 1]),
        ("an empty record", vec![22, 3, 1, 0, 0]),
        ("a record that is too long", vec![22, 3, 1, 0xff, 0xff]),
        ("a server's hello", vec![22, 3, 3, 0, 4, 2, 0, 0, 0]),
        ("sslv2", vec![0x80, 0x2e, 1, 0, 2, 0, 21, 0, 0, 0, 16]),
        ("a hello that is cut", whole[..whole.len() - 1].to_vec()),
        ("a hello that says it is longer", too_long),
        ("a byte a record", own.records(1)),
        ("two hellos in a record", doubled),
        (
            "dtls",
            vec![22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
        ),
    ] {
        let (_, visits) = stage.tunnel(TARGET, &bytes);
        assert!(visits.is_empty(), "{probe}: {visits:?}");
    }

    // One byte at a time is legal, and takes as long as it takes.
    let mut stream = stage.granted(TARGET);
    stream.set_nodelay(true).unwrap();
    for byte in &whole {
        stream.write_all(&[*byte]).unwrap();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    heard(stream);
    assert_eq!(stage.trap.visits()[0].said, whole);

    // Where a rule says that anything goes, it does, and to that port only.
    let (_, visits) = stage.tunnel("plain.test:22", b"SSH-2.0-x\r\n");
    assert_eq!(visits[0].text(), "SSH-2.0-x\r\n");
    let (_, visits) = stage.tunnel("plain.test:443", b"SSH-2.0-x\r\n");
    assert!(visits.is_empty());
}

fn record_length(bytes: &[u8]) -> [u8; 2] {
    u16::try_from(bytes.len()).unwrap().to_be_bytes()
}
