//! Load on one way to the origin: straight, or through a proxy.

use std::fmt;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TIME: Duration = Duration::from_secs(3);
/// Of one download, which takes turns with the others.
const TURN: Duration = Duration::from_millis(500);
const AT_ONCE: usize = 16;

#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) origin: u16,
    pub(crate) proxy: Option<u16>,
}

impl Way {
    pub(crate) async fn open(self) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.proxy.unwrap_or(self.origin)))
            .await
            .unwrap();
        stream.set_nodelay(true).unwrap();
        if self.proxy.is_some() {
            let request = format!(
                "CONNECT localhost:{0} HTTP/1.1\r\nHost: localhost:{0}\r\n\r\n",
                self.origin
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            assert!(
                head.starts_with(b"HTTP/1.1 200"),
                "{}",
                String::from_utf8_lossy(&head)
            );
        }
        stream
    }
}

pub(crate) struct Rate {
    per_second: f64,
    median: Duration,
    p99: Duration,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0}/s, p50 {:?}, p99 {:?}, {AT_ONCE} at once",
            self.per_second, self.median, self.p99
        )
    }
}

/// Small requests on open tunnels.
pub(crate) async fn requests(way: Way) -> Rate {
    measure(move || async move {
        let mut stream = way.open().await;
        let mut times = Vec::new();
        let end = Instant::now() + TIME;
        while Instant::now() < end {
            times.push(ping(&mut stream).await);
        }
        times
    })
    .await
}

/// A new tunnel for every request.
pub(crate) async fn tunnels(way: Way) -> Rate {
    measure(move || async move {
        let mut times = Vec::new();
        let end = Instant::now() + TIME;
        while Instant::now() < end {
            let start = Instant::now();
            let mut stream = way.open().await;
            ping(&mut stream).await;
            times.push(start.elapsed());
        }
        times
    })
    .await
}

/// Bytes a second of one endless download.
pub(crate) async fn bulk(way: Way) -> f64 {
    let mut stream = way.open().await;
    stream.write_all(b"b").await.unwrap();
    let mut buffer = vec![0; 1024 * 1024];
    let (start, mut total) = (Instant::now(), 0u64);
    while start.elapsed() < TURN {
        total += stream.read(&mut buffer).await.unwrap() as u64;
    }
    total as f64 / start.elapsed().as_secs_f64()
}

async fn ping(stream: &mut TcpStream) -> Duration {
    let start = Instant::now();
    stream.write_all(b"p").await.unwrap();
    stream.read_exact(&mut [0; 64]).await.unwrap();
    start.elapsed()
}

async fn measure<F, Fut>(client: F) -> Rate
where
    F: Fn() -> Fut,
    Fut: Future<Output = Vec<Duration>> + Send + 'static,
{
    let start = Instant::now();
    let clients: Vec<_> = (0..AT_ONCE).map(|_| tokio::spawn(client())).collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.unwrap());
    }
    let elapsed = start.elapsed();
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    Rate {
        per_second: times.len() as f64 / elapsed.as_secs_f64(),
        median: at(50),
        p99: at(99),
    }
}
