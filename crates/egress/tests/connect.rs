use hermetic_egress::EgressDecision;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::lab::origin::Origin;
use crate::lab::tls::{self, Identity};
use crate::lab::{Lab, local, read_all, read_head};

async fn echo(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..read]).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

#[tokio::test]
async fn a_tunnel_to_an_allowed_host_is_end_to_end() {
    let identity = Identity::of("origin.test");
    let origin = identity.serve(echo).await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);

    let tunnel = lab
        .tunnel(&format!("origin.test:{}", origin.at.port()))
        .await;
    let mut stream = tls::connect(tunnel, "origin.test", &identity.certificate)
        .await
        .unwrap();
    stream.write_all(b"hello").await.unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"hello");
    stream.shutdown().await.unwrap();
    read_all(&mut stream).await;
    drop(stream);

    assert_eq!(
        lab.resolver.asked(),
        ["origin.test"],
        "exactly one resolution"
    );
    let entries = lab.finished().await;
    assert_eq!(entries.len(), 2);
    assert_eq!(
        (entries[0].host.as_str(), &entries[0].verdict),
        ("origin.test", &EgressDecision::Opened)
    );
    assert_eq!(entries[0].address, Some(origin.at));
    assert_eq!(entries[0].rule, local("origin.test", origin.at));
    assert_eq!(entries[1].verdict, EgressDecision::Closed { fault: None });
    assert!(entries[1].bytes_up > 5 && entries[1].bytes_down > 5);
}

/// Sends bytes into a granted tunnel; nothing of them may reach the origin.
async fn ends_before_anything_leaves(bytes: &[u8]) -> String {
    let origin = Origin::echo().await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let mut tunnel = lab
        .tunnel(&format!("origin.test:{}", origin.at.port()))
        .await;
    tunnel.write_all(bytes).await.unwrap();
    tunnel.shutdown().await.unwrap();
    read_all(&mut tunnel).await;
    let entries = lab.finished().await;
    assert_eq!(origin.connections(), 0, "the origin was dialled");
    match &entries[..] {
        [entry] => match &entry.verdict {
            EgressDecision::Refused { reason } => reason.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// A ClientHello as a real client sends it.
fn client_hello(name: Option<&str>) -> Vec<u8> {
    use rustls::pki_types::ServerName;
    let roots = rustls::RootCertStore::empty();
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    // A literal address goes out without SNI.
    let name = ServerName::try_from(name.unwrap_or("127.0.0.1").to_owned()).unwrap();
    let mut connection = rustls::ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn another_name_in_the_hello_ends_the_tunnel() {
    let reason = ends_before_anything_leaves(&client_hello(Some("evil.test"))).await;
    assert!(
        reason.contains("asks for evil.test, the tunnel for origin.test"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_hello_without_a_name_ends_the_tunnel() {
    let reason = ends_before_anything_leaves(&client_hello(None)).await;
    assert!(reason.contains("names no server"), "{reason}");
}

#[tokio::test]
async fn bytes_that_are_not_tls_end_the_tunnel() {
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: origin.test\r\n\r\n"[..],
        b"SSH-2.0-x\r\n",
        b"\x00\x01",
        b"EHLO x\r\n",
    ] {
        let reason = ends_before_anything_leaves(bytes).await;
        assert!(reason.contains("not TLS"), "{reason}");
    }
}

#[tokio::test]
async fn a_hello_cut_short_ends_the_tunnel() {
    let hello = client_hello(Some("origin.test"));
    let reason = ends_before_anything_leaves(&hello[..hello.len() - 1]).await;
    assert!(
        reason.contains("before its ClientHello was complete"),
        "{reason}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_is_not_waited_for() {
    let lab = Lab::allowing(&["origin.test:9 in 127.0.0.0/8"]);
    let mut tunnel = lab.tunnel("origin.test:9").await;
    assert_eq!(
        read_all(&mut tunnel).await.as_bytes().first(),
        Some(&21),
        "a TLS alert"
    );
}

#[tokio::test]
async fn a_hello_in_small_pieces_passes() {
    let origin = Origin::echo().await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let mut tunnel = lab
        .tunnel(&format!("origin.test:{}", origin.at.port()))
        .await;
    let hello = client_hello(Some("origin.test"));
    for byte in &hello {
        tunnel.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut echoed = vec![0; hello.len()];
    tunnel.read_exact(&mut echoed).await.unwrap();
    assert_eq!(echoed, hello, "the hello arrives as it was sent");
}

#[tokio::test]
async fn a_plain_tcp_rule_lets_the_server_speak_first() {
    let origin = Origin::start(|mut stream| async move {
        let _ = stream.write_all(b"SSH-2.0-origin\r\n").await;
        let mut buffer = [0; 16];
        let _ = stream.read(&mut buffer).await;
    })
    .await;
    let lab = Lab::allowing(&[&format!("tcp://{}", local("git.test", origin.at))]);
    let mut tunnel = lab.tunnel(&format!("git.test:{}", origin.at.port())).await;
    let mut banner = [0; 16];
    tunnel.read_exact(&mut banner).await.unwrap();
    assert_eq!(&banner, b"SSH-2.0-origin\r\n");
}

#[tokio::test]
async fn private_answers_are_refused_in_words() {
    let lab = Lab::allowing(&["rebound.test"]);
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "fd00:ec2::254",
    ] {
        lab.resolver.tell("rebound.test", &[&[address]]);
        let answer = lab
            .ask("CONNECT rebound.test:443 HTTP/1.1\r\nHost: rebound.test:443\r\n\r\n")
            .await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{address}: {answer}");
        assert!(
            answer.contains("is not a public address"),
            "{address}: {answer}"
        );
    }
}

#[tokio::test]
async fn one_private_address_among_public_ones_refuses_all() {
    let lab = Lab::allowing(&["mixed.test"]);
    lab.resolver
        .tell("mixed.test", &[&["93.184.216.34", "127.0.0.1"]]);
    let answer = lab.ask("CONNECT mixed.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[tokio::test]
async fn a_name_that_changes_its_mind_has_no_second_time() {
    let origin = Origin::echo().await;
    let lab = Lab::allowing(&[&format!("rebind.test:{} in 127.0.0.1", origin.at.port())]);
    // The checked answer is 127.0.0.1; had anybody asked again, it would have been 127.0.0.2.
    lab.resolver
        .tell("rebind.test", &[&["127.0.0.1"], &["127.0.0.2"]]);
    let mut tunnel = lab
        .tunnel(&format!("rebind.test:{}", origin.at.port()))
        .await;
    let hello = client_hello(Some("rebind.test"));
    tunnel.write_all(&hello).await.unwrap();
    let mut echoed = vec![0; hello.len()];
    tunnel.read_exact(&mut echoed).await.unwrap();
    assert_eq!(lab.resolver.asked().len(), 1);
}

#[tokio::test]
async fn a_dead_address_is_followed_by_the_next() {
    let origin = Origin::echo().await;
    let lab = Lab::allowing(&[&local("two.test", origin.at)]);
    lab.resolver
        .tell("two.test", &[&["127.0.0.77", "127.0.0.1"]]);
    let mut tunnel = lab.tunnel(&format!("two.test:{}", origin.at.port())).await;
    let hello = client_hello(Some("two.test"));
    tunnel.write_all(&hello).await.unwrap();
    let mut echoed = vec![0; hello.len()];
    tunnel.read_exact(&mut echoed).await.unwrap();
}

#[tokio::test]
async fn targets_that_are_no_plain_names_are_refused() {
    let lab = Lab::allowing(&["origin.test"]);
    for target in [
        "127.0.0.1:443",
        "0x7f.1:443",
        "017700000001:443",
        "127.1:443",
        "2130706433:443",
        "[::1]:443",
        "[::ffff:127.0.0.1]:443",
        "[fe80::1%25eth0]:443",
        "user@origin.test:443",
        "origin.test",
        "origin.test:",
        "origin.test:0",
        "origin.test:99999",
        "origin..test:443",
        ".origin.test:443",
        "http://origin.test:443",
        "origin.test:443/",
        "origin.test%00:443",
        "*:443",
    ] {
        let answer = lab.ask(format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
        assert!(
            answer.starts_with("HTTP/1.1 403 ") || answer.starts_with("HTTP/1.1 400 "),
            "{target}: {answer}"
        );
    }
    assert_eq!(lab.resolver.asked(), [""; 0], "nothing was ever looked up");
}

#[tokio::test]
async fn a_refusal_says_what_happened() {
    let lab = Lab::allowing(&["origin.test"]);
    let answer = lab
        .ask("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    assert!(
        answer.contains("hermetic egress allow evil.test\n"),
        "{answer}"
    );
    let answer = lab
        .ask("CONNECT evil.test:443 HTTP/1.1\r\nAccept: application/json\r\n\r\n")
        .await;
    let body = answer.split("\r\n\r\n").nth(1).unwrap();
    let json: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(json["code"], "not-allowed");
}

#[tokio::test]
async fn a_connect_with_a_body_or_another_host_is_refused() {
    let lab = Lab::allowing(&["origin.test"]);
    for fields in [
        "Host: evil.test:443\r\n",
        "Host: origin.test:444\r\n",
        "Host: origin.test\r\nHost: origin.test\r\n",
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
    ] {
        let answer = lab
            .ask(format!("CONNECT origin.test:443 HTTP/1.1\r\n{fields}\r\n"))
            .await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{fields}: {answer}");
    }
}

#[tokio::test]
async fn large_streams_arrive_whole_both_ways() {
    const SIZE: usize = 8 * 1024 * 1024;
    let identity = Identity::of("origin.test");
    let origin = identity.serve(echo).await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let tunnel = lab
        .tunnel(&format!("origin.test:{}", origin.at.port()))
        .await;
    let stream = tls::connect(tunnel, "origin.test", &identity.certificate)
        .await
        .unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let sent: Vec<u8> = (0..SIZE).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let expected = sent.clone();
    let sending = tokio::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer.flush().await.unwrap();
        writer
    });
    let mut received = vec![0; SIZE];
    reader.read_exact(&mut received).await.unwrap();
    sending.await.unwrap();
    assert!(received == expected, "bytes changed on the way");
}

#[tokio::test]
async fn a_half_closed_tunnel_still_answers() {
    let origin = Origin::start(|mut stream| async move {
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all).await;
        let _ = stream
            .write_all(format!("got {}", all.len()).as_bytes())
            .await;
    })
    .await;
    let lab = Lab::allowing(&[&format!("tcp://{}", local("origin.test", origin.at))]);
    let mut tunnel = lab
        .tunnel(&format!("origin.test:{}", origin.at.port()))
        .await;
    tunnel.write_all(b"12345").await.unwrap();
    tunnel.shutdown().await.unwrap();
    assert_eq!(read_all(&mut tunnel).await, "got 5");
}

#[tokio::test]
async fn bytes_sent_along_with_the_request_are_part_of_the_tunnel() {
    let origin = Origin::echo().await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let mut stream = lab.dial();
    let mut bytes =
        format!("CONNECT origin.test:{} HTTP/1.1\r\n\r\n", origin.at.port()).into_bytes();
    let hello = client_hello(Some("origin.test"));
    bytes.extend(&hello);
    stream.write_all(&bytes).await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
    let mut echoed = vec![0; hello.len()];
    stream.read_exact(&mut echoed).await.unwrap();
    assert_eq!(echoed, hello);
}

#[tokio::test]
async fn many_tunnels_at_once_stay_apart() {
    let identity = Identity::of("origin.test");
    let origin = identity.serve(echo).await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let target = format!("origin.test:{}", origin.at.port());
    let one = |n: usize| {
        let (lab, target, identity) = (&lab, &target, &identity);
        async move {
            let tunnel = lab.tunnel(target).await;
            let mut stream = tls::connect(tunnel, "origin.test", &identity.certificate)
                .await
                .unwrap();
            let word = format!("tunnel {n:03}");
            stream.write_all(word.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            let mut answer = vec![0; word.len()];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, word.as_bytes());
        }
    };
    futures::future::join_all((0..100).map(one)).await;
}

/// A server's request for another hello, as RFC 8446 spells it.
fn retry_request() -> Vec<u8> {
    const RANDOM: &str = "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c";
    let random = (0..32).map(|n| u8::from_str_radix(&RANDOM[2 * n..2 * n + 2], 16).unwrap());
    let mut bytes = vec![22, 3, 3, 0, 42, 2, 0, 0, 38, 3, 3];
    bytes.extend(random);
    bytes.extend([0, 0x13, 0x01, 0]);
    bytes
}

/// What an origin that asks for a second hello gets to read after the first.
async fn after_a_retry(second: &[u8], at_once: bool) -> Vec<u8> {
    let first = client_hello(Some("origin.test"));
    let length = first.len();
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = std::sync::Arc::new(std::sync::Mutex::new(Some(tell)));
    let origin = Origin::start(move |mut stream| {
        let tell = tell.lock().unwrap().take();
        async move {
            let mut hello = vec![0; length];
            stream.read_exact(&mut hello).await.unwrap();
            stream.write_all(&retry_request()).await.unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            let _ = tell.unwrap().send(rest);
        }
    })
    .await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let mut tunnel = lab
        .tunnel(&format!("origin.test:{}", origin.at.port()))
        .await;
    tunnel.write_all(&first).await.unwrap();
    if !at_once {
        tunnel
            .read_exact(&mut vec![0; retry_request().len()])
            .await
            .unwrap();
    }
    tunnel.write_all(second).await.unwrap();
    tunnel.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let _ = tunnel.read_to_end(&mut rest).await;
    drop(tunnel);
    lab.finished().await;
    told.await.unwrap()
}

#[tokio::test]
async fn a_second_hello_is_held_to_the_same_name() {
    let change_cipher_spec = [20, 3, 3, 0, 1, 1];
    let good = [&change_cipher_spec[..], &client_hello(Some("origin.test"))].concat();
    let evil = [&change_cipher_spec[..], &client_hello(Some("evil.test"))].concat();
    for at_once in [false, true] {
        assert_eq!(after_a_retry(&good, at_once).await, good);
        assert_eq!(
            after_a_retry(&evil, at_once).await,
            change_cipher_spec,
            "the other name went out"
        );
    }
}
