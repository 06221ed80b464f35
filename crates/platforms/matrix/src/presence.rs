//! What others see of us besides words: that we write, and that we have read.
//!
//! Both are shown only where an answer is on its way. A stranger whom nobody answers learns neither.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join;
use hermetic_chat::{SendError, SendFailure};
use hermetic_types::ChatPlace;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::debug;

use crate::MatrixAdapter;
use crate::names::room_of;
use crate::wire::MatrixRoute;

/// How long it is shown after one call.
pub(crate) const TYPING: Duration = Duration::from_secs(20);
/// Rooms whose messages were not answered yet.
const MOST_ROOMS: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct MatrixPresence {
    shown: Mutex<ShownMatrixPresence>,
}

#[derive(Debug, Default)]
struct ShownMatrixPresence {
    /// Where we are seen writing, and since when.
    typing: HashMap<String, Instant>,
    /// The last message of a room that nobody was told to be read.
    unread: HashMap<String, String>,
}

impl MatrixPresence {
    pub(crate) fn note_heard(&self, room: &str, event: &str) {
        let mut shown = self.lock();
        if shown.unread.len() < MOST_ROOMS || shown.unread.contains_key(room) {
            shown.unread.insert(room.to_owned(), event.to_owned());
        }
    }

    fn take_unread(&self, room: &str) -> Option<String> {
        self.lock().unread.remove(room)
    }

    fn note_typing(&self, room: &str) {
        let mut shown = self.lock();
        shown.typing.retain(|_, since| since.elapsed() < TYPING);
        shown.typing.insert(room.to_owned(), Instant::now());
    }

    /// Whether we are seen writing there; from now on we are not.
    fn end_typing(&self, room: &str) -> bool {
        let ended = self.lock().typing.remove(room);
        ended.is_some_and(|since| since.elapsed() < TYPING)
    }

    fn lock(&self) -> MutexGuard<'_, ShownMatrixPresence> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MatrixAdapter {
    pub(crate) async fn show_typing(&self, place: &ChatPlace) -> Result<(), SendError> {
        let room = room_of(place)?;
        let typing = json!({ "typing": true, "timeout": TYPING.as_millis() });
        let (shown, ()) = join(self.set_typing(room, &typing), self.tell_read(room)).await;
        shown?;
        // Only what was shown has to be ended when the answer is there.
        self.presence.note_typing(room);
        Ok(())
    }

    /// Says that what is answered now was read, and that we write no longer: the answer is there.
    pub(crate) async fn show_answered(&self, room: &str) {
        let stop = async {
            if self.presence.end_typing(room) {
                let stopped = self.set_typing(room, &json!({ "typing": false })).await;
                if let Err(error) = stopped {
                    debug!(%error, "that we write no longer could not be shown");
                }
            }
        };
        join(stop, self.tell_read(room)).await;
    }

    async fn set_typing(&self, room: &str, typing: &Value) -> Result<(), SendFailure> {
        let session = self.session().await?;
        let route = MatrixRoute::put(&["rooms", room, "typing", &session.user]);
        // Worth nothing late: no waiting, no second try.
        self.call::<Value>(&route, |r| r.json(typing)).await?;
        Ok(())
    }

    async fn tell_read(&self, room: &str) {
        let Some(event) = self.presence.take_unread(room) else {
            return;
        };
        let route = MatrixRoute::post(&["rooms", room, "receipt", "m.read", &event]);
        if let Err(error) = self.call::<Value>(&route, |r| r.json(&json!({}))).await {
            debug!(%error, "it could not be told that something was read");
        }
    }
}
