//! What reads the daemon's bytes, for fuzzing.

use serde_json::Value;

use crate::envelope::Address;
use crate::hear::{Act, Heard, Listener, hear};
use crate::{Groups, Hearing};

/// The words that one of the daemon's events says to the account with this number.
pub fn read_event(event: &Value, number: &str) -> Option<String> {
    let us = Address::new(None, Some(number.to_owned()))?;
    let hearing = Hearing {
        require_mention: false,
        groups: Groups::All,
    };
    let listener = Listener {
        us: &us,
        hearing: &hearing,
    };
    match hear(event, listener) {
        Heard::Said(said) => match said.act {
            Act::Words { text, .. } => Some(text),
            Act::Reaction { .. } | Act::Deletion { .. } => None,
        },
        Heard::Nothing(_) | Heard::Unreadable { .. } | Heard::Malformed(_) => None,
    }
}
