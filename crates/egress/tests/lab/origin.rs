//! Origins on loopback.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A listener whose connections are handled by a function; counts them and ends with the test.
pub(crate) struct Origin {
    pub at: SocketAddr,
    connections: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Origin {
    pub(crate) async fn start<F, Fut>(handle: F) -> Self
    where
        F: Fn(TcpStream) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = connections.clone();
        let accepting = tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                open.spawn(handle(stream));
            }
        });
        Self {
            at,
            connections,
            accepting,
        }
    }

    /// Answers every request head with the same bytes and remembers the heads.
    pub(crate) async fn answering(response: &'static str) -> (Self, Arc<Mutex<Vec<String>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heads = seen.clone();
        let origin = Self::start(move |mut stream| {
            let heads = heads.clone();
            async move {
                while let Some(head) = head(&mut stream).await {
                    heads.lock().unwrap().push(head);
                    if stream.write_all(response.as_bytes()).await.is_err() {
                        break;
                    }
                }
            }
        })
        .await;
        (origin, seen)
    }

    /// Sends everything back.
    pub(crate) async fn echo() -> Self {
        Self::start(|mut stream| async move {
            let (mut reader, mut writer) = stream.split();
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
            let _ = writer.shutdown().await;
        })
        .await
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One request head, or `None` at the end of the stream.
pub(crate) async fn head(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
