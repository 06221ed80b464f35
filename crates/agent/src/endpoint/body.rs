//! A response's bytes, bounded in size and in silence.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

use super::ModelEndpoint;
use crate::ModelError;

/// A response's bytes, counted.
pub(super) struct CountedBody<'a> {
    response: &'a mut Response,
    model: &'a ModelEndpoint,
    read: usize,
}

impl<'a> CountedBody<'a> {
    pub(super) fn new(response: &'a mut Response, model: &'a ModelEndpoint) -> Self {
        Self {
            response,
            model,
            read: 0,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let piece = self.model.in_time(self.response.chunk()).await?;
        // A connection that breaks within an answer cuts it.
        let piece = piece.map_err(|_| ModelError::Cut {
            model: self.model.settings.model.clone(),
        })?;
        self.read += piece.as_ref().map_or(0, Bytes::len);
        if self.read > self.model.settings.max_response_bytes {
            return Err(self.model.too_large());
        }
        Ok(piece)
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
        while start.len() < most
            && let Ok(Some(piece)) = self.next().await
        {
            start.extend_from_slice(&piece);
        }
        start.truncate(most);
        String::from_utf8_lossy(&start).into_owned()
    }
}
