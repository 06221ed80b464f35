//! Any bytes as the requests of one connection: it ends, and the next one is answered.

#![no_main]

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use hermetic_listen::{BoundedListener, ConnectionBounds, serve_http};
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const HONEST: &[u8] = b"GET /health HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";

/// Less than libFuzzer waits for one input.
const PATIENCE: Duration = Duration::from_secs(10);

/// One port on loopback for all inputs.
static PORT: LazyLock<(Runtime, SocketAddr)> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be had");
    let listener = runtime
        .block_on(TcpListener::bind("127.0.0.1:0"))
        .expect("a port can be had");
    let address = listener.local_addr().expect("it is bound");
    let listener =
        runtime.block_on(async { BoundedListener::new(listener, ConnectionBounds::of(16)) });
    let routes = Router::new()
        .route("/health", get(|| async { "well" }))
        .route(
            "/take",
            post(|body: Bytes| async move { body.len().to_string() }),
        );
    runtime.spawn(serve_http(
        listener,
        routes,
        CancellationToken::new(),
        Duration::ZERO,
    ));
    (runtime, address)
});

fuzz_target!(|bytes: &[u8]| {
    let (runtime, address) = &*PORT;
    runtime.block_on(async {
        let both = async {
            ask(*address, bytes).await;
            ask(*address, HONEST).await
        };
        let answer = timeout(PATIENCE, both)
            .await
            .expect("a connection that is closed ends");
        assert!(
            answer.ends_with(b"well"),
            "an honest request was not answered"
        );
    });
});

async fn ask(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address)
        .await
        .expect("loopback can be reached");
    let (mut read, mut write) = stream.split();
    let mut answer = Vec::new();
    let send = async {
        // It may be refused before all of it was sent.
        let _ = write.write_all(bytes).await;
        let _ = write.shutdown().await;
    };
    let (_, _) = tokio::join!(send, read.read_to_end(&mut answer));
    answer
}
