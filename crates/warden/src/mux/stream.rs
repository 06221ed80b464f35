//! One stream of a link: frames or raw bytes, read by one owner and written by others.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream as _;
use futures::io::AsyncWrite as _;
use thiserror::Error;

use super::received::{ReceiveBudget, StreamShare};
use crate::protocol::frame::{FrameCollector, FrameError, FrameKind, HEADER, WardenFrame, header};

/// A handle; clones are the same stream. It is reset when the last one goes, or by [`reset`].
///
/// [`reset`]: MuxStream::reset
#[derive(Clone)]
pub(crate) struct MuxStream {
    /// `None` after a reset. The lock is only ever held for one poll.
    inner: Arc<Mutex<Option<CountedStream>>>,
}

/// A stream and what came on it that nobody has taken.
struct CountedStream {
    stream: yamux::Stream,
    share: StreamShare,
}

#[derive(Debug, Error)]
pub(crate) enum StreamError {
    #[error("the stream is closed")]
    Closed,
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("the link failed")]
    Io(#[source] io::Error),
}

impl MuxStream {
    pub(super) fn new(stream: yamux::Stream, received: &Arc<ReceiveBudget>) -> Self {
        let share = received.share(stream.id().val());
        Self {
            inner: Arc::new(Mutex::new(Some(CountedStream { stream, share }))),
        }
    }

    /// Tells the other side that nobody is here any more.
    pub(crate) fn reset(&self) {
        // Dropping the inner stream is what resets it, under every clone at once.
        self.lock().take();
    }

    /// Whether both are handles of one stream.
    #[cfg(feature = "serve")]
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The next bytes as they came; `None` at the end.
    pub(crate) fn poll_chunk(&self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let chunk = ready!(self.poll_uncounted(cx));
        if let Some(Ok(chunk)) = &chunk {
            self.taken(chunk.len());
        }
        Poll::Ready(chunk)
    }

    /// The same, where the bytes are still held by us: of a frame that has not come to its end.
    fn poll_uncounted(&self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self.lock().as_mut() {
            None => Poll::Ready(None),
            Some(inner) => Pin::new(&mut inner.stream)
                .poll_next(cx)
                .map_ok(Bytes::from_owner),
        }
    }

    /// So many bytes went to whoever they are for.
    pub(crate) fn taken(&self, bytes: usize) {
        if let Some(inner) = self.lock().as_ref() {
            inner.share.taken(bytes);
        }
    }

    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.lock().as_mut() {
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Some(inner) => Pin::new(&mut inner.stream).poll_write(cx, bytes),
        }
    }

    /// No more bytes from here; the other direction stays open.
    pub(crate) fn poll_close(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.lock().as_mut() {
            None => Poll::Ready(Ok(())),
            Some(inner) => Pin::new(&mut inner.stream).poll_close(cx),
        }
    }

    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> Result<(), StreamError> {
        while !bytes.is_empty() {
            let written = poll_fn(|cx| self.poll_write(cx, bytes)).await?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Header and payload together, so that they travel in one piece.
    pub(crate) async fn send(&self, kind: FrameKind, payload: &[u8]) -> Result<(), StreamError> {
        let mut frame = Vec::with_capacity(HEADER + payload.len());
        frame.extend_from_slice(&header(kind, payload.len()));
        frame.extend_from_slice(payload);
        self.write_all(&frame).await
    }

    #[cfg(any(feature = "serve", feature = "stand-in"))]
    pub(crate) async fn close(&self) -> Result<(), StreamError> {
        Ok(poll_fn(|cx| self.poll_close(cx)).await?)
    }

    /// The next frame; `None` when the other side is done.
    pub(crate) async fn receive(
        &self,
        frames: &mut FrameCollector,
    ) -> Result<Option<WardenFrame>, StreamError> {
        poll_fn(|cx| self.poll_receive(cx, frames)).await
    }

    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        frames: &mut FrameCollector,
    ) -> Poll<Result<Option<WardenFrame>, StreamError>> {
        loop {
            if let Some(frame) = frames.next_frame()? {
                self.taken(HEADER + frame.payload.len());
                return Poll::Ready(Ok(Some(frame)));
            }
            match ready!(self.poll_uncounted(cx)) {
                Some(chunk) => frames.push(chunk?),
                None => return Poll::Ready(Ok(None)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<CountedStream>> {
        // A poisoned lock only means that a poll panicked; the stream is still a stream.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MuxStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MuxStream")
    }
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WriteZero | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}
