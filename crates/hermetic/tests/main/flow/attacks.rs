//! What somebody in the chat may try, who is let in or is not.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::doors::{post, webhook};
use super::lab::Lab;
use crate::half_open::HalfOpen;

#[tokio::test(flavor = "multi_thread")]
async fn half_sent_requests_silence_neither_health_nor_the_webhook() {
    let test = "half_sent_requests_silence_neither_health_nor_the_webhook";
    let (secret, access) = webhook();
    let Some(lab) = Lab::start_with(test, [], "", &access).await else {
        return;
    };
    let well = async || {
        let mut stream = TcpStream::connect(lab.health()).await.unwrap();
        let request = b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.0 200"),
            "{answer}"
        );
    };
    let mut halves = HalfOpen::at(&lab.health());
    well().await;
    halves.the_first_is_ended();
    drop(halves);

    let address = lab.said_address("webhook=");
    let mut halves = HalfOpen::at(&address);
    let body = r#"{"chat": "ops", "user": "alice", "text": "/help"}"#;
    let answer = post(&address, &secret, body).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    halves.the_first_is_ended();
    well().await;
}
