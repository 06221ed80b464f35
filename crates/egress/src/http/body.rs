//! Bodies, piece by piece, with their framing taken off on one side and put on anew on the other.

use std::io;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::chunked::{ChunkDecoder, ChunkError, ChunkStep};
use super::framing::BodyFraming;
use super::source::ReadAhead;

/// The error of a body that cannot be read or passed on.
#[derive(Debug, Error)]
pub(crate) enum BodyError {
    #[error("the body ends before it is complete")]
    Cut,
    #[error("nothing came for {} s", after.as_secs())]
    Idle { after: Duration },
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    #[error("the connection broke")]
    Broken(#[from] io::Error),
}

/// Reads a body whose framing is known.
pub(crate) struct BodyReader {
    left: BodyRemainder,
    idle: Duration,
}

/// What is still to come of a body.
enum BodyRemainder {
    Nothing,
    Bytes(u64),
    Chunks(ChunkDecoder),
    UntilClose,
}

impl BodyReader {
    pub(crate) fn new(framing: BodyFraming, idle: Duration) -> Self {
        let left = match framing {
            BodyFraming::Empty | BodyFraming::Length(0) => BodyRemainder::Nothing,
            BodyFraming::Length(length) => BodyRemainder::Bytes(length),
            BodyFraming::Chunked => BodyRemainder::Chunks(ChunkDecoder::default()),
            BodyFraming::UntilClose => BodyRemainder::UntilClose,
        };
        Self { left, idle }
    }

    /// The next bytes of the body, never empty; `None` when it is complete.
    pub(crate) async fn next<R: AsyncRead + Unpin>(
        &mut self,
        source: &mut ReadAhead<'_, R>,
    ) -> Result<Option<Vec<u8>>, BodyError> {
        loop {
            if matches!(self.left, BodyRemainder::Nothing) {
                return Ok(None);
            }
            if source.ahead().is_empty() {
                let idle = BodyError::Idle { after: self.idle };
                let read = timeout(self.idle, source.more())
                    .await
                    .map_err(|_| idle)??;
                if read == 0 {
                    return match self.left {
                        BodyRemainder::UntilClose => Ok(None),
                        // An end that came early must not look like the whole body.
                        _ => Err(BodyError::Cut),
                    };
                }
            }
            let data = self.take(source)?;
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
    }

    fn take<R: AsyncRead + Unpin>(
        &mut self,
        source: &mut ReadAhead<'_, R>,
    ) -> Result<Vec<u8>, BodyError> {
        match &mut self.left {
            BodyRemainder::Nothing => Ok(Vec::new()),
            BodyRemainder::UntilClose => Ok(source.take()),
            BodyRemainder::Bytes(left) => {
                let here = source.ahead().len();
                let length = here.min(usize::try_from(*left).unwrap_or(usize::MAX));
                let data = if length == here {
                    source.take()
                } else {
                    let data = source.ahead()[..length].to_vec();
                    source.consume(length);
                    data
                };
                *left -= length as u64;
                if *left == 0 {
                    self.left = BodyRemainder::Nothing;
                }
                Ok(data)
            }
            BodyRemainder::Chunks(decoder) => {
                let (mut data, mut at) = (Vec::new(), 0);
                let done = loop {
                    match decoder.step(&source.ahead()[at..])? {
                        ChunkStep::Done => break true,
                        ChunkStep::Framing(length) => at += length,
                        ChunkStep::Data(length) => {
                            data.extend_from_slice(&source.ahead()[at..at + length]);
                            at += length;
                        }
                    }
                    if at == source.ahead().len() && !decoder.is_done() {
                        break false;
                    }
                };
                source.consume(at);
                if done {
                    self.left = BodyRemainder::Nothing;
                }
                Ok(data)
            }
        }
    }
}

/// The framing with which a body goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEncoding {
    Plain,
    Chunks,
}

impl BodyEncoding {
    /// A peer that takes nothing for `idle` is taken for gone.
    pub(crate) async fn write<W: AsyncWrite + Unpin>(
        self,
        to: &mut W,
        data: &[u8],
        idle: Duration,
    ) -> io::Result<()> {
        if self == Self::Plain {
            return write_all(to, data, idle).await;
        }
        // One buffer, one write: a chunk in three packets would cost three system calls.
        let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
        chunk.extend_from_slice(data);
        chunk.extend_from_slice(b"\r\n");
        write_all(to, &chunk, idle).await
    }

    pub(crate) async fn finish<W: AsyncWrite + Unpin>(
        self,
        to: &mut W,
        idle: Duration,
    ) -> io::Result<()> {
        match self {
            Self::Chunks => write_all(to, b"0\r\n\r\n", idle).await,
            Self::Plain => Ok(()),
        }
    }
}

async fn write_all<W: AsyncWrite + Unpin>(
    to: &mut W,
    data: &[u8],
    idle: Duration,
) -> io::Result<()> {
    let writing = async {
        to.write_all(data).await?;
        to.flush().await
    };
    timeout(idle, writing)
        .await
        .map_err(|_| io::ErrorKind::TimedOut)?
}
