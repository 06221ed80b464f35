//! The ways in which an origin can hand the secret back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{SECRET, bench};

#[tokio::test]
async fn no_part_of_an_answer_carries_it() {
    for answer in [
        "HTTP/1.1 200 ghp_realtoken123456\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-ghp_realtoken123456: 1\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: https://other.test/?t=ghp_realtoken123456\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nSet-Cookie: t=ghp_realtoken123456\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: ghp_realtoken123456\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error=\"ghp_realtoken123456\"\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Echo\r\n\r\n1\r\na\r\n0\r\nX-Echo: ghp_realtoken123456\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n13\r\nghp_realtoken123456\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\ng\r\n1\r\nh\r\n10\r\np_realtoken12345\r\n1\r\n6\r\n0\r\n\r\n",
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-18/19\r\nContent-Length: 19\r\n\r\nghp_realtoken123456",
    ] {
        let said = bench(answer).await.get("").await;
        assert!(said.starts_with("HTTP/1.1 "), "{answer:?}: {said}");
        assert!(
            !said.contains("ghp_real") && !said.contains("token123"),
            "{answer:?}: {said}"
        );
    }
}

#[tokio::test]
async fn other_spellings_are_taken_out_too() {
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    for spelling in [
        STANDARD.encode(SECRET),
        STANDARD.encode(format!("user:{SECRET}")),
        hex.clone(),
        hex.to_uppercase(),
    ] {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nX-Echo: {spelling}\r\nContent-Length: {}\r\n\r\n{spelling}",
            spelling.len()
        );
        let said = bench(answer.leak()).await.get("").await;
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        assert!(!said.contains(&spelling), "{spelling}: {said}");
    }
}

/// As servers in PHP, .NET and Java, mail programs and careless people write what they were sent.
#[tokio::test]
async fn an_escaped_folded_or_divided_echo_is_taken_out_too() {
    let encoded = STANDARD.encode(format!("user:{SECRET}"));
    let (one, two) = encoded.split_at(encoded.len() / 2);
    for spelling in [
        "ghp\\u005Frealtoken123456".to_owned(),
        "ghp\\\\u005frealtoken123456".to_owned(),
        "ghp%5Frealtoken123456".to_owned(),
        "ghp&#95;realtoken123456".to_owned(),
        "ghp=5Frealtoken123456".to_owned(),
        "GHP_REALTOKEN123456".to_owned(),
        "ghp_r ealto ken12 3456".to_owned(),
        format!("{one} {two}"),
    ] {
        let body = spelling.replace(' ', "\r\n");
        let answer = format!(
            "HTTP/1.1 200 OK\r\nX-Echo: {spelling}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let said = bench(answer.leak()).await.get("").await;
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        let seen: String = said.chars().filter(char::is_ascii_alphanumeric).collect();
        let seen = seen.to_lowercase();
        assert!(
            !seen.contains("token123") && !seen.contains("ealtoken"),
            "{spelling}: {said}"
        );
        let part: String = two.chars().take(12).collect();
        assert!(!said.contains(&part), "{spelling}: {said}");
    }
}

#[tokio::test]
async fn what_cannot_be_searched_is_not_passed_on() {
    for fields in [
        "Content-Encoding: gzip\r\n",
        "Content-Encoding: br\r\n",
        "Content-Encoding: zstd\r\n",
        "Content-Encoding: deflate\r\n",
        "Content-Encoding: identity, gzip\r\n",
        "Content-Encoding: identity\r\ncontent-encoding: br\r\n",
        "Content-Encoding: x-unheard-of\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
    ] {
        let length = if fields.starts_with('T') {
            ""
        } else {
            "Content-Length: 2\r\n"
        };
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}{length}\r\nhi");
        let said = bench(answer.leak()).await.get("").await;
        assert!(said.starts_with("HTTP/1.1 502 "), "{fields:?}: {said}");
    }
}

#[tokio::test]
async fn pieces_cannot_be_asked_for() {
    let bench = bench("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    bench
        .get("Range: bytes=0-3\r\nRequest-Range: bytes=0-3\r\nIf-Range: \"x\"\r\nTE: gzip\r\nAccept-Encoding: br\r\nA-IM: gzip, vcdiff\r\n")
        .await;
    let head = bench.heads.lock().unwrap()[0].to_lowercase();
    for name in ["range:", "te:", "a-im:"] {
        assert!(!head.contains(&format!("\r\n{name}")), "{name} {head}");
    }
    assert!(!head.contains("request-range"), "{head}");
    assert!(head.contains("\r\naccept-encoding: identity\r\n"), "{head}");
}

#[tokio::test]
async fn an_echo_that_is_cut_short_is_taken_out_as_far_as_it_goes() {
    let said = bench("HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\nghp_realtoken12345")
        .await
        .get("")
        .await;
    assert!(!said.contains("ghp_real"), "{said}");
}
