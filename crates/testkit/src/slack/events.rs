//! What people do, and what Slack tells of it.

use serde_json::{Value, json};

use super::{BOT_ID, BOT_USER, SlackServer, TEAM};

/// The private channel of a person and the bot.
pub fn direct_channel(user: &str) -> String {
    format!("D{}", user.get(1..).unwrap_or_default())
}

impl SlackServer {
    /// Somebody writes to the bot in private. Returns the message's time.
    pub fn says(&self, user: &str, text: &str) -> String {
        self.says_in(&direct_channel(user), user, json!({ "text": text }))
    }

    /// Somebody writes somewhere, with any fields of a message.
    pub fn says_in(&self, channel: &str, user: &str, fields: Value) -> String {
        let message = self.writes(channel, user, fields);
        let ts = message["ts"].as_str().unwrap_or_default().to_owned();
        self.event(message_event(channel, &message));
        ts
    }

    /// The same, unheard: it only stands in the history.
    pub fn writes(&self, channel: &str, user: &str, fields: Value) -> Value {
        let ts = self.world.next_ts();
        let mut message = json!({
            "type": "message", "ts": ts, "user": user, "team": TEAM,
            "client_msg_id": format!("client-{ts}"),
        });
        if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
            message.extend(fields);
        }
        let thread = message["thread_ts"].as_str();
        let parent = thread.and_then(|thread| self.message(channel, thread));
        if let Some(parent) = parent {
            message["parent_user_id"] = parent["user"].clone();
        }
        self.world.put(channel, &ts, message.clone());
        message
    }

    /// Somebody names the bot, of which Slack tells twice.
    pub fn mentions(&self, channel: &str, user: &str, text: &str) -> String {
        let text = format!("<@{BOT_USER}> {text}");
        let message = self.writes(channel, user, json!({ "text": text }));
        let event = message_event(channel, &message);
        let mut mention = event.clone();
        mention["type"] = json!("app_mention");
        self.event(event);
        self.event(mention);
        message["ts"].as_str().unwrap_or_default().to_owned()
    }

    /// Any event of the bot's own workspace. Returns the envelope's id.
    #[expect(clippy::needless_pass_by_value, reason = "callers write it in place")]
    pub fn event(&self, event: Value) -> String {
        self.world.deliver("events_api", &self.callback(&event))
    }

    /// Any payload, by the envelope's kind.
    #[expect(clippy::needless_pass_by_value, reason = "callers write it in place")]
    pub fn envelope(&self, kind: &str, payload: Value) -> String {
        self.world.deliver(kind, &payload)
    }

    /// The payload that carries an event.
    pub fn callback(&self, event: &Value) -> Value {
        let id = format!("Ev{}", self.world.number());
        json!({
            "type": "event_callback", "team_id": TEAM, "api_app_id": "A0APP",
            "event": event, "event_id": id, "event_time": 1_700_000_000,
            "authorizations": [
                { "team_id": TEAM, "user_id": BOT_USER, "is_bot": true, "is_enterprise_install": false },
            ],
            "is_ext_shared_channel": false,
        })
    }

    /// Somebody presses a button under one of the bot's messages.
    pub fn presses(&self, user: &str, channel: &str, ts: &str, value: &str) -> String {
        let payload = self.press(user, channel, ts, value);
        self.world.deliver("interactive", &payload)
    }

    /// The payload that carries a press.
    pub fn press(&self, user: &str, channel: &str, ts: &str, value: &str) -> Value {
        let message = self
            .message(channel, ts)
            .unwrap_or_else(|| json!({ "ts": ts, "bot_id": BOT_ID }));
        json!({
            "type": "block_actions", "api_app_id": "A0APP", "trigger_id": "1.2.3",
            "team": { "id": TEAM, "domain": "home" }, "enterprise": null,
            "user": { "id": user, "username": "somebody", "team_id": TEAM },
            "container": { "type": "message", "message_ts": ts, "channel_id": channel },
            "channel": { "id": channel, "name": "general" },
            "message": message,
            "response_url": "https://hooks.slack.com/actions/none",
            "actions": [{
                "type": "button", "action_id": "choice-0-0", "block_id": "x", "value": value,
                "action_ts": self.world.next_ts(),
            }],
        })
    }

    /// Somebody uses a slash command.
    pub fn commands(&self, user: &str, channel: &str, command: &str, text: &str) -> String {
        let payload = json!({
            "command": command, "text": text, "user_id": user, "user_name": "somebody",
            "channel_id": channel, "channel_name": "general", "team_id": TEAM,
            "trigger_id": format!("{}.1.x", self.world.number()), "api_app_id": "A0APP",
        });
        self.world.deliver("slash_commands", &payload)
    }

    /// Somebody changes a message of theirs.
    pub fn edits(&self, channel: &str, ts: &str, text: &str) -> String {
        let at = self.world.next_ts();
        let before = self.message(channel, ts).unwrap_or_default();
        let mut changed = before.clone();
        changed["text"] = json!(text);
        changed["edited"] = json!({ "user": before["user"], "ts": at });
        self.world.put(channel, ts, changed.clone());
        self.event(json!({
            "type": "message", "subtype": "message_changed", "hidden": true, "channel": channel,
            "ts": at, "event_ts": at, "message": changed, "previous_message": before,
        }))
    }

    /// Somebody deletes a message.
    pub fn deletes(&self, channel: &str, ts: &str) -> String {
        let removed = {
            let mut inner = self.world.lock();
            inner
                .channels
                .get_mut(channel)
                .and_then(|messages| messages.remove(ts))
        };
        self.event(json!({
            "type": "message", "subtype": "message_deleted", "hidden": true, "channel": channel,
            "ts": self.world.next_ts(), "deleted_ts": ts, "previous_message": removed,
        }))
    }

    /// So many messages on a page of a history.
    pub fn page_size(&self, messages: usize) {
        self.world.lock().page = messages;
    }
}

fn message_event(channel: &str, message: &Value) -> Value {
    let mut event = message.clone();
    event["channel"] = json!(channel);
    event["event_ts"] = message["ts"].clone();
    event["channel_type"] = json!(match channel.chars().next() {
        Some('D') => "im",
        _ => "channel",
    });
    event
}
