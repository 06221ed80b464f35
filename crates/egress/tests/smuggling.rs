//! Shapes that two servers read differently. None may reach an origin.

use crate::lab::origin::Origin;
use crate::lab::{Lab, local};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn no_smuggling_shape_reaches_the_origin() {
    let (origin, heads) = Origin::answering(OK).await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let target = format!("origin.test:{}", origin.at.port());
    let line = format!("POST http://{target}/ HTTP/1.1\r\n");
    let host = format!("Host: {target}\r\n");
    let start = format!("{line}{host}");
    for (name, request) in [
        (
            "both lengths",
            format!("{start}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ),
        (
            "two lengths",
            format!("{start}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
        ),
        (
            "differing lengths",
            format!("{start}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
        ),
        (
            "listed lengths",
            format!("{start}Content-Length: 3, 3\r\n\r\nabc"),
        ),
        (
            "signed length",
            format!("{start}Content-Length: +3\r\n\r\nabc"),
        ),
        (
            "obscured chunked",
            format!("{start}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        ),
        (
            "double chunked",
            format!(
                "{start}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
        ),
        (
            "chunked, identity",
            format!("{start}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        ),
        (
            "chunked in 1.0",
            format!(
                "POST http://{target}/ HTTP/1.0\r\n{host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
        ),
        ("folded line", format!("{start}X: a\r\n b\r\n\r\n")),
        (
            "folded chunked",
            format!("{start}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
        ),
        (
            "space before colon",
            format!("{start}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
        ),
        ("bare line feeds", format!("{start}X: a\n\r\n")),
        ("bare line feed end", format!("{start}\n")),
        ("bare carriage return", format!("{start}X: a\rY: b\r\n\r\n")),
        ("nul", format!("{start}X: a\0b\r\n\r\n")),
        ("nul in a name", format!("{start}X\0: a\r\n\r\n")),
        ("no host", format!("{line}\r\n")),
        ("two hosts", format!("{start}{host}\r\n")),
        ("another host", format!("{line}Host: evil.test\r\n\r\n")),
        ("another port", format!("{line}Host: origin.test:1\r\n\r\n")),
        (
            "host with userinfo",
            format!("{line}Host: a@{target}\r\n\r\n"),
        ),
        (
            "host list",
            format!("{line}Host: {target}, evil.test\r\n\r\n"),
        ),
        (
            "tab in the line",
            format!("POST\thttp://{target}/ HTTP/1.1\r\n{host}\r\n"),
        ),
        (
            "two spaces",
            format!("POST  http://{target}/ HTTP/1.1\r\n{host}\r\n"),
        ),
        (
            "unknown version",
            format!("POST http://{target}/ HTTP/1.9\r\n{host}\r\n"),
        ),
        (
            "http/2 preface",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        ),
        (
            "fragment",
            format!("GET http://{target}/#x HTTP/1.1\r\n{host}\r\n"),
        ),
        (
            "userinfo",
            format!("GET http://u:p@{target}/ HTTP/1.1\r\n{host}\r\n"),
        ),
        (
            "https in the open",
            format!("GET https://{target}/ HTTP/1.1\r\n{host}\r\n"),
        ),
    ] {
        let answer = lab.ask(&request).await;
        let refused = answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 403 ");
        assert!(refused, "{name}: {answer:?}");
        assert_eq!(*heads.lock().unwrap(), [""; 0], "{name} reached the origin");
    }
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn a_bad_chunk_never_completes_a_request() {
    let (origin, heads) = Origin::answering(OK).await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let target = format!("origin.test:{}", origin.at.port());
    for body in [
        "zz\r\nabc\r\n0\r\n\r\n",
        "3;ext=1\r\nabc\r\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "-1\r\n",
        "3\r\nabcX\r\n0\r\n\r\n",
    ] {
        let request = format!(
            "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: chunked\r\n\r\n{body}GET /smuggled HTTP/1.1\r\n\r\n"
        );
        lab.ask(&request).await;
        assert!(
            !heads
                .lock()
                .unwrap()
                .iter()
                .any(|head| head.contains("smuggled")),
            "{body:?}"
        );
    }
}

#[tokio::test]
async fn what_follows_a_body_is_a_request_of_its_own() {
    let (origin, heads) = Origin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let target = format!("origin.test:{}", origin.at.port());
    let request = format!(
        "GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\nGET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    );
    let answer = lab.ask(&request).await;
    assert!(answer.contains("HTTP/1.1 403 "), "{answer}");
    assert_eq!(heads.lock().unwrap().len(), 1);
}

/// Bytes that begin like something we speak and go on like nothing at all.
fn hostile() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    use proptest::prelude::*;
    let start = prop_oneof![
        Just(b"".to_vec()),
        Just(vec![5]),
        Just(vec![5, 1, 0, 5, 1, 0]),
        Just(b"CONNECT ".to_vec()),
        Just(b"CONNECT open.test:9 HTTP/1.1\r\n\r\n\x16\x03\x01".to_vec()),
        Just(b"GET http://open.test/ HTTP/1.1\r\nHost: open.test\r\n".to_vec()),
        Just(b"POST http://".to_vec()),
    ];
    (start, proptest::collection::vec(any::<u8>(), 0..300)).prop_map(|(mut start, rest)| {
        start.extend(rest);
        start
    })
}

#[test]
fn no_bytes_make_it_panic_hang_or_dial() {
    use proptest::test_runner::{Config, TestRunner};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let mut runner = TestRunner::new(Config {
        cases: 400,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&hostile(), |bytes| {
            runtime.block_on(async {
                // Without I/O in the runtime a dial would panic, and the lab tells.
                let lab = Lab::allowing(&["open.test:9 in 127.0.0.0/8"]);
                let mut stream = lab.dial();
                stream.write_all(&bytes).await.unwrap();
                stream.shutdown().await.unwrap();
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).await.unwrap();
                lab.finished().await;
                assert_eq!(lab.conversation.account().connections(), 0);
            });
            Ok(())
        })
        .unwrap();
}
