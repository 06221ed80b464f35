//! What reads Slack's bytes, for fuzzing.

use hermetic_chat::ChatEvent;
use hermetic_types::{AccountId, ChatId, Platform, Timestamp};
use serde_json::Value;

use crate::config::SlackHearing;
use crate::identity::{BotIdentity, InstalledIn};
use crate::interactions;
use crate::reading::{MessageReader, ReadMessage};
use crate::threads::JoinedThreads;

/// What a message of a channel's history or of an event says to the bot `U0BOT`, and what the same bytes
/// say as a press and as a slash command.
pub fn read_payload(payload: &Value, channel: &ChatId) -> Vec<ChatEvent> {
    let account: AccountId = Platform::Slack.into();
    let identity = BotIdentity {
        home: InstalledIn::Workspace("T0HOME".to_owned()),
        user: "U0BOT".to_owned(),
        bot: Some("B0BOT".to_owned()),
        scopes: Vec::new(),
        workspace: String::new(),
    };
    let (hearing, threads) = (SlackHearing::default(), JoinedThreads::none());
    let reader = MessageReader {
        account: &account,
        identity: &identity,
        hearing: &hearing,
        threads: &threads,
        now: Timestamp::UNIX_EPOCH,
    };
    let message = match reader.read(payload, channel) {
        ReadMessage::Message(heard) => Some(ChatEvent::Message(heard.incoming)),
        ReadMessage::Edited(edited) => Some(ChatEvent::Edited(*edited)),
        ReadMessage::Deleted(_) | ReadMessage::Nothing(_) | ReadMessage::Malformed(_) => None,
    };
    let press = interactions::press(payload, reader).ok();
    let command = interactions::command(payload, reader).ok();
    message.into_iter().chain(press).chain(command).collect()
}
