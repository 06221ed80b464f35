//! What reads Telegram's bytes, for fuzzing.

use hermetic_chat::Event;
use hermetic_types::Platform;
use jiff::Timestamp;
use serde_json::Value;

use crate::update::{self, Bot, Heard};
use crate::{Hearing, Me};

/// What one of Telegram's updates says to the bot with this id and name.
pub fn read_update(update: &Value, (id, name): (i64, &str)) -> Option<Event> {
    let me = Me {
        id,
        username: name.to_lowercase(),
    };
    let bot = Bot {
        account: &Platform::Telegram.into(),
        me: &me,
        hearing: &Hearing::default(),
    };
    match update::hear(update, update::id(update)?, bot, Timestamp::UNIX_EPOCH) {
        Heard::Event(event) => Some(*event),
        Heard::Nothing(_) | Heard::Malformed(_) => None,
    }
}
