//! Targets: what is no plain name, and what is the same name in another dress.

use super::dns::{Answer, get};
use super::namespace::PUBLIC;
use super::stage::Stage;

const ODD: &[&str] = &[
    "127.0.0.1:443",
    "20.20.20.20:443",
    "2130706433:443",
    "0177.0.0.1:443",
    "0x7f.0.0.1:443",
    "0x7f000001:443",
    "127.1:443",
    "127.0.0.1.:443",
    "[::1]:443",
    "[2606:4700::20]:443",
    "[fe80::1%25lo]:443",
    "[fe80::1%lo]:443",
    "[::ffff:10.1.2.3]:443",
    "::1:443",
    "１２７.０.０.１:443",
    "127。0。0。1:443",
    "①27.0.0.1:443",
    "world.test",
    "world.test:",
    "world.test:0",
    "world.test:65536",
    "world.test:99999999999",
    "world.test:+443",
    "world.test:0x1bb",
    "world.test:443:443",
    "world.test:443/",
    "world.test:443@evil.example:443",
    "user@world.test:443",
    "user:word@world.test:443",
    "world.test%00.evil.example:443",
    "world.test%2e:443",
    "world%2etest:443",
    "world.test\\.evil.example:443",
    "world..test:443",
    ".world.test:443",
    "world.test..:443",
    "-world.test:443",
    "world-.test:443",
    "*.test:443",
    "test:443",
    "xn--a.test:443",
    "xn--.test:443",
    "\u{200b}.test:443",
    "denied.test:443",
    "DENIED.test.:443",
    "evil.example:443",
    "world.test.evil.example:443",
    "notatest:443",
    "world.test:22",
    "world.test:8443",
];

pub(super) fn odd(stage: &Stage) {
    stage.dns.tell("world.test", Answer::of(&[PUBLIC]));
    for target in ODD {
        let status = stage.connect(target);
        assert!(
            matches!(status.as_str(), "400" | "403"),
            "{target}: {status}"
        );
        let in_the_open = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n");
        if !target.starts_with("world.test") || target.contains(['@', '%', '\\']) {
            let status = stage.status(in_the_open);
            assert!(
                matches!(status.as_str(), "400" | "403"),
                "{target}: {status}"
            );
        }
        stage.nobody_came(target);
    }
    let long = format!("{}.test:443", "a".repeat(64));
    let longer = format!("{}test:443", "a.".repeat(200));
    let longest = format!("{}.test:443", "a".repeat(70_000));
    for (target, status) in [(long, "403"), (longer, "403"), (longest, "431")] {
        assert_eq!(stage.connect(&target), status);
    }
    stage.nobody_came("a long name");
}

pub(super) fn spellings(stage: &Stage) {
    for name in ["world.test", "xn--mnchen-3ya.example"] {
        stage.dns.tell(name, Answer::of(&[PUBLIC]));
    }
    for name in ["world.test", "WORLD.Test", "world.test."] {
        assert_eq!(stage.status(get(name)), "200", "{name}");
        let hello = hermetic_egress::client_hello("world.test");
        let (_, visits) = stage.tunnel(&format!("{name}:443"), &hello);
        assert!(visits.iter().any(|visit| visit.said == hello), "{name}");
    }
    for name in ["xn--mnchen-3ya.example", "XN--MNCHEN-3YA.EXAMPLE"] {
        let hello = hermetic_egress::client_hello("xn--mnchen-3ya.example");
        let (_, visits) = stage.tunnel(&format!("{name}:443"), &hello);
        assert!(visits.iter().any(|visit| visit.said == hello), "{name}");
    }
}
