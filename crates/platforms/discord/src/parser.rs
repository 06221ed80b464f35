//! What reads Discord's bytes, for fuzzing.

use hermetic_chat::ChatEvent;
use hermetic_types::{Platform, Timestamp};
use serde_json::Value;

use crate::channels::DiscordChannel;
use crate::dispatch::DispatchEvent;
use crate::hearing::{DiscordBot, HeardEvent, hear_edit, hear_interaction, hear_message};
use crate::snowflake::Snowflake;
use crate::{DiscordHearing, dialect};

/// What an event of the gateway says to the bot with this id, where everybody writes in private.
pub fn read_dispatch(kind: &str, data: Value, bot: u64) -> Option<ChatEvent> {
    let account = Platform::Discord.into();
    let hearing = DiscordHearing::default();
    let bot = DiscordBot {
        account: &account,
        id: Snowflake::from_position(bot),
        hearing: &hearing,
    };
    let channel = DiscordChannel::private(Snowflake::from_position(1));
    let now = Timestamp::UNIX_EPOCH;
    let heard = match DispatchEvent::read(kind, data) {
        DispatchEvent::Message(message) => hear_message(*message, &channel, bot, now),
        DispatchEvent::Edited(message) => hear_edit(*message, &channel, bot, now),
        DispatchEvent::Interaction(interaction) => {
            hear_interaction(*interaction, &channel, bot, now)
        }
        _ => return None,
    };
    match heard {
        HeardEvent::Event(event) => Some(*event),
        HeardEvent::Nothing(_) => None,
    }
}

/// A text as Discord is sent it.
pub fn to_dialect(text: &str) -> String {
    dialect::to_dialect(text)
}
