//! The methods of the Web API, as documented.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use futures::stream;
use serde_json::{Value, json};

use super::events::direct_channel;
use super::params::{read, text, token};
use super::world::{Failure, World};
use super::{APP_TOKEN, BOT_ID, BOT_TOKEN, BOT_USER, TEAM, files};

type Done = Result<Value, &'static str>;

pub(super) fn router(world: Arc<World>) -> Router {
    Router::new()
        .route("/api/{method}", any(call))
        .route("/upload/{id}", post(files::upload))
        .route("/files/{id}", get(files::download))
        .layer(DefaultBodyLimit::max(128 << 20))
        .with_state(world)
}

async fn call(
    State(world): State<Arc<World>>,
    Path(method): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let failure = world.attempt(&method);
    let Some(params) = read(&headers, &query.unwrap_or_default(), &body) else {
        return refuse("invalid_arguments");
    };
    let wanted = match method.as_str() {
        "apps.connections.open" => APP_TOKEN,
        _ => BOT_TOKEN,
    };
    if token(&headers, &params) != wanted {
        return refuse("invalid_auth");
    }
    match failure {
        None | Some(Failure::NotYet | Failure::DropAfter) => {}
        Some(Failure::Refuse(error)) => return refuse(error),
        Some(Failure::Throttle(seconds)) => {
            let body = Json(json!({ "ok": false, "error": "ratelimited" }));
            let wait = [("retry-after", seconds.to_string())];
            return (StatusCode::TOO_MANY_REQUESTS, wait, body).into_response();
        }
        Some(Failure::BadGateway) => {
            return (StatusCode::BAD_GATEWAY, "<html>502 Bad Gateway</html>").into_response();
        }
        Some(Failure::Drop) => return broken(),
    }
    let done = carry_out(&world, &method, &params);
    if matches!(failure, Some(Failure::DropAfter)) {
        return broken();
    }
    match done {
        Ok(mut answer) => {
            world.note_call(&method, params);
            answer["ok"] = json!(true);
            ([("x-oauth-scopes", world.scopes())], Json(answer)).into_response()
        }
        Err(error) => refuse(error),
    }
}

fn carry_out(world: &World, method: &str, params: &Value) -> Done {
    match method {
        "auth.test" => Ok(json!({
            "url": "https://home.slack.com/", "team": "Home", "user": "hermetic",
            "team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT_ID, "is_enterprise_install": false,
        })),
        "apps.connections.open" => Ok(open_connection(world)),
        "chat.postMessage" => post_message(world, params),
        "chat.postEphemeral" => {
            text(params, "user").map(|_| json!({ "message_ts": world.next_ts() }))
        }
        "chat.update" => update(world, params),
        "chat.delete" => delete(world, params),
        "conversations.open" => {
            let user = text(params, "users")?;
            Ok(json!({ "channel": { "id": direct_channel(user) } }))
        }
        "conversations.history" => history(world, params),
        "conversations.replies" => replies(world, params),
        "users.conversations" => Ok(joined(world, params)),
        "files.getUploadURLExternal" => files::upload_url(world, params),
        "files.completeUploadExternal" => files::complete(world, params),
        "files.info" => files::info(world, params),
        "assistant.threads.setStatus" => text(params, "thread_ts").map(|_| json!({})),
        "users.info" => text(params, "user").map(|user| {
            let name = world.lock().names.get(user).cloned().unwrap_or_default();
            json!({ "user": { "id": user, "profile": { "display_name": "", "real_name": name } } })
        }),
        _ => Err("unknown_method"),
    }
}

fn open_connection(world: &World) -> Value {
    let ticket = format!("ticket-{}", world.number());
    world.lock().tickets.push(ticket.clone());
    json!({ "url": format!("ws://{}/link/?ticket={ticket}&app_id=A0APP", world.sockets_at) })
}

fn post_message(world: &World, params: &Value) -> Done {
    let channel = text(params, "channel")?;
    let words = checked_text(params, 40_000)?;
    let ts = world.next_ts();
    let mut message = json!({
        "type": "message", "ts": ts, "text": words,
        "user": BOT_USER, "bot_id": BOT_ID, "team": TEAM,
    });
    if let Some(blocks) = params.get("blocks") {
        message["blocks"] = blocks.clone();
    }
    // When the thread is gone, Slack posts to the channel and only leaves the thread out.
    let thread = params["thread_ts"].as_str();
    let is_there = |thread: &&str| {
        let inner = world.lock();
        inner
            .channels
            .get(channel)
            .is_some_and(|messages| messages.contains_key(*thread))
    };
    if let Some(thread) = thread.filter(is_there) {
        message["thread_ts"] = json!(thread);
    }
    world.put(channel, &ts, message.clone());
    Ok(json!({ "channel": channel, "ts": ts, "message": message }))
}

fn update(world: &World, params: &Value) -> Done {
    let (channel, ts) = (text(params, "channel")?, text(params, "ts")?);
    let words = checked_text(params, 4000)?;
    let mut inner = world.lock();
    let message = inner
        .channels
        .get_mut(channel)
        .and_then(|messages| messages.get_mut(ts));
    let message = message.ok_or("message_not_found")?;
    message["text"] = json!(words);
    if let Some(blocks) = params.get("blocks") {
        message["blocks"] = blocks.clone();
    }
    Ok(json!({ "channel": channel, "ts": ts, "text": words }))
}

fn delete(world: &World, params: &Value) -> Done {
    let (channel, ts) = (text(params, "channel")?, text(params, "ts")?);
    let mut inner = world.lock();
    let messages = inner.channels.get_mut(channel).ok_or("channel_not_found")?;
    messages.remove(ts).ok_or("message_not_found")?;
    Ok(json!({ "channel": channel, "ts": ts }))
}

fn checked_text(params: &Value, longest: usize) -> Result<String, &'static str> {
    let text = params["text"].as_str().unwrap_or_default();
    let blocks = params["blocks"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    check_blocks(blocks)?;
    if text.trim().is_empty() && blocks.is_empty() {
        return Err("no_text");
    }
    if text.chars().count() > longest {
        return Err("msg_too_long");
    }
    Ok(text.to_owned())
}

fn check_blocks(blocks: &[Value]) -> Result<(), &'static str> {
    let length = |text: &Value| text.as_str().map_or(0, |text| text.chars().count());
    let mut ids = std::collections::BTreeSet::new();
    for block in blocks {
        let fine = match block["type"].as_str() {
            Some("section") => (1..=3000).contains(&length(&block["text"]["text"])),
            Some("actions") => {
                let elements = block["elements"]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                (1..=25).contains(&elements.len())
                    && elements.iter().all(|button| {
                        (1..=75).contains(&length(&button["text"]["text"]))
                            && length(&button["value"]) <= 2000
                            && ids.insert(button["action_id"].to_string())
                    })
            }
            _ => false,
        };
        if !fine {
            return Err("invalid_blocks");
        }
    }
    match blocks.len() <= 50 {
        true => Ok(()),
        false => Err("invalid_blocks"),
    }
}

/// Parents only, the newest first, page by page.
fn history(world: &World, params: &Value) -> Done {
    let channel = text(params, "channel")?;
    let inner = world.lock();
    let messages = inner.channels.get(channel).ok_or("channel_not_found")?;
    let is_parent = |message: &Value| {
        let thread = &message["thread_ts"];
        thread.is_null() || *thread == message["ts"] || message["subtype"] == "thread_broadcast"
    };
    let parents = messages.values().rev().filter(|message| is_parent(message));
    let with_replies = parents.map(|parent| {
        let replies = messages.values().filter(|message| {
            message["thread_ts"] == parent["ts"] && message["ts"] != parent["ts"]
        });
        let mut parent = parent.clone();
        if let Some(latest) = replies.filter_map(|reply| reply["ts"].as_str()).max() {
            parent["latest_reply"] = json!(latest);
            parent["thread_ts"] = parent["ts"].clone();
        }
        parent
    });
    Ok(page(with_replies.collect(), params, inner.page))
}

/// The parent and then the replies, the oldest first.
fn replies(world: &World, params: &Value) -> Done {
    let (channel, thread) = (text(params, "channel")?, text(params, "ts")?);
    let inner = world.lock();
    let messages = inner.channels.get(channel).ok_or("channel_not_found")?;
    if !messages.contains_key(thread) {
        return Err("thread_not_found");
    }
    let of_thread = messages
        .values()
        .filter(|message| message["ts"] == *thread || message["thread_ts"] == *thread);
    Ok(page(of_thread.cloned().collect(), params, inner.page))
}

fn page(messages: Vec<Value>, params: &Value, most: usize) -> Value {
    let oldest = params["oldest"].as_str().unwrap_or_default();
    let latest = params["latest"].as_str().unwrap_or("9");
    let inclusive = params["inclusive"] == "true" || params["inclusive"] == true;
    let within = |message: &Value| {
        let ts = message["ts"].as_str().unwrap_or_default();
        (ts > oldest && ts < latest) || inclusive && (ts == oldest || ts == latest)
    };
    let wanted: Vec<_> = messages.into_iter().filter(within).collect();
    let limit = params["limit"]
        .as_str()
        .and_then(|limit| limit.parse().ok())
        .unwrap_or(100);
    let from = params["cursor"]
        .as_str()
        .and_then(|cursor| cursor.parse().ok())
        .unwrap_or(0);
    let size = most.min(limit);
    let has_more = wanted.len() > from + size;
    let next = if has_more {
        (from + size).to_string()
    } else {
        String::new()
    };
    let messages: Vec<_> = wanted.into_iter().skip(from).take(size).collect();
    json!({
        "messages": messages, "has_more": has_more,
        "response_metadata": { "next_cursor": next },
    })
}

fn joined(world: &World, params: &Value) -> Value {
    let wants_private = params["types"]
        .as_str()
        .is_some_and(|types| types.contains("im"));
    let inner = world.lock();
    let channels = inner
        .channels
        .keys()
        .filter(|id| id.starts_with('D') == wants_private);
    let cursor = params["cursor"].as_str();
    let from: usize = cursor
        .and_then(|cursor| cursor.parse().ok())
        .unwrap_or_default();
    let listed: Vec<_> = channels.skip(from).collect();
    let next = match listed.len() > inner.page {
        true => (from + inner.page).to_string(),
        false => String::new(),
    };
    let listed = listed.iter().take(inner.page);
    let channels: Vec<_> = listed.map(|id| json!({ "id": id })).collect();
    json!({ "channels": channels, "response_metadata": { "next_cursor": next } })
}

fn refuse(error: &str) -> Response {
    Json(json!({ "ok": false, "error": error })).into_response()
}

/// Headers, half a body, and the end of the connection.
pub(super) fn broken() -> Response {
    let chunks = [
        Ok(Bytes::from_static(b"{\"ok\":")),
        Err(std::io::Error::other("dropped")),
    ];
    Body::from_stream(stream::iter(chunks)).into_response()
}
