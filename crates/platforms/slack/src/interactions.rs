//! Pressed buttons and slash commands.
//!
//! Slack sends each once and shows the person an error if it is not acknowledged within three seconds.

use hermetic_chat::ChatEvent;
use hermetic_types::{
    ButtonPress, ChatId, ChatPlace, IncomingMessage, MessageId, Sender, UpdateId,
};
use serde_json::Value;

use crate::reading::{MessageReader, kind};
use crate::ts::SlackTimestamp;

/// Commands that only say whom they are for: what follows is the message.
const CALLS: [&str; 2] = ["/hermetic", "/hermes"];

/// A `block_actions` payload; why it is not for us, otherwise.
pub(crate) fn press(payload: &Value, reader: MessageReader<'_>) -> Result<ChatEvent, &'static str> {
    if payload["type"] != "block_actions" {
        return Err("not a press of a button");
    }
    if !reader.identity.home.covers_interaction(payload) {
        return Err("a press in another workspace");
    }
    let message = &payload["message"];
    // Another app's message can have a button with any data: a yes is taken from under our own
    // questions only.
    let (author, bot) = (message["user"].as_str(), message["bot_id"].as_str());
    if !reader.identity.wrote(author, bot) {
        return Err("a button under a message that is not ours");
    }
    let action = &payload["actions"][0];
    let container = &payload["container"];
    let channel = container["channel_id"]
        .as_str()
        .or(payload["channel"]["id"].as_str());
    let ts = container["message_ts"].as_str().or(message["ts"].as_str());
    let (Some(channel), Some(ts)) = (
        channel.and_then(chat_id),
        ts.and_then(SlackTimestamp::parse),
    ) else {
        return Err("a press without a message");
    };
    let (Some(data), Some(pressed_at)) = (action["value"].as_str(), action["action_ts"].as_str())
    else {
        return Err("a press without data");
    };
    let thread = message["thread_ts"]
        .as_str()
        .or(container["thread_ts"].as_str());
    // A message that others answered in a thread carries its own time as the thread's.
    let thread = thread
        .and_then(SlackTimestamp::parse)
        .filter(|thread| *thread != ts);
    let user = &payload["user"];
    let sender = sender(reader, &user["id"], &user["team_id"], &user["username"])?;
    let home = reader.identity.home.id();
    // With its time: one person may press the same button twice, and a press that Slack repeats has
    // the same time again.
    let name = format!("press:{home}:{channel}:{ts}:{}:{pressed_at}", sender.id);
    let update = UpdateId::new(name).map_err(|_| "a press with an odd name")?;
    Ok(ChatEvent::Press(ButtonPress {
        account: reader.account.clone(),
        query: update.to_string(),
        update,
        place: ChatPlace {
            kind: kind(&channel),
            chat: channel,
            thread: thread.and_then(SlackTimestamp::thread_id),
        },
        message: ts.message_id(),
        sender,
        data: data.to_owned(),
        received_at: reader.now,
    }))
}

/// A slash command; why it is not for us, otherwise.
pub(crate) fn command(
    payload: &Value,
    reader: MessageReader<'_>,
) -> Result<ChatEvent, &'static str> {
    if !reader.identity.home.covers_interaction(payload) {
        return Err("a command in another workspace");
    }
    let text = |name: &str| payload[name].as_str();
    let (Some(command), Some(trigger)) = (text("command"), text("trigger_id")) else {
        return Err("a command without a name");
    };
    let Some(channel) = text("channel_id").and_then(chat_id) else {
        return Err("a command without a channel");
    };
    let allowed = &reader.hearing.allowed_channels;
    let is_private = kind(&channel) == hermetic_types::ChatKind::Dm;
    if !is_private && !allowed.is_empty() && !allowed.contains(&channel) {
        return Err("a channel we do not listen to");
    }
    let sender = sender(
        reader,
        &payload["user_id"],
        &payload["user_team"],
        &payload["user_name"],
    )?;
    let name = format!("command:{}:{trigger}", reader.identity.home.id());
    let names = (
        UpdateId::new(name),
        MessageId::new(format!("command-{trigger}")),
    );
    let (Ok(update), Ok(message)) = names else {
        return Err("a command with an odd name");
    };
    Ok(ChatEvent::Message(IncomingMessage {
        account: reader.account.clone(),
        update,
        message,
        place: ChatPlace {
            kind: kind(&channel),
            chat: channel,
            thread: None,
        },
        sender,
        text: command_line(command, text("text").unwrap_or_default()),
        reply_to: None,
        mentions_us: true,
        attachments: Vec::new(),
        received_at: reader.now,
    }))
}

fn command_line(command: &str, text: &str) -> String {
    let text = text.trim();
    match (CALLS.contains(&command), text.is_empty()) {
        (true, true) => "/help".to_owned(),
        (true, false) => text.to_owned(),
        (false, true) => command.to_owned(),
        (false, false) => format!("{command} {text}"),
    }
}

fn sender(
    reader: MessageReader<'_>,
    id: &Value,
    team: &Value,
    name: &Value,
) -> Result<Sender, &'static str> {
    let id = id.as_str().ok_or("nobody sent it")?;
    let person = reader.identity.home.person(id, team.as_str());
    Ok(Sender {
        id: person.ok_or("nobody sent it")?,
        display: name.as_str().unwrap_or(id).to_owned(),
        is_bot: false,
        roles: Vec::new(),
    })
}

fn chat_id(id: &str) -> Option<ChatId> {
    ChatId::new(id).ok()
}

#[cfg(test)]
mod tests {
    use super::command_line;

    #[test]
    fn a_command_is_what_the_person_typed() {
        for (command, text, line) in [
            ("/stop", "", "/stop"),
            ("/sh", " ls -l ", "/sh ls -l"),
            ("/hermetic", "what is up?", "what is up?"),
            ("/hermes", "/stop", "/stop"),
            ("/hermetic", " ", "/help"),
        ] {
            assert_eq!(command_line(command, text), line);
        }
    }
}
