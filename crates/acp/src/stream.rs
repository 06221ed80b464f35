//! The bytes between us and an agent, wherever it runs.

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use hermetic_warden::client::{RunEvent, RunningCommand, StdinStream};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// What comes from an agent. Dropping it ends the agent and what it started.
pub trait AgentStream: Send {
    /// May be dropped and called again without losing anything.
    fn next(&mut self) -> BoxFuture<'_, StreamEvent>;
}

/// What goes to an agent.
pub trait AgentInput: Send {
    /// Fails where the agent takes no more.
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), String>>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    Out(Bytes),
    Err(Bytes),
    /// Nothing follows; how it ended.
    Ended(String),
}

/// A program in a sandbox.
#[derive(Debug)]
pub(crate) struct SandboxStream(pub(crate) RunningCommand);

impl AgentStream for SandboxStream {
    fn next(&mut self) -> BoxFuture<'_, StreamEvent> {
        async move {
            loop {
                return match self.0.next().await {
                    Ok(Some(RunEvent::Out(bytes))) => StreamEvent::Out(bytes),
                    Ok(Some(RunEvent::Err(bytes))) => StreamEvent::Err(bytes),
                    Ok(Some(RunEvent::Started { .. })) => continue,
                    // A message with a hole in it is none.
                    Ok(Some(RunEvent::Skipped(_))) => {
                        StreamEvent::Ended("wrote faster than it could be read".to_owned())
                    }
                    Ok(Some(RunEvent::Ended(end))) => {
                        StreamEvent::Ended(format!("ended ({:?})", end.status).to_lowercase())
                    }
                    Ok(None) => StreamEvent::Ended("ended".to_owned()),
                    Err(_) => StreamEvent::Ended("is gone with its sandbox".to_owned()),
                };
            }
        }
        .boxed()
    }
}

impl AgentInput for StdinStream {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), String>> {
        let written = StdinStream::write(self, bytes);
        async move { written.await.map_err(|error| error.to_string()) }.boxed()
    }
}

/// Any two halves of bytes: a socket, a pipe.
#[derive(Debug)]
pub struct PipeStream<R>(pub R);

impl<R: AsyncRead + Send + Unpin> AgentStream for PipeStream<R> {
    fn next(&mut self) -> BoxFuture<'_, StreamEvent> {
        const PIECE: usize = 16 << 10;
        async move {
            let mut piece = Vec::with_capacity(PIECE);
            match self.0.read_buf(&mut piece).await {
                Ok(1..) => StreamEvent::Out(piece.into()),
                Ok(0) | Err(_) => StreamEvent::Ended("ended".to_owned()),
            }
        }
        .boxed()
    }
}

/// The other half.
#[derive(Debug)]
pub struct PipeInput<W>(pub W);

impl<W: AsyncWrite + Send + Unpin> AgentInput for PipeInput<W> {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let written = self.0.write_all(bytes).await;
            written.map_err(|error| error.to_string())
        }
        .boxed()
    }
}
