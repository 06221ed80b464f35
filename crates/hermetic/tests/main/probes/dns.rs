//! A name server that says what it likes.

mod server;

use super::namespace::{PUBLIC, PUBLIC_6};
use super::stage::Stage;
pub(crate) use server::{Answer, Liar};

/// Every address that is not public, and some that only look it.
const NOT_PUBLIC: &[&str] = &[
    "0.0.0.0",
    "0.1.2.3",
    "10.1.2.3",
    "100.64.1.2",
    "100.100.100.200",
    "127.0.0.1",
    "127.8.9.1",
    "168.63.129.16",
    "169.254.1.2",
    "169.254.169.254",
    "172.16.1.2",
    "192.0.0.8",
    "192.0.2.1",
    "192.168.1.2",
    "198.18.1.2",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::10.1.2.3",
    "::ffff:127.0.0.1",
    "::ffff:20.20.20.20",
    "64:ff9b::a01:203",
    "64:ff9b:1::a01:203",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:a01:203::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
];

pub(super) fn lies(stage: &Stage) {
    stage
        .dns
        .tell("world.test", Answer::of(&[PUBLIC, PUBLIC_6]));
    assert_eq!(stage.status(get("world.test")), "200");
    assert!(stage.trap.visits().iter().all(|visit| visit.is_public()));

    for (number, address) in NOT_PUBLIC.iter().enumerate() {
        let name = format!("lie{number}.test");
        stage.dns.tell(&name, Answer::of(&[address]));
        assert_eq!(stage.connect(&format!("{name}:443")), "403", "{address}");
        assert_eq!(stage.status(get(&name)), "403", "{address}");
        stage.nobody_came(address);

        // One among good ones, first or last, spoils them all.
        let mixed = format!("mixed{number}.test");
        for answer in [[PUBLIC, address], [address, PUBLIC]] {
            stage.dns.tell(&mixed, Answer::of(&answer));
            assert_eq!(stage.connect(&format!("{mixed}:443")), "403", "{address}");
            stage.nobody_came(address);
        }
    }
}

pub(super) fn rebinding(stage: &Stage) {
    let lines = |first: &[&str], then: &[&str]| Answer::of(first).and_then(Answer::of(then));
    stage
        .dns
        .tell("flip.test", lines(&[PUBLIC], &["127.0.0.1"]));
    assert_eq!(stage.status(get("flip.test")), "200");
    let visits = stage.trap.visits();
    assert!(visits.iter().all(|visit| visit.is_public()), "{visits:?}");
    assert_eq!(visits.len(), 1);
    // The next connection asks again, and the answer is a lie by now.
    assert_eq!(stage.status(get("flip.test")), "403");
    stage.nobody_came("flip.test");

    // In a tunnel the name is looked up before the hello comes, and not after it.
    let tls = lines(&[PUBLIC], &["169.254.169.254"]);
    stage.dns.tell("flip-tls.test", tls);
    let hello = hermetic_egress::client_hello("flip-tls.test");
    let (_, visits) = stage.tunnel("flip-tls.test:443", &hello);
    assert!(visits.iter().all(|visit| visit.is_public()), "{visits:?}");
    assert_eq!(visits[0].said, hello);
}

pub(super) fn shapes(stage: &Stage) {
    let public = || Answer::of(&[PUBLIC]);
    let inside = || Answer::of(&["10.1.2.3"]);
    for (name, answer, status) in [
        ("ttl.test", public().living(0), "200"),
        ("alias.test", public().behind(&["a.test", "b.test"]), "200"),
        ("inner.test", inside().behind(&["a.test", "b.test"]), "403"),
        (
            "foreign.test",
            inside().behind(&["elsewhere.example"]),
            "403",
        ),
        ("other.test", inside().about("somebody.else"), "502"),
        ("cut.test", public().only_by_tcp(), "200"),
        ("cut-in.test", inside().only_by_tcp(), "403"),
        ("many.test", Answer::of(&[PUBLIC; 200]).only_by_tcp(), "200"),
        ("empty.test", Answer::of(&[]), "502"),
        ("none.test", Answer::failing(3), "502"),
        ("broken.test", Answer::failing(2), "502"),
        ("refused.test", Answer::failing(5), "502"),
        ("loop.test", Answer::of(&[]).behind(&["loop.test"]), "502"),
        ("noise.test", Answer::noise(), "502"),
    ] {
        stage.dns.tell(name, answer);
        assert_eq!(stage.status(get(name)), status, "{name}");
        let visits = stage.trap.visits();
        assert_eq!(visits.len(), usize::from(status == "200"), "{name}");
    }
    let mut many: Vec<&str> = vec![PUBLIC; 200];
    many.push("10.1.2.3");
    stage
        .dns
        .tell("needle.test", Answer::of(&many).only_by_tcp());
    assert_eq!(stage.status(get("needle.test")), "403");
}

/// A name whose server never answers costs whoever asked for it, and nobody else.
pub(super) fn silence(stage: &Stage) {
    stage.dns.tell("world.test", Answer::of(&[PUBLIC]));
    stage.dns.tell("silent.test", Answer::silence());
    let waiting: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = stage.dial();
            std::io::Write::write_all(&mut stream, get("silent.test").as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(stage.status(get("world.test")), "200");
    for stream in waiting {
        let answer = super::stage::heard(stream);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 50"), "{answer}");
    }
}

pub(super) fn get(host: &str) -> String {
    format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}
