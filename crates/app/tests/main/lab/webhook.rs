//! Whoever posts signed messages.

use std::net::SocketAddr;

use hermetic_types::Secret;
use hermetic_webhook::{NONCE_HEADER, SIGNATURE_HEADER, Signature, TIMESTAMP_HEADER};
use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A secret, and what switches the webhook on.
pub(crate) fn webhook() -> (Secret, String) {
    const SECRET: &str = "a-secret-of-enough-bytes";
    let access = format!("WEBHOOK_ENABLED=true\nWEBHOOK_PORT=0\nWEBHOOK_SECRET={SECRET}");
    (Secret::new(SECRET), access)
}

pub(crate) async fn post(address: SocketAddr, secret: &Secret, body: &str) -> String {
    let now = Timestamp::now().as_second();
    let nonce = format!("n{}", Timestamp::now().as_nanosecond());
    let signature = Signature::sign(secret, now, nonce, body.as_bytes());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut request = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in [
        (TIMESTAMP_HEADER, signature.timestamp.to_string()),
        (NONCE_HEADER, signature.nonce),
        (SIGNATURE_HEADER, signature.value),
    ] {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("\r\n{body}"));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
