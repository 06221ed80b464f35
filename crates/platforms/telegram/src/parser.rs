//! What reads Telegram's bytes, for fuzzing.

use hermetic_chat::Event;
use jiff::Timestamp;
use serde_json::Value;

use crate::update::{self, Heard};
use crate::{Hearing, Me};

/// What one of Telegram's updates says to the bot with this id and name.
pub fn read_update(update: &Value, (id, name): (i64, &str)) -> Option<Event> {
    let me = Me {
        id,
        username: name.to_lowercase(),
    };
    let (hearing, now) = (Hearing::default(), Timestamp::UNIX_EPOCH);
    match update::hear(update, update::id(update)?, &me, &hearing, now) {
        Heard::Event(event) => Some(*event),
        Heard::Nothing(_) | Heard::Malformed(_) => None,
    }
}
