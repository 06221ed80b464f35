//! What reads Telegram's bytes, for fuzzing.

use hermetic_chat::ChatEvent;
use hermetic_types::{Platform, Timestamp};
use serde_json::Value;

use crate::update::{self, HeardUpdate, TelegramBot};
use crate::{BotUser, TelegramHearing};

/// What one of Telegram's updates says to the bot with this id and name.
pub fn read_update(update: &Value, (id, name): (i64, &str)) -> Option<ChatEvent> {
    let me = BotUser {
        id,
        username: name.to_lowercase(),
    };
    let bot = TelegramBot {
        account: &Platform::Telegram.into(),
        me: &me,
        hearing: &TelegramHearing::default(),
    };
    match update::hear(update, update::id(update)?, bot, Timestamp::UNIX_EPOCH) {
        HeardUpdate::Event(event) => Some(*event),
        HeardUpdate::Nothing(_) | HeardUpdate::Malformed(_) => None,
    }
}
