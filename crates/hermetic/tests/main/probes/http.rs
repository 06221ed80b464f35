//! Plain HTTP: requests and answers that two programs read differently, upgrades, floods.

use std::io::Write;

use super::dns::{Answer, get};
use super::namespace::PUBLIC;
use super::stage::{Stage, heard};
use super::trap::OK;

const LINE: &str = "POST http://world.test/ HTTP/1.1\r\n";
const HOST: &str = "Host: world.test\r\n";

pub(super) fn smuggling(stage: &Stage) {
    stage.dns.tell("world.test", Answer::of(&[PUBLIC]));
    let hidden = "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let shapes = [
        format!("{LINE}{HOST}Content-Length: 5\r\n{chunked}"),
        format!(
            "{LINE}{HOST}{}",
            chunked.replace("chunked", "chunked\r\nContent-Length: 5")
        ),
        format!("{LINE}{HOST}Content-Length: 0\r\nContent-Length: 60\r\n\r\n"),
        format!("{LINE}{HOST}Content-Length: 0, 60\r\n\r\n"),
        format!("{LINE}{HOST}Content-Length: -1\r\n\r\n"),
        format!("{LINE}{HOST}Content-Length: 0x3c\r\n\r\n"),
        format!("{LINE}{HOST}Content-Length: 99999999999999999999\r\n\r\n"),
        format!("{LINE}{HOST}Content-Length:\r\n\r\n"),
        format!("{LINE}{HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        format!("{LINE}{HOST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        format!("{LINE}{HOST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        format!("{LINE}{HOST}Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
        format!("{LINE}{HOST}Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n"),
        format!("{LINE}{HOST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
        format!("{LINE}{HOST}Transfer-Encoding: x\r\n{chunked}"),
        format!("{LINE}{HOST}X: a\r\n {chunked}"),
        format!("{LINE}{HOST}X: a\r\n\tb\r\n\r\n"),
        format!("{LINE}{HOST}X: a\nY: b\r\n\r\n"),
        format!("{LINE}{HOST}X: a\rY: b\r\n\r\n"),
        format!("{LINE}{HOST}X: a\0b\r\n\r\n"),
        format!("{LINE}{HOST}: empty\r\n\r\n"),
        format!("{LINE}{HOST}No colon\r\n\r\n"),
        format!("{LINE}{HOST}{HOST}\r\n"),
        format!("{LINE}\r\n"),
        format!("{LINE}Host: evil.example\r\n\r\n"),
        format!("{LINE}Host: world.test:443\r\n\r\n"),
        format!("{LINE}Host: world.test@evil.example\r\n\r\n"),
        format!("{LINE}Host: world.test, evil.example\r\n\r\n"),
        format!(" {LINE}{HOST}\r\n"),
        format!("{}{HOST}\r\n", LINE.replace("HTTP/1.1", "HTTP/2.0")),
        format!("{}{HOST}\r\n", LINE.replace("HTTP/1.1", "HTTP/1.1 x")),
        format!("{}{HOST}\r\n", LINE.replace(" HTTP/1.1", "")),
        format!("{}{HOST}\r\n", LINE.replace("http://world.test/", "/")),
        format!("{}{HOST}\r\n", LINE.replace("http://", "https://")),
        format!("{}{HOST}\r\n", LINE.replace("http://", "ftp://")),
        format!("{}{HOST}\r\n", LINE.replace("http://", "gopher://")),
        format!("{}{HOST}\r\n", LINE.replace("http://", "file://")),
        format!(
            "{}{HOST}\r\n",
            LINE.replace("world.test", "evil.example\\@world.test")
        ),
        format!(
            "{}{HOST}\r\n",
            LINE.replace("world.test/", "world.test#@evil.example/")
        ),
        format!("{}{HOST}\r\n", LINE.replace("POST", "TRACE")),
        format!("{}{HOST}\r\n", LINE.replace("POST", "P(ST")),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "OPTIONS * HTTP/1.1\r\nHost: world.test\r\n\r\n".to_owned(),
        "CONNECT world.test:443 HTTP/1.1\r\nContent-Length: 9\r\n\r\n".to_owned(),
        format!("CONNECT world.test:443 HTTP/1.1\r\n{chunked}"),
        "CONNECT world.test:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n".to_owned(),
        "CONNECT http://world.test/ HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT /path HTTP/1.1\r\n\r\n".to_owned(),
        "CONNECT * HTTP/1.1\r\n\r\n".to_owned(),
    ];
    for shape in shapes {
        let status = stage.status(format!("{shape}{hidden}"));
        assert!(
            matches!(status.as_str(), "400" | "403" | "405"),
            "{shape:?}: {status}"
        );
        stage.nobody_came(&shape);
    }

    // What follows a request is a request of its own, and judged as one.
    for before in [
        get("world.test").replace("Connection: close\r\n", ""),
        format!("{LINE}{HOST}Content-Length: 3\r\n\r\nabc"),
        format!("{LINE}{HOST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        format!("{LINE}{HOST}Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n"),
    ] {
        let answer = stage.ask(format!("{before}{hidden}"));
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.contains("HTTP/1.1 403 "), "{before:?}: {answer}");
        let visits = stage.trap.visits();
        assert!(!visits[0].text().contains("evil"), "{before:?}: {visits:?}");
    }
    for body in [
        "3;x=\"\r\n\"\r\nabc\r\n0\r\n\r\n",
        "3 \r\nabc\r\n0\r\n\r\n",
        "0003;\nabc",
    ] {
        stage.ask(format!(
            "{LINE}{HOST}Transfer-Encoding: chunked\r\n\r\n{body}{hidden}"
        ));
        let visits = stage.trap.after(1);
        assert!(
            visits.iter().all(|visit| !visit.text().contains("evil")),
            "{visits:?}"
        );
    }
    assert_eq!(
        stage.status(format!("{LINE}X: {}\r\n\r\n", "a".repeat(1 << 20))),
        "431"
    );
    assert_eq!(
        stage.status(format!("{LINE}{}\r\n", "X: y\r\n".repeat(5000))),
        "400"
    );
    stage.nobody_came("a head that is too large");
}

pub(super) fn upgrades(stage: &Stage) {
    stage.dns.tell("world.test", Answer::of(&[PUBLIC]));
    let ask = |fields: &str| {
        let answer = stage.ask(format!(
            "GET http://world.test/ HTTP/1.1\r\n{HOST}{fields}\r\n"
        ));
        let said: Vec<String> = stage
            .trap
            .visits()
            .iter()
            .map(|visit| visit.text())
            .collect();
        (
            String::from_utf8_lossy(&answer).into_owned(),
            said.concat().to_lowercase(),
        )
    };
    for other in ["h2c", "TLS/1.0", "websocket, h2c", "hello"] {
        let close = "Connection: Upgrade, HTTP2-Settings, close\r\nHTTP2-Settings: AAMA\r\n";
        let (_, said) = ask(&format!("{close}Upgrade: {other}\r\n"));
        assert!(
            !said.contains("upgrade") && !said.contains("http2-settings"),
            "{other}: {said}"
        );
    }
    // What the next hop is told is ours to say, whatever the connection header names.
    let (_, said) =
        ask("Connection: close, Host, X-Mine\r\nX-Mine: a\r\nProxy-Authorization: b\r\n");
    assert!(
        said.contains("host: world.test") && !said.contains("x-mine") && !said.contains("proxy-")
    );

    let switch =
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    stage.trap.answers(switch);
    let (answer, _) = ask("Connection: close\r\n");
    assert!(answer.starts_with("HTTP/1.1 502 "), "unasked: {answer}");
    let (answer, said) =
        ask("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AA==\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 101 ") && said.contains("upgrade: websocket"),
        "{answer}"
    );
    stage.trap.answers(
        &String::from_utf8_lossy(switch)
            .replace("websocket", "h2c")
            .into_bytes(),
    );
    let (answer, _) =
        ask("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AA==\r\n");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    stage.trap.answers(OK);
}

pub(super) fn answers(stage: &Stage) {
    stage.dns.tell("world.test", Answer::of(&[PUBLIC]));
    let flood = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(10_000);
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n X: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\0\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "nothing like HTTP\r\n\r\n",
    ] {
        stage.trap.answers(answer.as_bytes());
        assert_eq!(stage.status(get("world.test")), "502", "{answer:?}");
    }
    // More than a few answers before the answer are no answer.
    stage.trap.answers(flood.as_bytes());
    let answer = stage.ask(get("world.test"));
    let interim = String::from_utf8_lossy(&answer)
        .matches("HTTP/1.1 103 ")
        .count();
    assert!(interim < 100, "{interim}");
    stage.trap.answers(OK);
    assert_eq!(stage.status(get("world.test")), "200");
}

pub(super) fn floods(stage: &Stage) {
    stage.dns.tell("world.test", Answer::of(&[PUBLIC]));
    let mut slow: Vec<_> = (0..200).map(|_| stage.dial()).collect();
    for (number, stream) in slow.iter_mut().enumerate() {
        let part = [
            &b"G"[..],
            b"CONNECT world.test:443 HTTP/1.1\r\nX",
            &[5, 200],
            b"POST http://w",
        ];
        stream.write_all(part[number % part.len()]).unwrap();
    }
    assert_eq!(stage.status(get("world.test")), "200");
    // Beyond the bound whoever waited longest without a whole request goes, and an honest one is served.
    slow.extend((0..100).map(|_| stage.dial()));
    assert_eq!(stage.status(get("world.test")), "200");
    let first = heard(slow.swap_remove(0));
    assert!(!first.starts_with(b"HTTP/1.1 200 "), "it was never asked");
    drop(slow);
    assert_eq!(stage.status(get("world.test")), "200");
}
