//! Why the inner program died, where it did before it answered.
//!
//! Its stderr is a pipe that the gateway holds until the first byte comes over the link: a panic, an abort
//! of the allocator and an error of its own are all said there. From then on nobody listens.

use std::fmt;
use std::io::{self, PipeReader, Read};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rustix::process::{WaitId, WaitIdOptions, WaitIdStatus, waitid};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How much of what it said is shown to a person.
const MOST_CAGE_WORDS: u64 = 2 << 10;
/// Between the closing of a dying process's descriptors and its end.
const DYING: Duration = Duration::from_secs(5);

/// The reading end of the inner program's stderr.
#[derive(Debug)]
pub(super) struct InnerStderr(PipeReader);

impl InnerStderr {
    pub(super) fn pipe() -> io::Result<(Self, Stdio)> {
        let (ours, theirs) = io::pipe()?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok((Self(ours), theirs.into()))
    }

    /// What was said so far, on one line.
    pub(super) fn said(&self) -> Option<String> {
        let mut bytes = Vec::new();
        // It ends with `WouldBlock` where a guard still holds the other end.
        let _ = (&self.0).take(MOST_CAGE_WORDS).read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<String> = text
            .lines()
            // How to make Rust print a backtrace does not help whoever reads this.
            .filter(|line| !line.starts_with("note: run with `RUST_BACKTRACE"))
            .map(|line| line.chars().filter(|c| !c.is_control()).collect::<String>())
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.is_empty())
            .collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }
}

/// How a process ended. Collects it where it is our child.
pub(super) fn collect(pidfd: BorrowedFd<'_>) -> Option<String> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::PidFd(pidfd), options).ok()??;
    Some(how(&status))
}

fn how(status: &WaitIdStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (_, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended".to_owned(),
    }
}

/// One sentence of what is known.
pub(super) fn explain(ended: Option<&str>, said: Option<&str>) -> Option<String> {
    match (ended, said) {
        (None, None) => None,
        (ended, Some(said)) => Some(format!(
            "the inner program {} and said: {said}",
            ended.unwrap_or("died")
        )),
        (Some(ended), None) => Some(format!("the inner program {ended} and said nothing")),
    }
}

/// What is known of a warden until it answers.
pub(super) struct UnansweredWarden {
    pub(super) stderr: InnerStderr,
    /// How its process ended.
    pub(super) ended: oneshot::Receiver<Option<String>>,
}

impl UnansweredWarden {
    async fn explain(self, broke: io::Error) -> io::Error {
        let ended = timeout(DYING, self.ended).await;
        let ended = ended.ok().and_then(Result::ok).flatten();
        match explain(ended.as_deref(), self.stderr.said().as_deref()) {
            Some(why) => io::Error::new(broke.kind(), why),
            None => broke,
        }
    }
}

/// A link that says why it broke, if it does before the first byte.
pub(super) struct ExplainedLink {
    stream: UnixStream,
    unanswered: Option<UnansweredWarden>,
    explaining: Option<BoxFuture<'static, io::Error>>,
}

impl ExplainedLink {
    pub(super) fn new(stream: UnixStream, unanswered: Option<UnansweredWarden>) -> Self {
        Self {
            stream,
            unanswered,
            explaining: None,
        }
    }

    fn broken(&mut self, broke: io::Error, context: &mut Context<'_>) -> Poll<io::Error> {
        if let Some(unanswered) = self.unanswered.take() {
            self.explaining = Some(unanswered.explain(broke).boxed());
        } else if self.explaining.is_none() {
            return Poll::Ready(broke);
        }
        let Some(explaining) = &mut self.explaining else {
            return Poll::Pending;
        };
        let error = ready!(explaining.poll_unpin(context));
        self.explaining = None;
        Poll::Ready(error)
    }
}

impl AsyncRead for ExplainedLink {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = &mut *self;
        if me.unanswered.is_none() && me.explaining.is_none() {
            return Pin::new(&mut me.stream).poll_read(context, buffer);
        }
        let before = buffer.filled().len();
        let broke = match ready!(Pin::new(&mut me.stream).poll_read(context, buffer)) {
            Ok(()) if buffer.filled().len() > before => {
                // It has answered. What it says from here on goes nowhere, and a full pipe must not
                // hold it up: dropped, it has no reader.
                me.unanswered = None;
                return Poll::Ready(Ok(()));
            }
            Ok(()) => io::ErrorKind::UnexpectedEof.into(),
            Err(error) => error,
        };
        me.broken(broke, context).map(Err)
    }
}

impl AsyncWrite for ExplainedLink {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match ready!(Pin::new(&mut self.stream).poll_write(context, bytes)) {
            Ok(written) => Poll::Ready(Ok(written)),
            Err(broke) => self.broken(broke, context).map(Err),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices)) {
            Ok(written) => Poll::Ready(Ok(written)),
            Err(broke) => self.broken(broke, context).map(Err),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl fmt::Debug for ExplainedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExplainedLink").field(&self.stream).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn unanswered(words: &[u8], ended: Option<&str>) -> UnansweredWarden {
        let (ours, mut theirs) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&ours, true).unwrap();
        theirs.write_all(words).unwrap();
        // Somebody else holds it open, as a guard does.
        std::mem::forget(theirs);
        let (tell, told) = oneshot::channel();
        tell.send(ended.map(str::to_owned)).unwrap();
        UnansweredWarden {
            stderr: InnerStderr(ours),
            ended: told,
        }
    }

    #[tokio::test]
    async fn a_link_that_breaks_unanswered_says_what_the_inner_program_said() {
        let panic = b"thread 'main' panicked at src/x.rs:1:2:\nno \x1b[31mpages\n\
            note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let ended = Some("was ended by signal 6");
        let mut link = ExplainedLink::new(ours, Some(unanswered(panic, ended)));
        let error = link.read_u8().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the inner program was ended by signal 6 and said: \
             thread 'main' panicked at src/x.rs:1:2:; no [31mpages"
        );
    }

    #[tokio::test]
    async fn so_does_one_that_cannot_be_written_to() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let ended = Some("was ended by signal 31");
        let mut link = ExplainedLink::new(ours, Some(unanswered(b"", ended)));
        let error = link.write_all(b"hello").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the inner program was ended by signal 31 and said nothing"
        );
    }

    #[tokio::test]
    async fn after_an_answer_a_break_is_a_break() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut link = ExplainedLink::new(ours, Some(unanswered(b"words", None)));
        theirs.write_all(b"h").await.unwrap();
        assert_eq!(link.read_u8().await.unwrap(), b'h');
        drop(theirs);
        let error = link.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(!error.to_string().contains("words"), "{error}");
    }
}
