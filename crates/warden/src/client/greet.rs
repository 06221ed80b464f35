//! From a byte stream to a [`Warden`].

use std::io;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::Warden;
use crate::protocol::hello::{self, HelloError};

#[derive(Debug, Error)]
pub enum GreetError {
    #[error("the warden did not answer within {0:?}")]
    Silent(Duration),
    #[error(transparent)]
    Hello(#[from] HelloError),
    #[error("the link broke before the warden answered")]
    Link(#[source] io::Error),
}

impl Warden {
    /// Exchanges hellos and takes over the stream. Needs a tokio runtime for the task that drives
    /// the link, which ends with the last handle and the last open call.
    pub async fn greet<S>(mut stream: S, patience: Duration) -> Result<Self, GreetError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        // Before anything is multiplexed: a stranger at the other end must not get as far as the
        // multiplexer.
        match timeout(patience, exchange(&mut stream)).await {
            Err(_) => return Err(GreetError::Silent(patience)),
            Ok(Err(error)) => return Err(GreetError::Link(error)),
            Ok(Ok(theirs)) => hello::check(theirs)?,
        }
        Ok(Self::over(stream))
    }
}

async fn exchange<S>(stream: &mut S) -> io::Result<[u8; hello::LENGTH]>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(&hello::hello()).await?;
    stream.flush().await?;
    let mut theirs = [0; hello::LENGTH];
    stream.read_exact(&mut theirs).await?;
    Ok(theirs)
}
