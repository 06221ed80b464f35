//! Whoever posts signed messages.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use hermetic_testkit::clock::ManualClock;
use hermetic_types::{Clock as _, Secret};
use hermetic_webhook::{NONCE_HEADER, SIGNATURE_HEADER, SignedHeaders, TIMESTAMP_HEADER};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A secret, and what switches the webhook on.
pub(crate) fn webhook() -> (Secret, String) {
    const SECRET: &str = "a-secret-of-enough-bytes";
    let access = format!("WEBHOOK_ENABLED=true\nWEBHOOK_PORT=0\nWEBHOOK_SECRET={SECRET}");
    (Secret::new(SECRET), access)
}

/// Posts by a clock that agrees with the gateway's, under a nonce that nobody had before.
pub(crate) async fn post(
    address: SocketAddr,
    clock: &ManualClock,
    secret: &Secret,
    body: &str,
) -> String {
    static POSTED: AtomicU64 = AtomicU64::new(0);
    let nonce = format!("n{}", POSTED.fetch_add(1, Ordering::Relaxed));
    let signature = SignedHeaders::sign(secret, clock.now().seconds(), nonce, body.as_bytes());
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
