//! Half-sent requests keep nobody out.

use std::time::Duration;

use hermetic_listen::ConnectionBounds;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::lab::{Port, ended};

/// Some of these close by themselves, most never do.
const HALVES: [&str; 5] = [
    "",
    "GET",
    "GET /health HTTP/1.1\r\nhost: here\r\nx: ",
    "POST /take HTTP/1.1\r\nhost: here\r\ncontent-length: 100000\r\n\r\nhalf",
    "POST /take HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
];

#[tokio::test]
async fn thousands_of_half_sent_requests_keep_no_honest_one_out() {
    let port = Port::open(ConnectionBounds::of(64)).await;
    let mut halves = Vec::new();
    for round in 0..2000 {
        halves.push(port.half_open(HALVES[round % HALVES.len()]).await);
        if round % 100 == 0 {
            port.is_well().await;
        }
    }
    port.is_well().await;
    let body = "x".repeat(1000);
    let answer = port
        .ask(&format!(
            "POST /take HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: 1000\r\n\r\n{body}"
        ))
        .await;
    assert!(answer.ends_with("1000"), "{answer}");
    // Those that came first made room for those that came last.
    ended(&mut halves[0]).await;
    drop(halves);
    port.is_well().await;
    port.close().await;
}

#[tokio::test]
async fn a_request_that_does_not_come_to_its_end_is_ended() {
    let bounds = ConnectionBounds {
        request_timeout: Duration::from_millis(100),
        ..ConnectionBounds::of(64)
    };
    let port = Port::open(bounds).await;
    for half in HALVES {
        let mut stream = port.half_open(half).await;
        ended(&mut stream).await;
    }
    // So does one that was answered and stays silent.
    let mut kept = port
        .half_open("GET /health HTTP/1.1\r\nhost: here\r\n\r\n")
        .await;
    ended(&mut kept).await;
    port.close().await;
}

#[tokio::test]
async fn a_byte_now_and_then_wins_no_time() {
    let bounds = ConnectionBounds {
        request_timeout: Duration::from_millis(200),
        ..ConnectionBounds::of(64)
    };
    let port = Port::open(bounds).await;
    let mut stream = port.half_open("GET /health HTTP/1.1\r\nx: ").await;
    let dripping = async {
        while stream.write_all(b"y").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::lab::TEST_TIMEOUT, dripping)
        .await
        .expect("it to be ended");
    port.close().await;
}

#[tokio::test]
async fn one_connection_carries_many_requests() {
    let port = Port::open(ConnectionBounds::of(4)).await;
    let mut stream = TcpStream::connect(port.at).await.unwrap();
    let mut answers = String::new();
    for round in 1..=50 {
        let request = b"GET /health HTTP/1.1\r\nhost: here\r\n\r\n";
        stream.write_all(request).await.unwrap();
        while answers.matches("\r\n\r\nwell").count() < round {
            let mut buffer = [0; 1024];
            let read = stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "it was ended after {round}");
            answers.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
    }
    port.close().await;
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let port = Port::open(ConnectionBounds::of(4)).await;
    let long = "y".repeat(256 << 10);
    let mut stream = port
        .half_open(&format!("GET /health HTTP/1.1\r\nx: {long}"))
        .await;
    ended(&mut stream).await;
    port.close().await;
}
