//! A response's bytes, bounded in size and in silence.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use tokio::time::Instant;

use super::ModelEndpoint;
use crate::ModelError;

/// A response's bytes, counted.
pub(super) struct CountedBody<'a> {
    response: &'a mut Response,
    model: &'a ModelEndpoint,
    read: usize,
    /// When the answer last grew.
    progressed: Instant,
}

/// How often the endpoint's silence fits into the time that it may only be kept alive for.
const IDLE_SILENCES: u32 = 6;

/// An error page comes at once or is not waited for.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

impl<'a> CountedBody<'a> {
    pub(super) fn new(response: &'a mut Response, model: &'a ModelEndpoint) -> Self {
        Self {
            response,
            model,
            read: 0,
            progressed: Instant::now(),
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let patience = self.model.settings.silence.saturating_mul(IDLE_SILENCES);
        // Asked before anything is read: an endpoint that always has a byte ready is never late by a timer.
        if self.progressed.elapsed() >= patience {
            return Err(self.model.silent_for(patience));
        }
        let piece = self.model.in_time(self.response.chunk()).await?;
        // A connection that breaks within an answer cuts it.
        let piece = piece.map_err(|_| ModelError::Cut {
            model: self.model.settings.model.clone(),
        })?;
        // Counted as it comes, whatever length was announced.
        self.read += piece.as_ref().map_or(0, Bytes::len);
        if self.read > self.model.settings.max_response_bytes {
            return Err(self.model.too_large(self.model.settings.max_response_bytes));
        }
        Ok(piece)
    }

    /// Notes that the answer grew. Bytes alone may be no more than what keeps the connection.
    pub(super) fn progressed(&mut self) {
        self.progressed = Instant::now();
    }

    /// Up to the first byte that means something.
    pub(super) async fn start(&mut self) -> Result<BytesMut, ModelError> {
        let mut start = BytesMut::new();
        while start.trim_ascii_start().is_empty()
            && let Some(piece) = self.next().await?
        {
            start.extend_from_slice(&piece);
        }
        Ok(start)
    }

    pub(super) async fn rest(&mut self) -> Result<BytesMut, ModelError> {
        let mut whole = BytesMut::new();
        while let Some(piece) = self.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// What can be had of the first `most` bytes.
    pub(super) async fn page(&mut self, most: usize) -> String {
        let mut start = BytesMut::new();
        let timeout = PAGE_TIMEOUT.min(self.model.settings.silence);
        let read = async {
            while start.len() < most
                && let Ok(Some(piece)) = self.next().await
            {
                start.extend_from_slice(&piece);
            }
        };
        // What came until then says what there is to say.
        let _ = tokio::time::timeout(timeout, read).await;
        start.truncate(most);
        String::from_utf8_lossy(&start).into_owned()
    }
}
