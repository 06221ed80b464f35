//! A port that answers, and clients of it.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use hermetic_listen::{BoundedListener, ConnectionBounds, serve_http};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Far more than anything here takes.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Port {
    pub(crate) at: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Port {
    pub(crate) async fn open(bounds: ConnectionBounds) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let routes = Router::new()
            .route("/health", get(|| async { "well" }))
            .route(
                "/take",
                post(|body: Bytes| async move { body.len().to_string() }),
            );
        let stop = CancellationToken::new();
        let listener = BoundedListener::new(listener, bounds);
        let serving = serve_http(listener, routes, stop.clone(), Duration::from_secs(1));
        Self {
            at,
            stop,
            serving: tokio::spawn(serving),
        }
    }

    /// One honest request on a connection of its own.
    pub(crate) async fn ask(&self, request: &str) -> String {
        let asking = async {
            let mut stream = TcpStream::connect(self.at).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        timeout(TEST_TIMEOUT, asking).await.expect("an answer")
    }

    pub(crate) async fn is_well(&self) {
        let answer = self
            .ask("GET /health HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")
            .await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.ends_with("well"), "{answer}");
    }

    /// A connection that says this and then nothing.
    pub(crate) async fn half_open(&self, words: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).await.unwrap();
        // It may have been cut already, for the ones that came after it.
        let _ = stream.write_all(words.as_bytes()).await;
        stream
    }

    pub(crate) async fn close(self) {
        self.stop.cancel();
        timeout(TEST_TIMEOUT, self.serving)
            .await
            .expect("an end")
            .unwrap();
    }
}

/// Returns when the other side has ended this connection.
pub(crate) async fn ended(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let read = timeout(TEST_TIMEOUT, stream.read_to_end(&mut rest)).await;
    // A reset is an end too.
    let _ = read.expect("the connection to be ended");
}
