//! A connection and the bytes of it that were read ahead.
//!
//! Reading goes through one buffer per thread that is handed out only while a read is being polled. A
//! connection that waits owns no buffer at all, which is what lets thousands of idle tunnels be cheap.

use std::any::Any;
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hermetic_listen::TrackedConnection;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes both ways: a socket, a stream out of a warden, TLS over either.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A stream whose bytes lie in memory once they have come: they can be passed on from where they are.
pub trait BufferedStream: ByteStream + AsyncBufRead {}

impl<T: ByteStream + AsyncBufRead> BufferedStream for T {}

/// A connection together with the bytes that were read ahead of need.
pub(crate) struct PeekedStream {
    stream: StreamKind,
    ahead: Vec<u8>,
    /// Its place at a port that counts connections.
    tracked: Option<Arc<TrackedConnection>>,
}

/// The streams that a connection can be made of.
enum StreamKind {
    /// Known by its kind, because the kernel can relay between two of these by itself.
    Tcp(TcpStream),
    Buffered(Box<dyn BufferedStream>),
    Other(Box<dyn ByteStream>),
}

impl StreamKind {
    fn any(&mut self) -> &mut dyn ByteStream {
        match self {
            Self::Tcp(stream) => stream,
            Self::Buffered(stream) => &mut **stream,
            Self::Other(stream) => &mut **stream,
        }
    }
}

const SCRATCH_BYTES: usize = 256 * 1024;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Runs `work` with this thread's buffer. It is taken out meanwhile, so that nested use only costs
/// an allocation.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = SCRATCH.take();
    if buffer.is_empty() {
        buffer = vec![0; SCRATCH_BYTES];
    }
    let result = work(&mut buffer);
    SCRATCH.set(buffer);
    result
}

/// Appends to `ahead` what can be read in one go; 0 is the end of the stream.
pub(crate) fn poll_read_into(
    reader: Pin<&mut (impl AsyncRead + ?Sized)>,
    cx: &mut Context<'_>,
    ahead: &mut Vec<u8>,
    most: usize,
) -> Poll<io::Result<usize>> {
    with_scratch(|scratch| {
        let most = most.min(scratch.len());
        let mut buffer = ReadBuf::new(&mut scratch[..most]);
        ready!(reader.poll_read(cx, &mut buffer))?;
        ahead.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    })
}

impl PeekedStream {
    pub(crate) fn new(stream: impl ByteStream + 'static) -> Self {
        let mut stream = Some(stream);
        let tcp = (&mut stream as &mut dyn Any).downcast_mut::<Option<TcpStream>>();
        let carrier = match (tcp.and_then(Option::take), stream) {
            (Some(tcp), _) => StreamKind::Tcp(tcp),
            (None, Some(other)) => StreamKind::Other(Box::new(other)),
            (None, None) => unreachable!("what was not taken is still there"),
        };
        Self {
            stream: carrier,
            ahead: Vec::new(),
            tracked: None,
        }
    }

    pub(crate) fn over(stream: impl BufferedStream + 'static) -> Self {
        Self {
            stream: StreamKind::Buffered(Box::new(stream)),
            ahead: Vec::new(),
            tracked: None,
        }
    }

    pub(crate) fn tracked_by(mut self, connection: Arc<TrackedConnection>) -> Self {
        self.tracked = Some(connection);
        self
    }

    /// A whole request is here: the port does not cut this connection to make room.
    pub(crate) fn request_came(&self) {
        if let Some(connection) = &self.tracked {
            connection.request_came();
        }
    }

    /// It was answered, and the next one has not begun.
    pub(crate) fn answered(&self) {
        if let Some(connection) = &self.tracked {
            connection.answered();
        }
    }

    /// The socket, where it is one.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match &self.stream {
            StreamKind::Tcp(stream) => Some(stream),
            StreamKind::Buffered(_) | StreamKind::Other(_) => None,
        }
    }

    /// The stream, where what has come can be passed on from where it is.
    pub(crate) fn buffered(&mut self) -> Option<&mut dyn BufferedStream> {
        match &mut self.stream {
            StreamKind::Buffered(stream) if self.ahead.is_empty() => Some(&mut **stream),
            _ => None,
        }
    }

    /// What has been read and not yet used.
    pub(crate) fn ahead(&self) -> &[u8] {
        &self.ahead
    }

    pub(crate) async fn read_more(&mut self) -> io::Result<usize> {
        let Self { stream, ahead, .. } = self;
        poll_fn(|cx| poll_read_into(Pin::new(stream.any()), cx, ahead, 16 * 1024)).await
    }

    pub(crate) fn take_ahead(&mut self, length: usize) -> Vec<u8> {
        let rest = self.ahead.split_off(length);
        std::mem::replace(&mut self.ahead, rest)
    }

    pub(crate) fn parts(&mut self) -> (&mut dyn ByteStream, &mut Vec<u8>) {
        (self.stream.any(), &mut self.ahead)
    }

    /// Whether the peer has neither closed nor spoken: a kept connection that did is not used again.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        if !self.ahead.is_empty() {
            return false;
        }
        let Self { stream, ahead, .. } = self;
        let quiet = poll_fn(|cx| {
            // One byte is read, and kept: a byte that came unasked would be the beginning of an
            // answer to nobody.
            let read = poll_read_into(Pin::new(stream.any()), cx, ahead, 1);
            Poll::Ready(read.is_pending())
        });
        quiet.await
    }
}

impl AsyncRead for PeekedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.ahead.is_empty() {
            return Pin::new(this.stream.any()).poll_read(cx, buffer);
        }
        let length = this.ahead.len().min(buffer.remaining());
        buffer.put_slice(&this.ahead[..length]);
        this.ahead.drain(..length);
        if this.ahead.is_empty() {
            // Let go, not only emptied: thousands of idle tunnels would each keep what their first
            // bytes took.
            this.ahead = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PeekedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.get_mut().stream.any()).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().stream.any()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.get_mut().stream.any()).poll_shutdown(cx)
    }
}
