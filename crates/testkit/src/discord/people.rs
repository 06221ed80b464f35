//! What people do on the server.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::world::{Inner, Interaction, person};
use super::{APPLICATION, BOT_ID, DiscordServer, GUILD};

impl DiscordServer {
    /// The private channel between somebody and the bot.
    pub fn private_channel(&self, user: u64) -> u64 {
        self.world.change(|inner| inner.private_channel(user))
    }

    /// Somebody writes to the bot in private. Returns the message's id.
    pub fn says(&self, user: u64, text: &str) -> u64 {
        self.says_in(self.private_channel(user), user, text)
    }

    pub fn says_in(&self, channel: u64, user: u64, text: &str) -> u64 {
        self.says_with(channel, user, json!({ "content": text }))
    }

    /// The same, with any fields of a message.
    pub fn says_with(&self, channel: u64, user: u64, fields: Value) -> u64 {
        let mut message = json!({
            "type": 0, "author": person(user), "content": "", "tts": false, "pinned": false,
            "timestamp": "2026-11-17T12:00:00+00:00", "edited_timestamp": null, "flags": 0,
            "mention_everyone": false, "mentions": [], "mention_roles": [], "attachments": [],
            "embeds": [], "components": [],
        });
        if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
            message.extend(fields);
        }
        let content = message["content"].as_str().unwrap_or_default();
        if content.contains(&format!("<@{BOT_ID}>")) {
            message["mentions"] = json!([super::world::bot()]);
        }
        self.world.change(|inner| inner.post(channel, message))
    }

    /// A message is told once more, although it was told before.
    pub fn repeats(&self, channel: u64, message: u64) {
        self.world.change(|inner| {
            if let Some(message) = inner.messages.get(&(channel, message)).cloned() {
                inner.announce(channel, message);
            }
        });
    }

    /// Whoever wrote a message changes it.
    pub fn edits(&self, channel: u64, message: u64, text: &str) {
        self.world.change(|inner| {
            let changed = inner.next_id();
            let is_private = inner.is_private(channel);
            let Some(kept) = inner.messages.get_mut(&(channel, message)) else {
                return;
            };
            kept["content"] = json!(text);
            kept["edited_timestamp"] = json!(format!("2026-11-17T12:00:00.{changed:06}+00:00"));
            let mut told = kept.clone();
            if !is_private {
                told["guild_id"] = json!(GUILD.to_string());
            }
            inner.dispatch("MESSAGE_UPDATE", told);
        });
    }

    /// Whoever wrote a message takes it back.
    pub fn deletes(&self, channel: u64, message: u64) {
        self.world.change(|inner| {
            inner.messages.remove(&(channel, message));
            let mut gone = json!({ "id": message.to_string(), "channel_id": channel.to_string() });
            if !inner.is_private(channel) {
                gone["guild_id"] = json!(GUILD.to_string());
            }
            inner.dispatch("MESSAGE_DELETE", gone);
        });
    }

    /// A channel or thread of the server that was always there.
    pub fn add_channel(&self, channel: Value) {
        let id = channel["id"].as_str().and_then(|id| id.parse().ok());
        self.world
            .change(|inner| inner.channels.insert(id.unwrap_or_default(), channel));
    }

    /// A button under one of the bot's messages is pressed. Returns the interaction's id.
    pub fn presses(&self, user: u64, channel: u64, message: u64, data: &str) -> u64 {
        let fields = json!({
            "type": 3,
            "message": { "id": message.to_string() },
            "data": { "custom_id": data, "component_type": 2 },
        });
        self.interacts(user, channel, fields)
    }

    /// Somebody uses a command of the bot's.
    pub fn commands(&self, user: u64, channel: u64, name: &str, argument: Option<&str>) -> u64 {
        let options = argument.map(|value| json!({ "type": 3, "name": "text", "value": value }));
        let options: Vec<_> = options.into_iter().collect();
        let data = json!({ "id": "1", "type": 1, "name": name, "options": options });
        self.interacts(user, channel, json!({ "type": 2, "data": data }))
    }

    /// Somebody types behind a command and wants words to be offered.
    pub fn types(&self, user: u64, channel: u64, name: &str, typed: &str) -> u64 {
        let option = json!({ "type": 3, "name": "text", "value": typed, "focused": true });
        let data = json!({ "id": "1", "type": 1, "name": name, "options": [option] });
        self.interacts(user, channel, json!({ "type": 4, "data": data }))
    }

    /// The texts of the bot in a channel, each as it was changed last.
    pub fn shown(&self, channel: u64) -> Vec<String> {
        let us = BOT_ID.to_string();
        self.world.look(|inner| {
            let all = inner.messages.range((channel, 0)..=(channel, u64::MAX));
            all.filter(|(_, message)| message["author"]["id"] == us)
                .map(|(_, message)| message["content"].as_str().unwrap_or_default().to_owned())
                .collect()
        })
    }

    /// The same over all channels and threads.
    pub fn shown_anywhere(&self) -> Vec<String> {
        let us = BOT_ID.to_string();
        self.world.look(|inner| {
            let own = inner.messages.values();
            own.filter(|message| message["author"]["id"] == us)
                .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
                .collect()
        })
    }

    fn interacts(&self, user: u64, channel: u64, fields: Value) -> u64 {
        self.world.change(|inner| {
            let id = inner.next_id();
            let token = format!("token-of-{id}");
            let interaction = Interaction {
                id,
                made: Instant::now(),
                acknowledged: false,
            };
            inner.interactions.insert(token.clone(), interaction);
            let mut event = describe(inner, user, channel);
            event["id"] = json!(id.to_string());
            event["token"] = json!(token);
            if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
                event.extend(fields);
            }
            inner.dispatch("INTERACTION_CREATE", event);
            id
        })
    }
}

/// Who does something, and where.
fn describe(inner: &Inner, user: u64, channel: u64) -> Value {
    let mut event = json!({
        "application_id": APPLICATION.to_string(), "version": 1, "locale": "en-US",
        "channel_id": channel.to_string(), "channel": inner.channels.get(&channel),
        "entitlements": [], "authorizing_integration_owners": {}, "app_permissions": "0",
    });
    if inner.is_private(channel) {
        event["user"] = person(user);
    } else {
        event["guild_id"] = json!(GUILD.to_string());
        event["member"] = super::methods::member(inner, user);
        event["member"]["permissions"] = json!("0");
    }
    event
}
