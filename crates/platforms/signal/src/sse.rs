//! Server-Sent Events, as far as the daemon uses them.
//!
//! It sends `event:receive`, one `data:` with a whole JSON, an empty line; and `:` every fifteen seconds.

use std::fmt;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::daemon::{DaemonFrame, LONGEST_EVENT};
use crate::lines::{BoundedLine, LineBuffer};
use crate::rpc::SignalCallError;

pub(crate) struct SseEvents {
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    reader: SseReader,
}

/// Makes frames of lines.
#[derive(Debug)]
struct SseReader {
    lines: LineBuffer,
    /// The `data` of the event that is being read.
    data: Vec<u8>,
    too_long: bool,
}

impl SseEvents {
    pub(crate) fn new(chunks: BoxStream<'static, reqwest::Result<Bytes>>) -> Self {
        Self {
            chunks,
            reader: SseReader::new(),
        }
    }

    pub(crate) async fn next(&mut self) -> Result<DaemonFrame, SignalCallError> {
        loop {
            if let Some(frame) = self.reader.next_frame() {
                return Ok(frame);
            }
            match self.chunks.next().await {
                Some(Ok(chunk)) => self.reader.lines.push(&chunk),
                Some(Err(error)) => return Err(SignalCallError::broken(error.without_url())),
                None => return Err(SignalCallError::broken(StreamEnded)),
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("signal-cli ended the stream of events")]
pub(crate) struct StreamEnded;

impl SseReader {
    fn new() -> Self {
        Self {
            lines: LineBuffer::new(LONGEST_EVENT),
            data: Vec::new(),
            too_long: false,
        }
    }

    fn next_frame(&mut self) -> Option<DaemonFrame> {
        loop {
            match self.lines.next_line()? {
                // Noted, and read on: only the empty line tells where the next event begins.
                BoundedLine::TooLong => self.too_long = true,
                BoundedLine::Whole(line) if line.is_empty() => {
                    if let Some(frame) = self.end_event() {
                        return Some(frame);
                    }
                }
                BoundedLine::Whole(line) if line.starts_with(b":") => {
                    return Some(DaemonFrame::Alive);
                }
                BoundedLine::Whole(line) => self.take_field(&line),
            }
        }
    }

    fn take_field(&mut self, line: &[u8]) {
        let Some(value) = line.strip_prefix(b"data:") else {
            return;
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if self.data.len() + value.len() > LONGEST_EVENT {
            self.too_long = true;
            self.data.clear();
            return;
        }
        if !self.data.is_empty() {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
    }

    fn end_event(&mut self) -> Option<DaemonFrame> {
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.too_long) {
            return Some(DaemonFrame::Malformed);
        }
        if data.is_empty() {
            return None;
        }
        Some(serde_json::from_slice(&data).map_or(DaemonFrame::Malformed, DaemonFrame::Event))
    }
}

impl fmt::Debug for SseEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseEvents").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_read_however_they_were_cut() {
        let text = ":\n:\nevent:receive\ndata:{\"a\":\"é\"}\n\nevent: receive\r\ndata: {\r\ndata: }\r\n\r\n\
                    event:receive\ndata:not json\n\nid:7\n\ndata:1\n\n";
        for piece in 1..text.len() {
            let mut reader = SseReader::new();
            let mut frames = Vec::new();
            for bytes in text.as_bytes().chunks(piece) {
                reader.lines.push(bytes);
                frames.extend(std::iter::from_fn(|| reader.next_frame()));
            }
            let expected = [
                DaemonFrame::Alive,
                DaemonFrame::Alive,
                DaemonFrame::Event(json!({ "a": "é" })),
                DaemonFrame::Event(json!({})),
                DaemonFrame::Malformed,
                DaemonFrame::Event(json!(1)),
            ];
            assert_eq!(frames, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn an_event_that_is_too_long_costs_only_itself() {
        let mut reader = SseReader::new();
        let mut frames = Vec::new();
        reader.lines.push(b"data:");
        for _ in 0..LONGEST_EVENT / 1024 + 2 {
            reader.lines.push(&[b'x'; 1024]);
            frames.extend(std::iter::from_fn(|| reader.next_frame()));
        }
        reader.lines.push(b"\n\ndata:{}\n\n");
        frames.extend(std::iter::from_fn(|| reader.next_frame()));
        assert_eq!(
            frames,
            [DaemonFrame::Malformed, DaemonFrame::Event(json!({}))]
        );
    }
}
