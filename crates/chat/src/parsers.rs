//! What reads the bytes of a platform, for fuzzing.

use jiff::Timestamp;
use serde_json::Value;

use crate::Event;
use crate::telegram::{Hearing, hear_as_bot};
use crate::webhook::hear_signed;

/// What one of Telegram's updates says to the bot with this id and name.
pub fn telegram_update(update: &Value, bot: (i64, &str)) -> Option<Event> {
    hear_as_bot(update, bot, &Hearing::default(), Timestamp::UNIX_EPOCH)
}

/// What the body of a webhook's request says, once its signature is known to fit.
pub fn webhook_request(body: &[u8], nonce: &str) -> Option<Event> {
    hear_signed(body, nonce, Timestamp::UNIX_EPOCH)
}
