//! What is missing before a timeline: read from the room's history, backwards, up to where we stand.

use serde_json::Value;
use tracing::warn;

use crate::MatrixAdapter;
use crate::listening::drop_earlier;
use crate::lookups::is_answer;
use crate::receive::MatrixTrouble;
use crate::sync::{RoomEvent, read_events};
use crate::wire::MatrixRoute;

/// Events of one answer.
const PAGE: usize = 100;
/// What is read of one room. What was said last is read first, so beyond these five thousand it is the oldest
/// that nobody answers.
const PAGES: usize = 50;

impl MatrixAdapter {
    /// The events between our position and the place from which the timeline goes on, oldest first.
    pub(crate) async fn missed(
        &self,
        room: &str,
        from: &str,
        since: &str,
        first: Option<&str>,
    ) -> Result<Vec<RoomEvent>, MatrixTrouble> {
        let mut missed: Vec<RoomEvent> = Vec::new();
        let mut from = from.to_owned();
        for _ in 0..PAGES {
            let route = MatrixRoute::get(&["rooms", room, "messages"])
                .with("dir", "b")
                .with("from", from.as_str())
                .with("to", since)
                .with("limit", PAGE.to_string());
            let answer = match self.patiently::<Value>(&route, |r| r).await {
                Ok(answer) => answer,
                Err(error) if is_answer(&error) => {
                    warn!(account = %self.account, room, %error, "what was missed in a room cannot be read");
                    break;
                }
                Err(error) => return Err(error.into()),
            };
            let mut page = read_events(answer.get("chunk"), &mut 0);
            page.reverse();
            let reached = drop_earlier(&mut page, first);
            page.append(&mut missed);
            missed = page;
            let next = answer.get("end").and_then(Value::as_str);
            match next.filter(|next| !reached && *next != from) {
                Some(next) => from = next.to_owned(),
                None => return Ok(missed),
            }
        }
        let count = missed.len();
        warn!(account = %self.account, room, count, "more was said here than is read after an absence");
        Ok(missed)
    }
}
