//! A connection whose reader has to read.
//!
//! A connection that is being answered is never cut to make room, so one whose peer takes nothing, or a byte
//! now and then, would keep its place for as long as the peer likes.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// How long a peer may take less than [`LEAST_TAKEN`] of what waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A kilobyte in a second: the slowest line that anybody still has.
const LEAST_TAKEN: usize = 32 << 10;

/// Fails a write where the peer has taken less than [`LEAST_TAKEN`] since writes began to wait for it.
#[derive(Debug)]
pub(crate) struct PatientWriter<S = TcpStream> {
    stream: S,
    /// Runs from the first write that waits.
    slowness: Option<PeerSlowness>,
}

/// A time in which the peer does not keep up.
#[derive(Debug)]
struct PeerSlowness {
    deadline: Pin<Box<Sleep>>,
    taken: usize,
    /// When a write waited last.
    last_wait: Instant,
}

impl PeerSlowness {
    fn begin() -> Self {
        Self {
            deadline: Box::pin(sleep(PATIENCE)),
            taken: 0,
            last_wait: Instant::now(),
        }
    }
}

impl<S> PatientWriter<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            slowness: None,
        }
    }

    fn noted(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            let bytes = written.as_ref().copied().unwrap_or(0);
            if let Some(slowness) = &mut self.slowness {
                slowness.taken += bytes;
            }
            // Enough was taken, or nothing had to wait for long: the next wait begins anew.
            self.slowness
                .take_if(|slow| slow.taken >= LEAST_TAKEN || slow.last_wait.elapsed() >= PATIENCE);
            return Poll::Ready(written);
        }
        self.wait(cx).map(Err)
    }

    /// Until the peer has had its time.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let slowness = self.slowness.get_or_insert_with(PeerSlowness::begin);
        slowness.last_wait = Instant::now();
        match slowness.deadline.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                slowness.deadline.as_mut().reset(Instant::now() + PATIENCE);
                Poll::Ready(io::ErrorKind::TimedOut.into())
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientWriter<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientWriter<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.noted(cx, written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_flush(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed),
            Poll::Pending => this.wait(cx).map(Err),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, pieces);
        this.noted(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    /// A peer that takes so many bytes each second; how writing to it for some minutes ends.
    async fn taken_by(bytes: usize) -> io::Result<()> {
        let (ours, mut theirs) = duplex(1 << 10);
        let mut writer = PatientWriter::new(ours);
        let peer = tokio::spawn(async move {
            let mut taken = vec![0; bytes];
            loop {
                sleep(Duration::from_secs(1)).await;
                if bytes > 0 && theirs.read_exact(&mut taken).await.is_err() {
                    return;
                }
            }
        });
        let written = writer.write_all(&vec![1; 512 << 10]).await;
        peer.abort();
        written
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_next_to_nothing_is_given_up_and_a_slow_one_is_not() {
        for bytes in [0, 1, 900] {
            let given_up = taken_by(bytes).await.unwrap_err();
            assert_eq!(given_up.kind(), io::ErrorKind::TimedOut, "{bytes}");
        }
        taken_by(2 << 10).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_kept_up_meanwhile_has_its_time_again() {
        let (ours, mut theirs) = duplex(16);
        let mut writer = PatientWriter::new(ours);
        for _ in 0..3 {
            let mut taken = [0; 64];
            let read = async {
                sleep(PATIENCE - Duration::from_secs(1)).await;
                theirs.read_exact(&mut taken).await.unwrap();
            };
            let (written, ()) = tokio::join!(writer.write_all(&[1; 64]), read);
            written.unwrap();
            // A quiet time, as of an event stream.
            sleep(PATIENCE * 2).await;
        }
    }
}
