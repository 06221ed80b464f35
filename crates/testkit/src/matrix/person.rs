//! Somebody with an account at a homeserver, holding an app.

use std::time::Duration;

use hermetic_types::RunId;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

/// An account, logged in. Clones are the same person.
#[derive(Clone, Debug)]
pub struct MatrixPerson {
    client: Client,
    base: String,
    user: String,
    token: String,
    device: String,
}

/// A message as people see it: as it was changed last.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownMessage {
    pub event: String,
    pub sender: String,
    pub text: String,
    /// Of the message as it was sent first.
    pub content: Value,
    /// How often it was changed.
    pub edits: usize,
}

pub(super) const PASSWORD: &str = "a password that is only for tests";

impl MatrixPerson {
    /// Registers somebody whose name begins so, and is nobody else's.
    pub async fn register(homeserver: &str, name: &str) -> Result<Self, String> {
        let client = Client::builder().no_proxy().build();
        let mut person = Self {
            client: client.map_err(|error| error.to_string())?,
            base: homeserver.to_owned(),
            user: String::new(),
            token: String::new(),
            device: String::new(),
        };
        let account = json!({
            "username": format!("{name}-{}", RunId::random()), "password": PASSWORD,
            "auth": { "type": "m.login.dummy" },
        });
        let made = person.post(&["register"], account).await;
        let field = |name: &str| made[name].as_str().map(str::to_owned);
        person.user = field("user_id").ok_or_else(|| format!("nobody was registered: {made}"))?;
        person.token = field("access_token").unwrap_or_default();
        person.device = field("device_id").unwrap_or_default();
        Ok(person)
    }

    pub fn user(&self) -> &str {
        &self.user
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn device(&self) -> &str {
        &self.device
    }

    pub fn password(&self) -> &str {
        PASSWORD
    }

    /// A room for two, to which the other one is invited.
    pub async fn opens_private(&self, other: &Self) -> String {
        self.opens(json!({
            "preset": "trusted_private_chat", "is_direct": true, "invite": [other.user],
        }))
        .await
    }

    /// A room to which these are invited.
    pub async fn opens_room(&self, others: &[&Self]) -> String {
        let invited: Vec<_> = others.iter().map(|other| &other.user).collect();
        self.opens(json!({ "preset": "private_chat", "invite": invited }))
            .await
    }

    pub async fn opens(&self, room: Value) -> String {
        let made = self.post(&["createRoom"], room).await;
        made["room_id"].as_str().unwrap_or_default().to_owned()
    }

    pub async fn joins(&self, room: &str) {
        self.post(&["join", room], json!({})).await;
    }

    pub async fn leaves(&self, room: &str) {
        self.post(&["rooms", room, "leave"], json!({})).await;
    }

    pub async fn kicks(&self, room: &str, other: &str) {
        self.post(&["rooms", room, "kick"], json!({ "user_id": other }))
            .await;
    }

    /// The name of the event that this made.
    pub async fn says(&self, room: &str, text: &str) -> String {
        self.sends(room, json!({ "msgtype": "m.text", "body": text }))
            .await
    }

    /// In the thread that begins with that message.
    pub async fn says_in_thread(&self, room: &str, root: &str, text: &str) -> String {
        let relation = json!({ "rel_type": "m.thread", "event_id": root, "is_falling_back": true,
            "m.in_reply_to": { "event_id": root } });
        self.sends(
            room,
            json!({ "msgtype": "m.text", "body": text, "m.relates_to": relation }),
        )
        .await
    }

    pub async fn sends(&self, room: &str, content: Value) -> String {
        self.sends_event(room, "m.room.message", content).await
    }

    pub async fn sends_event(&self, room: &str, kind: &str, content: Value) -> String {
        let transaction = RunId::random().to_string();
        let path = ["rooms", room, "send", kind, &transaction];
        let sent = self.put(&path, content).await;
        sent["event_id"].as_str().unwrap_or_default().to_owned()
    }

    pub async fn reacts(&self, room: &str, event: &str, emoji: &str) -> String {
        let relation = json!({ "rel_type": "m.annotation", "event_id": event, "key": emoji });
        self.sends_event(room, "m.reaction", json!({ "m.relates_to": relation }))
            .await
    }

    pub async fn redacts(&self, room: &str, event: &str) {
        let transaction = RunId::random().to_string();
        self.put(&["rooms", room, "redact", event, &transaction], json!({}))
            .await;
    }

    /// What the room is like from now on.
    pub async fn sets_state(&self, room: &str, kind: &str, content: Value) {
        self.put(&["rooms", room, "state", kind, ""], content).await;
    }

    /// Uploads a file; the address by which messages name it.
    pub async fn uploads(&self, bytes: &[u8], mime: &str) -> String {
        let request = self.request(Method::POST, "/_matrix/media/v3/upload");
        let request = request.header("content-type", mime).body(bytes.to_vec());
        let answer = answer(request).await;
        answer["content_uri"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The events of a room, oldest first.
    pub async fn events(&self, room: &str) -> Vec<Value> {
        let path = format!("{}?dir=f&limit=1000", address(&["rooms", room, "messages"]));
        let answer = answer(self.request(Method::GET, &path)).await;
        answer["chunk"].as_array().cloned().unwrap_or_default()
    }

    /// What somebody wrote in a room.
    pub async fn shown(&self, room: &str, sender: &str) -> Vec<ShownMessage> {
        let mut shown: Vec<ShownMessage> = Vec::new();
        for event in self.events(room).await {
            let is_message = event["type"] == "m.room.message" && event["sender"] == sender;
            let content = &event["content"];
            // A deleted one has no text.
            let Some(text) = content["body"].as_str().filter(|_| is_message) else {
                continue;
            };
            let relation = &content["m.relates_to"];
            if relation["rel_type"] == "m.replace" {
                let edited = shown
                    .iter_mut()
                    .find(|one| relation["event_id"] == one.event);
                if let Some(edited) = edited {
                    let new = content["m.new_content"]["body"].as_str();
                    edited.text = new.unwrap_or_default().to_owned();
                    edited.edits += 1;
                }
                continue;
            }
            shown.push(ShownMessage {
                event: event["event_id"].as_str().unwrap_or_default().to_owned(),
                sender: sender.to_owned(),
                text: text.to_owned(),
                content: content.clone(),
                edits: 0,
            });
        }
        shown
    }

    /// What somebody wrote in a room, once it is as wanted.
    pub async fn waits_for(
        &self,
        room: &str,
        sender: &str,
        wanted: impl Fn(&[ShownMessage]) -> bool,
    ) -> Vec<ShownMessage> {
        let waiting = async {
            let mut since = None;
            loop {
                let shown = self.shown(room, sender).await;
                if wanted(&shown) {
                    return shown;
                }
                since = self.next_position(since).await;
            }
        };
        match timeout(PATIENCE, waiting).await {
            Ok(shown) => shown,
            Err(_) => self.shown(room, sender).await,
        }
    }

    /// The members of a room, each with what they are in it.
    pub async fn members(&self, room: &str) -> Vec<(String, String, Option<String>)> {
        let answer = self.get(&["rooms", room, "members"]).await;
        let members = answer["chunk"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let members = members.iter().filter_map(|event| {
            let content = &event["content"];
            let reason = text(&content["reason"]);
            Some((
                text(&event["state_key"])?,
                text(&content["membership"])?,
                reason,
            ))
        });
        members.collect()
    }

    /// Waits until somebody is this in a room; the reason that was given with it.
    pub async fn waits_until_member(&self, room: &str, user: &str, is: &str) -> Option<String> {
        let waiting = async {
            let mut since = None;
            loop {
                let members = self.members(room).await;
                let found = members
                    .into_iter()
                    .find(|(name, what, _)| name == user && what == is);
                if let Some((_, _, reason)) = found {
                    return reason;
                }
                since = self.next_position(since).await;
            }
        };
        timeout(PATIENCE, waiting)
            .await
            .unwrap_or(Some("waited in vain".to_owned()))
    }

    /// Waits for anything to happen, a second at most.
    async fn next_position(&self, since: Option<String>) -> Option<String> {
        let answer = self.syncs(since.as_deref()).await;
        answer["next_batch"].as_str().map(str::to_owned)
    }

    /// Everything since a position, once there is something, or after a second.
    pub async fn syncs(&self, since: Option<&str>) -> Value {
        let mut path = format!("{}?timeout=1000", address(&["sync"]));
        if let Some(since) = since {
            path.push_str(&format!("&since={since}"));
        }
        answer(self.request(Method::GET, &path)).await
    }

    /// The same person with another app.
    pub async fn logs_in(&self) -> Self {
        let login = json!({ "type": "m.login.password", "password": PASSWORD,
            "identifier": { "type": "m.id.user", "user": self.user } });
        let made = self.post(&["login"], login).await;
        let field = |name: &str| made[name].as_str().unwrap_or_default().to_owned();
        Self {
            token: field("access_token"),
            device: field("device_id"),
            ..self.clone()
        }
    }

    /// The bytes of a file that was uploaded.
    pub async fn downloads(&self, url: &str) -> Vec<u8> {
        let media = url.strip_prefix("mxc://").unwrap_or_default();
        let path = format!("/_matrix/client/v1/media/download/{media}");
        match self.request(Method::GET, &path).send().await {
            Ok(answer) => answer.bytes().await.unwrap_or_default().to_vec(),
            Err(_) => Vec::new(),
        }
    }

    pub async fn get(&self, path: &[&str]) -> Value {
        answer(self.request(Method::GET, &address(path))).await
    }

    pub async fn post(&self, path: &[&str], body: Value) -> Value {
        answer(self.request(Method::POST, &address(path)).json(&body)).await
    }

    pub async fn put(&self, path: &[&str], body: Value) -> Value {
        answer(self.request(Method::PUT, &address(path)).json(&body)).await
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match self.token.is_empty() {
            true => request,
            false => request.bearer_auth(&self.token),
        }
    }
}

/// What was answered, also where it is a refusal.
async fn answer(request: reqwest::RequestBuilder) -> Value {
    match request.send().await {
        Ok(answer) => answer.json().await.unwrap_or_default(),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn address(path: &[&str]) -> String {
    let mut address = String::from("/_matrix/client/v3");
    for step in path {
        address.push('/');
        for byte in step.bytes() {
            match byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                true => address.push(char::from(byte)),
                false => address.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    address
}
