//! The reading side of a connection: what was read ahead first, then the rest.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use thiserror::Error;
use tokio::io::AsyncRead;
use tokio::time::{timeout, timeout_at};

use super::head::EndSearch;
use crate::stream::poll_read_into;

/// Reads a connection through the bytes that were read ahead of need.
pub(crate) struct ReadAhead<'a, R> {
    reader: R,
    ahead: &'a mut Vec<u8>,
}

/// The error of a head that did not arrive.
#[derive(Debug, Error)]
pub(crate) enum ReadHeadError {
    #[error("the head is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the head did not arrive in time")]
    TooSlow,
    #[error("the connection ended within a head")]
    Cut,
    #[error("the connection broke")]
    Broken(#[from] io::Error),
}

/// Read at most so much ahead: enough for good throughput, little enough for many at once.
const PORTION: usize = 64 * 1024;

impl<'a, R: AsyncRead + Unpin> ReadAhead<'a, R> {
    pub(crate) fn new(reader: R, ahead: &'a mut Vec<u8>) -> Self {
        Self { reader, ahead }
    }

    pub(crate) fn ahead(&self) -> &[u8] {
        self.ahead
    }

    pub(crate) fn consume(&mut self, length: usize) {
        if length >= self.ahead.len() {
            *self.ahead = Vec::new();
        } else {
            self.ahead.drain(..length);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.ahead)
    }

    /// 0 at the end of the stream.
    pub(crate) async fn more(&mut self) -> io::Result<usize> {
        let (reader, ahead) = (&mut self.reader, &mut *self.ahead);
        poll_fn(|cx| poll_read_into(Pin::new(&mut *reader), cx, ahead, PORTION)).await
    }

    /// A whole head, its empty line included. `None` where the stream ended before its first byte.
    ///
    /// The clock starts with the first byte: how long to wait for that is the caller's business.
    pub(crate) async fn head(
        &mut self,
        limit: usize,
        within: Duration,
    ) -> Result<Option<Vec<u8>>, ReadHeadError> {
        if self.ahead.is_empty() && self.more().await? == 0 {
            return Ok(None);
        }
        // One deadline for the whole head, and not for each read: a byte every few seconds would
        // hold the connection for ever.
        let deadline = tokio::time::Instant::now() + within;
        let mut search = EndSearch::default();
        loop {
            if let Some(end) = search.go_on(self.ahead) {
                if end > limit {
                    return Err(ReadHeadError::TooLarge { limit });
                }
                let rest = self.ahead.split_off(end);
                return Ok(Some(std::mem::replace(self.ahead, rest)));
            }
            if self.ahead.len() > limit {
                return Err(ReadHeadError::TooLarge { limit });
            }
            let read = timeout_at(deadline, self.more())
                .await
                .map_err(|_| ReadHeadError::TooSlow)??;
            if read == 0 {
                return Err(ReadHeadError::Cut);
            }
        }
    }

    /// Waits for the first byte of what comes next; `false` at the end of the stream.
    pub(crate) async fn first_byte(&mut self, within: Duration) -> Option<io::Result<bool>> {
        if !self.ahead.is_empty() {
            return Some(Ok(true));
        }
        let read = timeout(within, self.more()).await.ok()?;
        Some(read.map(|read| read > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_head_is_found_wherever_it_is_cut() {
        let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        for cut in 1..bytes.len() {
            let mut ahead = bytes[..cut].to_vec();
            let mut source = ReadAhead::new(&bytes[cut..], &mut ahead);
            let head = source
                .head(1000, Duration::from_secs(1))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(head, &bytes[..bytes.len() - 4], "cut at {cut}");
        }
    }
}
