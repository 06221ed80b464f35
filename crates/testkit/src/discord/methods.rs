//! What is asked of the HTTP API, answered as documented.

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::rest::Refusal;
use super::rules;
use super::world::{Call, Inner, World, application, bot};
use super::{APPLICATION, BOT_ID, GUILD};

/// Discord takes back what is not answered within this many seconds.
const PRESS_LIVES: u64 = 3;

const UNKNOWN_CHANNEL: Refusal = (404, 10003, "Unknown Channel");
const UNKNOWN_MESSAGE: Refusal = (404, 10008, "Unknown Message");
const UNKNOWN_INTERACTION: Refusal = (404, 10062, "Unknown interaction");
const UNKNOWN_WEBHOOK: Refusal = (404, 10015, "Unknown Webhook");

pub(super) struct Asked<'a> {
    pub(super) world: &'a World,
    pub(super) route: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) body: Value,
    pub(super) file: Option<Bytes>,
}

pub(super) fn answer(asked: Asked<'_>) -> Result<Value, Refusal> {
    let ids: Vec<u64> = asked
        .path
        .split('/')
        .filter_map(|step| step.parse().ok())
        .collect();
    let id = |index: usize| ids.get(index).copied().unwrap_or_default();
    let (body, file) = (&asked.body, asked.file.as_ref());
    let (answer, message) = asked.world.change(|inner| {
        Ok(match asked.route {
            "GET /gateway/bot" => (gateway(inner), 0),
            "GET /users/@me" => (bot(), 0),
            "GET /applications/@me" | "GET /oauth2/applications/@me" => {
                (application(inner.has_message_content), 0)
            }
            "POST /users/@me/channels" => (private(inner, body)?, 0),
            "GET /channels/{}" => (
                inner.channels.get(&id(0)).cloned().ok_or(UNKNOWN_CHANNEL)?,
                0,
            ),
            "GET /users/@me/guilds" => (guilds(inner), 0),
            "GET /guilds/{}/members/{}" => (member(inner, id(1)), 0),
            "GET /channels/{}/messages" => (history(inner, id(0), asked.query)?, 0),
            "GET /channels/{}/messages/{}" => (
                inner
                    .messages
                    .get(&(id(0), id(1)))
                    .cloned()
                    .ok_or(UNKNOWN_MESSAGE)?,
                0,
            ),
            "POST /channels/{}/messages" => create(inner, id(0), body, file)?,
            "PATCH /channels/{}/messages/{}" => (edit(inner, (id(0), id(1)), body)?, id(1)),
            "POST /channels/{}/messages/{}/threads" => (thread(inner, id(0), id(1), body)?, 0),
            "PUT /channels/{}/thread-members/@me" | "POST /channels/{}/typing" => {
                inner.channels.get(&id(0)).ok_or(UNKNOWN_CHANNEL)?;
                (Value::Null, 0)
            }
            "GET /applications/{}/commands" => (json!(inner.commands), 0),
            "POST /applications/{}/commands" => (command(inner, body), 0),
            "PUT /applications/{}/commands" => {
                inner.commands = body.as_array().cloned().unwrap_or_default();
                (json!(inner.commands), 0)
            }
            "POST /interactions/{}/{}/callback" => (callback(inner, asked.path)?, 0),
            "POST /webhooks/{}/{}" | "PATCH /webhooks/{}/{}/messages/@original" => {
                followed_up(inner, asked.path)?;
                (json!({ "id": inner.next_id().to_string() }), 0)
            }
            "DELETE /webhooks/{}/{}/messages/@original" => {
                followed_up(inner, asked.path)?;
                (Value::Null, 0)
            }
            _ => return Err((404, 0, "404: Not Found")),
        })
    })?;
    let call = Call {
        path: format!("/{}", asked.path),
        body: asked.body,
        file: asked.file,
        message,
    };
    asked.world.note(asked.route, call);
    Ok(answer)
}

fn guilds(inner: &Inner) -> Value {
    json!([{
        "id": GUILD.to_string(), "name": "Test", "icon": null, "banner": null, "owner": false,
        "permissions": inner.permissions.to_string(), "features": [],
    }])
}

/// Somebody in the server, by their id.
pub(super) fn member(inner: &Inner, user: u64) -> Value {
    let roles = inner.roles.get(&user).into_iter().flatten();
    let roles: Vec<_> = roles.map(u64::to_string).collect();
    json!({
        "user": super::world::person(user), "roles": roles, "nick": null,
        "joined_at": "2026-01-01T00:00:00+00:00", "deaf": false, "mute": false, "flags": 0,
    })
}

fn gateway(inner: &Inner) -> Value {
    json!({
        "url": inner.gateway_url, "shards": 1,
        "session_start_limit": {
            "total": 1000, "remaining": inner.starts_left, "reset_after": 14_400_000,
            "max_concurrency": 1,
        },
    })
}

fn private(inner: &mut Inner, body: &Value) -> Result<Value, Refusal> {
    let user = body["recipient_id"].as_str().and_then(|id| id.parse().ok());
    let user = user.ok_or((400, 50035, "Invalid Form Body"))?;
    let channel = inner.private_channel(user);
    Ok(inner.channels[&channel].clone())
}

/// The newest first, whatever was asked.
fn history(inner: &Inner, channel: u64, query: &str) -> Result<Value, Refusal> {
    inner.channels.get(&channel).ok_or(UNKNOWN_CHANNEL)?;
    let asked = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(key, _)| *key == name)
            .and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let limit = asked("limit").unwrap_or(50);
    if !(1..=100).contains(&limit) {
        return Err((400, 50035, "Invalid Form Body"));
    }
    let after = asked("after").unwrap_or(0);
    let all = inner
        .messages
        .range((channel, after + 1)..=(channel, u64::MAX));
    let mut page: Vec<_> = all.map(|(_, message)| message.clone()).collect();
    page.truncate(usize::try_from(limit).unwrap_or(100));
    page.reverse();
    Ok(Value::Array(page))
}

fn create(
    inner: &mut Inner,
    channel: u64,
    body: &Value,
    file: Option<&Bytes>,
) -> Result<(Value, u64), Refusal> {
    inner.channels.get(&channel).ok_or(UNKNOWN_CHANNEL)?;
    rules::check_message(inner, channel, body, file)?;
    let nonce = body["nonce"]
        .as_str()
        .filter(|_| body["enforce_nonce"] == true);
    if let Some(at) = nonce.and_then(|nonce| inner.nonces.get(nonce)) {
        return Ok((inner.messages[at].clone(), at.1));
    }
    let message = json!({
        "type": 0, "author": bot(), "content": body["content"].as_str().unwrap_or_default(),
        "timestamp": "2026-11-17T12:00:00+00:00", "edited_timestamp": null, "tts": false,
        "mention_everyone": false, "mentions": [], "mention_roles": [], "attachments": [],
        "embeds": [], "pinned": false, "flags": body["flags"].as_u64().unwrap_or(0),
        "components": body["components"].as_array().cloned().unwrap_or_default(),
    });
    let id = inner.post(channel, message);
    if let Some(nonce) = nonce {
        inner.nonces.insert(nonce.to_owned(), (channel, id));
    }
    Ok((inner.messages[&(channel, id)].clone(), id))
}

fn edit(inner: &mut Inner, at: (u64, u64), body: &Value) -> Result<Value, Refusal> {
    rules::check_message(inner, at.0, body, None)?;
    let message = inner.messages.get_mut(&at).ok_or(UNKNOWN_MESSAGE)?;
    if message["author"]["id"].as_str() != Some(BOT_ID.to_string().as_str()) {
        return Err((403, 50005, "Cannot edit a message authored by another user"));
    }
    for field in ["content", "components"] {
        if let Some(value) = body.get(field) {
            message[field] = value.clone();
        }
    }
    Ok(message.clone())
}

/// A thread has the id of the message that it hangs under, and there is one at most.
fn thread(inner: &mut Inner, channel: u64, message: u64, body: &Value) -> Result<Value, Refusal> {
    if !inner.may_make_threads {
        return Err((403, 50013, "Missing Permissions"));
    }
    inner
        .messages
        .get(&(channel, message))
        .ok_or(UNKNOWN_MESSAGE)?;
    if inner.channels.contains_key(&message) {
        return Err((
            400,
            160_004,
            "A thread has already been created for this message",
        ));
    }
    let name = body["name"]
        .as_str()
        .filter(|name| (1..=100).contains(&name.chars().count()));
    let made = json!({
        "id": message.to_string(), "type": 11, "guild_id": GUILD.to_string(),
        "parent_id": channel.to_string(), "owner_id": BOT_ID.to_string(),
        "name": name.ok_or((400, 50035, "Invalid Form Body"))?, "last_message_id": null,
        "message_count": 0, "member_count": 1, "rate_limit_per_user": 0,
        "thread_metadata": {
            "archived": false, "auto_archive_duration": 1440, "locked": false,
            "archive_timestamp": "2026-11-17T12:00:00+00:00",
        },
    });
    inner.channels.insert(message, made.clone());
    inner.dispatch("THREAD_CREATE", made.clone());
    Ok(made)
}

fn command(inner: &mut Inner, body: &Value) -> Value {
    let mut made = body.clone();
    made["id"] = json!(inner.next_id().to_string());
    made["application_id"] = json!(APPLICATION.to_string());
    inner.commands.retain(|other| other["name"] != made["name"]);
    inner.commands.push(made.clone());
    made
}

/// The first answer to an interaction: once, and in time.
fn callback(inner: &mut Inner, path: &str) -> Result<Value, Refusal> {
    let token = path.split('/').nth(2).unwrap_or_default();
    let interaction = inner
        .interactions
        .get_mut(token)
        .ok_or(UNKNOWN_INTERACTION)?;
    let is_late = interaction.made + std::time::Duration::from_secs(PRESS_LIVES) < Instant::now();
    if is_late || !path.contains(&format!("/{}/", interaction.id)) {
        return Err(UNKNOWN_INTERACTION);
    }
    if interaction.acknowledged {
        return Err((400, 40060, "Interaction has already been acknowledged."));
    }
    interaction.acknowledged = true;
    Ok(Value::Null)
}

fn followed_up(inner: &Inner, path: &str) -> Result<(), Refusal> {
    let token = path.split('/').nth(2).unwrap_or_default();
    let interaction = inner.interactions.get(token).ok_or(UNKNOWN_WEBHOOK)?;
    interaction
        .acknowledged
        .then_some(())
        .ok_or(UNKNOWN_WEBHOOK)
}
