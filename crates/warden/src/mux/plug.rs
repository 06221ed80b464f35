//! Fits a tokio stream to the traits that yamux speaks, and saves system calls on the way.
//!
//! yamux writes a 12-byte header and then the body, and reads the same way. Here a header waits for
//! its body and both leave in one call; small reads come out of one larger one.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::received::ReceiveBudget;

/// Pieces up to this size are collected; larger ones are handed through.
const SMALL: usize = 4096;

pub(super) struct CountedIo<T> {
    io: T,
    unsent: BytesMut,
    unread: BytesMut,
    received: Arc<ReceiveBudget>,
}

impl<T> CountedIo<T> {
    pub(super) fn new(io: T, received: Arc<ReceiveBudget>) -> Self {
        Self {
            io,
            unsent: BytesMut::new(),
            unread: BytesMut::new(),
            received,
        }
    }
}

impl<T: AsyncWrite + Unpin> CountedIo<T> {
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            match ready!(Pin::new(&mut self.io).poll_write(cx, &self.unsent))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.unsent.advance(sent),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> futures::io::AsyncWrite for CountedIo<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        piece: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if piece.len() + this.unsent.len() <= SMALL {
            // Written with the next piece, or by a flush: yamux flushes when it has no more to say.
            this.unsent.extend_from_slice(piece);
            return Poll::Ready(Ok(piece.len()));
        }
        if !this.io.is_write_vectored() {
            ready!(this.poll_send(cx))?;
            return Pin::new(&mut this.io).poll_write(cx, piece);
        }
        loop {
            let both = [IoSlice::new(&this.unsent), IoSlice::new(piece)];
            let sent = ready!(Pin::new(&mut this.io).poll_write_vectored(cx, &both))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let collected = this.unsent.len();
            this.unsent.advance(sent.min(collected));
            // Part of the header only: nothing of the piece counts as written yet.
            if sent > collected {
                return Poll::Ready(Ok(sent - collected));
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(cx))?;
        Pin::new(&mut this.io).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(cx))?;
        Pin::new(&mut this.io).poll_shutdown(cx)
    }
}

impl<T: AsyncRead + Unpin> futures::io::AsyncRead for CountedIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        wanted: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // Not read is not lost: the bytes stay in the kernel, whose buffer fills, and the warden's
        // writes wait.
        if !this.received.has_room(cx) {
            return Poll::Pending;
        }
        if this.unread.is_empty() {
            if wanted.len() >= SMALL {
                let mut buffer = ReadBuf::new(wanted);
                ready!(Pin::new(&mut this.io).poll_read(cx, &mut buffer))?;
                this.received.note(buffer.filled());
                return Poll::Ready(Ok(buffer.filled().len()));
            }
            this.unread.resize(SMALL, 0);
            let mut buffer = ReadBuf::new(&mut this.unread);
            let read = Pin::new(&mut this.io).poll_read(cx, &mut buffer);
            let filled = buffer.filled().len();
            this.unread.truncate(filled);
            ready!(read)?;
        }
        let given = wanted.len().min(this.unread.len());
        this.unread.copy_to_slice(&mut wanted[..given]);
        this.received.note(&wanted[..given]);
        Poll::Ready(Ok(given))
    }
}
