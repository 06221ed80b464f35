//! One command line on the remote host, as a stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hermetic_sandbox::BackendError;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::SshConfig;
use super::connection::{ChannelPermit, gather};
use crate::order::{self, MAGIC, RemoteAnswer, RemoteOrder};

/// What a login may print before our program speaks.
const LONGEST_GREETING: usize = 64 << 10;

/// Dropping it closes the channel.
#[derive(Debug)]
pub(super) struct SshChannel {
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    child: Child,
    place: ChannelPermit,
}

/// Dropping it closes the channel.
#[derive(Debug)]
pub(super) struct OpenChannel {
    _child: Child,
    _place: ChannelPermit,
}

/// What became of a command line that ran to its end.
pub(super) struct ScriptResult {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl SshChannel {
    pub(super) fn open(
        config: &SshConfig,
        place: ChannelPermit,
        line: &str,
    ) -> Result<Self, BackendError> {
        let failed = |source: io::Error| BackendError::failed("start ssh", source);
        let mut child = config
            .channel(&place.connection.control(), line)
            .spawn()
            .map_err(failed)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        Ok(Self {
            stdin,
            stdout,
            stderr: Some(stderr),
            child,
            place,
        })
    }

    /// One order, one answer. An error means that none came; [`said`](Self::said) knows more.
    pub(super) async fn ask(&mut self, order: &RemoteOrder) -> io::Result<RemoteAnswer> {
        let frame = order::frame(order).map_err(io::Error::other)?;
        self.stdin.write_all(&frame).await?;
        self.stdin.flush().await?;
        skip_greeting(&mut self.stdout).await?;
        let mut long = [0; 4];
        self.stdout.read_exact(&mut long).await?;
        let mut bytes = vec![0; order::length(long).map_err(io::Error::other)?];
        self.stdout.read_exact(&mut bytes).await?;
        order::payload(&bytes).map_err(io::Error::other)
    }

    /// Gives it all its input and waits for its end.
    pub(super) async fn finish(mut self, input: &[u8]) -> (ScriptResult, ChannelPermit) {
        // Who does not want his input says so by his exit code.
        let feed = async {
            let _ = self.stdin.write_all(input).await;
            drop(self.stdin);
        };
        let listen = async {
            match &mut self.stderr {
                Some(stderr) => tokio::join!(gather(&mut self.stdout), gather(stderr)),
                None => (gather(&mut self.stdout).await, String::new()),
            }
        };
        // All three at once: whoever waits for one of the pipes first may wait for a program that
        // waits for another.
        let ((), (out, err)) = tokio::join!(feed, listen);
        let code = self.child.wait().await.ok().and_then(|end| end.code());
        (ScriptResult { code, out, err }, self.place)
    }

    /// Its streams one by one, and what keeps it open.
    pub(super) fn apart(
        mut self,
    ) -> (
        ChildStdin,
        ChildStdout,
        Box<dyn AsyncRead + Send + Unpin>,
        OpenChannel,
    ) {
        let stderr: Box<dyn AsyncRead + Send + Unpin> = match self.stderr.take() {
            Some(stderr) => Box::new(stderr),
            None => Box::new(tokio::io::empty()),
        };
        let open = OpenChannel {
            _child: self.child,
            _place: self.place,
        };
        (self.stdin, self.stdout, stderr, open)
    }

    /// From here on the bytes are somebody else's.
    pub(super) fn into_link(mut self) -> Self {
        // Read on and thrown away: a pipe that nobody empties would hold up the link when the
        // server has much to say.
        if let Some(mut stderr) = self.stderr.take() {
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            });
        }
        self
    }
}

/// Reads up to and with the magic, a byte at a time: what follows it is not ours to take.
async fn skip_greeting(stdout: &mut ChildStdout) -> io::Result<()> {
    let mut last = [0; MAGIC.len()];
    for _ in 0..LONGEST_GREETING {
        last.rotate_left(1);
        last[MAGIC.len() - 1] = stdout.read_u8().await?;
        if last == MAGIC {
            return Ok(());
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

impl AsyncRead for SshChannel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdout).poll_read(cx, buffer)
    }
}

impl AsyncWrite for SshChannel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stdin).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_shutdown(cx)
    }
}
