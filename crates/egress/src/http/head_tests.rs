use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<RequestHead, HeadError> {
    RequestHead::parse(text.as_bytes())
}

#[test]
fn a_plain_request_parses() {
    let head = parse("GET http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nX-Empty:\r\n\r\n").unwrap();
    assert_eq!(
        (head.method.as_str(), head.target.as_str()),
        ("GET", "http://a.test/x?y")
    );
    assert_eq!(head.fields.all("host").collect::<Vec<_>>(), [b"a.test"]);
    assert_eq!(head.fields.all("x-empty").collect::<Vec<_>>(), [b""]);
}

#[test]
fn what_two_servers_could_read_differently_is_refused() {
    for (text, error) in [
        ("GET / HTTP/1.1\nHost: a\n\n", HeadError::BareLineEnd),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", HeadError::BareLineEnd),
        (
            "GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
            HeadError::BareLineEnd,
        ),
        (
            "GET / HTTP/1.1\r\nA: b\0\r\n\r\n",
            HeadError::ControlCharacter,
        ),
        (
            "GET / HTTP/1.1\r\nA: b\x0b\r\n\r\n",
            HeadError::ControlCharacter,
        ),
        (
            "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
            HeadError::FoldedLine,
        ),
        ("GET / HTTP/1.1\r\n\tA: b\r\n\r\n", HeadError::FoldedLine),
        ("GET / HTTP/1.1\r\nA : b\r\n\r\n", HeadError::FieldName),
        ("GET / HTTP/1.1\r\n: b\r\n\r\n", HeadError::FieldName),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", HeadError::FieldName),
        ("GET  / HTTP/1.1\r\n\r\n", HeadError::StartLine),
        ("GET / HTTP/1.1 \r\n\r\n", HeadError::StartLine),
        (" GET / HTTP/1.1\r\n\r\n", HeadError::StartLine),
        ("G(T / HTTP/1.1\r\n\r\n", HeadError::StartLine),
        ("GET /\t HTTP/1.1\r\n\r\n", HeadError::StartLine),
        ("GET /é HTTP/1.1\r\n\r\n", HeadError::StartLine),
        ("GET / HTTP/1.2\r\n\r\n", HeadError::Version),
        ("GET / HTTP/2.0\r\n\r\n", HeadError::Version),
        ("GET / http/1.1\r\n\r\n", HeadError::Version),
        ("\r\n", HeadError::StartLine),
    ] {
        assert_eq!(parse(text), Err(error), "{text:?}");
    }
}

#[test]
fn responses_parse_strictly_too() {
    let head = ResponseHead::parse(b"HTTP/1.1 200\r\n\r\n").unwrap();
    assert_eq!((head.status, head.reason.as_slice()), (200, &b""[..]));
    for text in [
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\n\n",
    ] {
        assert!(ResponseHead::parse(text.as_bytes()).is_err(), "{text:?}");
    }
}

#[test]
fn the_end_is_found_at_the_first_empty_line() {
    assert_eq!(EndSearch::default().go_on(b"a\r\nb\r\n\r\nrest"), Some(8));
    assert_eq!(EndSearch::default().go_on(b"a\r\nb\r\n"), None);
    assert_eq!(EndSearch::default().go_on(b"a\n\nrest"), Some(3));
}

proptest! {
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = RequestHead::parse(&bytes);
        let _ = ResponseHead::parse(&bytes);
    }

    #[test]
    fn what_is_accepted_holds_no_line_break(value in "[ -~\\r\\n\\t\\x00]{0,40}") {
        let text = format!("GET / HTTP/1.1\r\nA: {value}\r\n\r\n");
        if let Ok(head) = parse(&text) {
            for (name, value) in head.fields.iter() {
                prop_assert!(is_token(name.as_bytes()));
                prop_assert!(!value.iter().any(|b| b"\r\n\0".contains(b)));
            }
        }
    }
}
