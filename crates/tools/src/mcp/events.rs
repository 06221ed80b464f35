//! Server-sent events, as far as MCP uses them: data, numbers, and how long to wait before coming back.

use std::time::Duration;

use hyper::header::HeaderValue;

use super::http::broken;
use super::message::{LONGEST_MESSAGE, RequestFailure};
use crate::json_rpc::LineCutter;
use crate::web_request::WebAnswer;

/// What the events of one request may come to, comments and notifications included.
const MOST_EVENT_BYTES: usize = 16 * 1024 * 1024;
const LONGEST_EVENT_ID: usize = 1024;
/// Where the server does not say.
const USUAL_PAUSE: Duration = Duration::from_secs(1);
/// What a server can make us wait at the most.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The events of one answer, and of those that take it up again.
#[derive(Debug)]
pub(super) struct McpEvents {
    answer: WebAnswer,
    cutter: LineCutter,
    data: Vec<u8>,
    read: usize,
}

/// How to come back after events broke off.
#[derive(Debug)]
pub(super) struct StreamResumption {
    /// Absent where the server does not number its events: they cannot be taken up again.
    pub(super) last_event: Option<HeaderValue>,
    pub(super) pause: Duration,
}

impl Default for StreamResumption {
    fn default() -> Self {
        Self {
            last_event: None,
            pause: USUAL_PAUSE,
        }
    }
}

impl McpEvents {
    pub(super) fn over(answer: WebAnswer) -> Self {
        Self {
            answer,
            cutter: LineCutter::up_to(LONGEST_MESSAGE),
            data: Vec::new(),
            read: 0,
        }
    }

    /// Goes on with the events of another answer. What was read counts on.
    pub(super) fn go_on(&mut self, answer: WebAnswer) {
        self.answer = answer;
        self.cutter = LineCutter::up_to(LONGEST_MESSAGE);
        // The half of an event is sent again: they go on behind the last one that has a number.
        self.data.clear();
    }

    /// The data of the next event that has some; `None` at the end.
    pub(super) async fn next(
        &mut self,
        resumption: &mut StreamResumption,
    ) -> Result<Option<Vec<u8>>, RequestFailure> {
        loop {
            let too_long = |_| RequestFailure("it sent an event that is too long".to_owned());
            while let Some(line) = self.cutter.next_line().map_err(too_long)? {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if let Some(more) = line.strip_prefix(b"data:") {
                    self.data.extend_from_slice(without_space(more));
                    self.data.push(b'\n');
                } else if line.is_empty() && !self.data.trim_ascii().is_empty() {
                    return Ok(Some(std::mem::take(&mut self.data)));
                } else if line.is_empty() {
                    self.data.clear();
                } else {
                    resumption.look_at(line);
                }
            }
            let piece = self.answer.piece().await.map_err(|error| broken(&error))?;
            let Some(piece) = piece else {
                return Ok(None);
            };
            self.read += piece.len();
            if self.read > MOST_EVENT_BYTES {
                return Err(RequestFailure("it sends events without end".to_owned()));
            }
            self.cutter.push(&piece);
        }
    }
}

impl StreamResumption {
    fn look_at(&mut self, line: &[u8]) {
        if let Some(id) = line.strip_prefix(b"id:") {
            let id = without_space(id);
            let id = HeaderValue::from_bytes(id).ok();
            self.last_event = id.filter(|id| (1..=LONGEST_EVENT_ID).contains(&id.len()));
        } else if let Some(pause) = line.strip_prefix(b"retry:") {
            let pause = str::from_utf8(without_space(pause)).unwrap_or_default();
            if let Ok(millis) = pause.parse() {
                self.pause = Duration::from_millis(millis).min(LONGEST_PAUSE);
            }
        }
    }
}

fn without_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}
