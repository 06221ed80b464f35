//! What reads the homeserver's bytes, for fuzzing.

use serde_json::Value;

use crate::MatrixHearing;
use crate::hearing::{HeardMatrixEvent, MatrixListener, hear};
use crate::sync::read_sync;

/// The words that an answer to a sync says to the account with this name.
pub fn read_answer(answer: &Value, us: &str) -> Vec<String> {
    let Some(batch) = read_sync(answer, us) else {
        return Vec::new();
    };
    let hearing = MatrixHearing::default();
    let listener = MatrixListener {
        us,
        display: Some("Robbie"),
        hearing: &hearing,
    };
    let events = batch.joined.iter().flat_map(|room| &room.timeline);
    events
        .filter_map(|event| match hear(event, listener) {
            HeardMatrixEvent::Words(words) => {
                assert_ne!(event.sender, us, "we hear ourselves");
                Some(words.text)
            }
            _ => None,
        })
        .collect()
}

/// The HTML of a text.
pub fn write_html(text: &str) -> Option<String> {
    crate::html::to_html(text)
}
