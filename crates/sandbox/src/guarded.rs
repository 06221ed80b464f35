//! A stream that takes bytes only while whoever writes may act.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Asks before each write; what comes back is read all the same.
pub(crate) struct GuardedStream<S, M> {
    stream: S,
    may_write: M,
}

impl<S, M: Fn() -> bool> GuardedStream<S, M> {
    pub(crate) fn new(stream: S, may_write: M) -> Self {
        Self { stream, may_write }
    }

    fn admit(&self) -> io::Result<()> {
        if (self.may_write)() {
            return Ok(());
        }
        let why = "this gateway may act in sandboxes no longer";
        Err(io::Error::new(io::ErrorKind::BrokenPipe, why))
    }
}

impl<S: AsyncRead + Unpin, M: Unpin> AsyncRead for GuardedStream<S, M> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, bytes)
    }
}

impl<S: AsyncWrite + Unpin, M: Fn() -> bool + Unpin> AsyncWrite for GuardedStream<S, M> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.admit()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.admit()?;
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// What a layer below kept back may not go either.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.admit()?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn who_may_not_act_writes_nothing_and_still_reads() {
        let may = Arc::new(AtomicBool::new(true));
        let (near, mut far) = tokio::io::duplex(64);
        let asked = Arc::clone(&may);
        let mut near = GuardedStream::new(near, move || asked.load(Ordering::SeqCst));
        near.write_all(b"before").await.unwrap();
        may.store(false, Ordering::SeqCst);
        let refused = near.write_all(b"after").await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::BrokenPipe);
        far.write_all(b"result").await.unwrap();
        let mut bytes = [0; 6];
        near.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"result");
        drop(near);
        let mut heard = Vec::new();
        far.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"before");
    }
}
