use super::*;

fn target(text: &str) -> Option<(String, String)> {
    absolute_target(text)
        .ok()
        .map(|(authority, path)| (authority.to_string(), path))
}

#[test]
fn only_plain_absolute_targets_are_taken() {
    assert_eq!(
        target("http://A.test"),
        Some(("a.test:80".into(), "/".into()))
    );
    assert_eq!(
        target("HTTP://a.test:8080?q"),
        Some(("a.test:8080".into(), "/?q".into()))
    );
    assert_eq!(
        target("http://a.test/x@y:z"),
        Some(("a.test:80".into(), "/x@y:z".into()))
    );
    assert_eq!(
        target("ws://a.test/chat"),
        Some(("a.test:80".into(), "/chat".into()))
    );
    for text in [
        "/",
        "wss://a.test/",
        "ws://127.0.0.1/",
        "ws://u@a.test/",
        "ws:a.test",
        "*",
        "a.test",
        "https://a.test/",
        "ftp://a.test/",
        "http:/a.test",
        "http://",
        "http:///x",
        "http://u@a.test/",
        "http://u:p@a.test/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://a.test#x",
        "http://a.test\\@b.test/",
        "http://a.test/\\",
        "http://a.test:/",
        "http://a.test:0/",
        "http://a.test:99999/",
    ] {
        assert_eq!(target(text), None, "{text}");
    }
}

#[test]
fn the_outgoing_head_is_ours() {
    let head = RequestHead::parse(
        b"POST http://a.test/x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nProxy-Authorization: p\r\n\
          Connection: X-Drop, close\r\nX-Drop: 1\r\nTE: trailers\r\nX-Keep: 2\r\nExpect: 100-continue\r\n\r\n",
    )
    .unwrap();
    let target = Authority::parse("a.test:80").unwrap();
    let out = outgoing(
        head,
        &target,
        80,
        "/x",
        BodyFraming::Length(3),
        &RequestAdditions::default(),
    );
    insta::assert_snapshot!(String::from_utf8(out.head).unwrap().replace('\r', ""), @r"
    POST /x HTTP/1.1
    Host: a.test
    X-Keep: 2
    Expect: 100-continue
    Content-Length: 3

    ");
    assert!(!out.keep);
}

#[test]
fn only_websockets_upgrade() {
    for (upgrade, passes) in [
        ("websocket", true),
        ("h2c", false),
        ("websocket, h2c", false),
    ] {
        let text = format!(
            "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\r\n"
        );
        let head = RequestHead::parse(text.as_bytes()).unwrap();
        let target = Authority::parse("a.test:80").unwrap();
        let out = outgoing(
            head,
            &target,
            80,
            "/",
            BodyFraming::Empty,
            &RequestAdditions::default(),
        );
        assert_eq!(out.upgrade, passes, "{upgrade}");
        assert_eq!(
            String::from_utf8(out.head).unwrap().contains("Upgrade"),
            passes
        );
    }
}
