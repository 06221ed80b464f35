//! The methods, as documented.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use futures::stream;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::markdown_v2::visible_text;
use super::world::{Call, Failure, World};
use super::{BOT_ID, BOT_NAME, TOKEN};

pub(super) fn router(world: Arc<World>) -> Router {
    Router::new()
        .route("/{bot}/{method}", any(call))
        .route("/file/{bot}/{*path}", get(file))
        .layer(DefaultBodyLimit::max(64 << 20))
        .with_state(world)
}

async fn call(
    State(world): State<Arc<World>>,
    Path((bot, method)): Path<(String, String)>,
    request: Request,
) -> Response {
    if bot.strip_prefix("bot") != Some(TOKEN) {
        return refuse(401, "Unauthorized", None);
    }
    let Some((params, file)) = params(request).await else {
        return refuse(400, "Bad Request: cannot parse the request", None);
    };
    let after = match world.failure(&method) {
        None | Some(Failure::NotYet) => None,
        Some(Failure::Refuse {
            code,
            description,
            retry_after,
        }) => return refuse(code, description, retry_after),
        Some(Failure::BadGateway) => {
            return (StatusCode::BAD_GATEWAY, "<html>502 Bad Gateway</html>").into_response();
        }
        Some(Failure::Hang) => std::future::pending().await,
        Some(Failure::Drop) => return broken(),
        Some(Failure::DropAfter) => Some(()),
    };
    let answer = match method.as_str() {
        "getMe" => Ok(json!({
            "id": BOT_ID, "is_bot": true, "first_name": "Hermetic", "username": BOT_NAME,
        })),
        "getUpdates" => Ok(Value::Array(get_updates(&world, &params).await)),
        "sendMessage" => send_message(&world, &params),
        "editMessageText" => edit_message(&world, &params),
        "sendDocument" => send_document(&world, &params, file),
        "getFile" => get_file(&world, &params),
        "deleteWebhook"
        | "setWebhook"
        | "setMyCommands"
        | "sendChatAction"
        | "answerCallbackQuery" => {
            world.note(
                &method,
                Call {
                    params: params.clone(),
                    file: None,
                    message: 0,
                },
            );
            Ok(json!(true))
        }
        _ => return refuse(404, "Not Found", None),
    };
    if after.is_some() {
        return broken();
    }
    match answer {
        Ok(result) => Json(json!({ "ok": true, "result": result })).into_response(),
        Err(description) => refuse(400, &format!("Bad Request: {description}"), None),
    }
}

async fn get_updates(world: &World, params: &Value) -> Vec<Value> {
    let offset = params["offset"].as_i64();
    let hold = Duration::from_secs(params["timeout"].as_u64().unwrap_or(0));
    let waited = timeout(hold, async {
        loop {
            let changed = world.changed();
            let updates = world.take_updates(offset);
            if !updates.is_empty() {
                return updates;
            }
            changed.await;
        }
    });
    waited.await.unwrap_or_default()
}

fn send_message(world: &World, params: &Value) -> Result<Value, String> {
    let text = checked_text(params)?;
    check_buttons(&params["reply_markup"])?;
    let chat = params["chat_id"].as_i64().ok_or("chat not found")?;
    let message = world.next_message();
    world.set_text(chat, message, text);
    world.note(
        "sendMessage",
        Call {
            params: params.clone(),
            file: None,
            message,
        },
    );
    Ok(message_json(chat, message))
}

fn edit_message(world: &World, params: &Value) -> Result<Value, String> {
    let text = checked_text(params)?;
    check_buttons(&params["reply_markup"])?;
    let chat = params["chat_id"].as_i64().ok_or("chat not found")?;
    let message = params["message_id"]
        .as_i64()
        .ok_or("message identifier is not specified")?;
    let before = world
        .text(chat, message)
        .ok_or("message to edit not found")?;
    if before == text && params["reply_markup"].is_null() {
        return Err(
            "message is not modified: specified new message content is the same".to_owned(),
        );
    }
    world.set_text(chat, message, text);
    world.note(
        "editMessageText",
        Call {
            params: params.clone(),
            file: None,
            message,
        },
    );
    Ok(message_json(chat, message))
}

fn send_document(world: &World, params: &Value, file: Option<Bytes>) -> Result<Value, String> {
    let file = file
        .filter(|file| !file.is_empty())
        .ok_or("there is no document in the request")?;
    let chat = params["chat_id"]
        .as_str()
        .and_then(|chat| chat.parse().ok());
    let chat = chat.ok_or("chat not found")?;
    let message = world.next_message();
    world.note(
        "sendDocument",
        Call {
            params: params.clone(),
            file: Some(file),
            message,
        },
    );
    Ok(message_json(chat, message))
}

fn get_file(world: &World, params: &Value) -> Result<Value, String> {
    let id = params["file_id"]
        .as_str()
        .ok_or("file_id is not specified")?;
    let bytes = world.file(id).ok_or("invalid file_id")?;
    Ok(json!({ "file_id": id, "file_path": format!("documents/{id}"), "file_size": bytes.len() }))
}

async fn file(
    State(world): State<Arc<World>>,
    Path((bot, path)): Path<(String, String)>,
) -> Response {
    let known = bot.strip_prefix("bot") == Some(TOKEN);
    let bytes = path
        .strip_prefix("documents/")
        .and_then(|id| world.file(id));
    match (world.failure("file"), bytes.filter(|_| known)) {
        (Some(Failure::Drop), _) => broken(),
        (_, Some(bytes)) => Body::from(bytes).into_response(),
        (_, None) => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The text as it would be shown, if Telegram would show it.
fn checked_text(params: &Value) -> Result<String, String> {
    let text = params["text"].as_str().ok_or("message text is empty")?;
    let shown = match params["parse_mode"].as_str() {
        Some("MarkdownV2") => {
            visible_text(text).map_err(|error| format!("can't parse entities: {error}"))?
        }
        Some(mode) => return Err(format!("unsupported parse_mode {mode}")),
        None => text.to_owned(),
    };
    if shown.trim().is_empty() {
        return Err("message text is empty".to_owned());
    }
    if shown.encode_utf16().count() > 4096 {
        return Err("message is too long".to_owned());
    }
    Ok(shown)
}

fn check_buttons(markup: &Value) -> Result<(), String> {
    let rows = markup["inline_keyboard"].as_array().into_iter().flatten();
    for button in rows.filter_map(Value::as_array).flatten() {
        let data = button["callback_data"].as_str().unwrap_or_default();
        if !(1..=64).contains(&data.len()) {
            return Err("BUTTON_DATA_INVALID".to_owned());
        }
    }
    Ok(())
}

async fn params(request: Request) -> Option<(Value, Option<Bytes>)> {
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)?
        .to_str()
        .ok()?
        .to_owned();
    if !kind.starts_with("multipart/form-data") {
        let body = Bytes::from_request(request, &()).await.ok()?;
        return Some((serde_json::from_slice(&body).ok()?, None));
    }
    let mut form = Multipart::from_request(request, &()).await.ok()?;
    let (mut params, mut file) = (json!({}), None);
    while let Some(field) = form.next_field().await.ok()? {
        let name = field.name()?.to_owned();
        match field.file_name().map(str::to_owned) {
            Some(file_name) => {
                params["file_name"] = json!(file_name);
                file = Some(field.bytes().await.ok()?);
            }
            None => params[name] = json!(field.text().await.ok()?),
        }
    }
    Some((params, file))
}

fn message_json(chat: i64, message: i64) -> Value {
    json!({
        "message_id": message,
        "date": 1_700_000_000,
        "chat": { "id": chat, "type": "private" },
        "from": { "id": BOT_ID, "is_bot": true, "first_name": "Hermetic" },
    })
}

fn refuse(code: u16, description: &str, retry_after: Option<u64>) -> Response {
    let mut body = json!({ "ok": false, "error_code": code, "description": description });
    if let Some(seconds) = retry_after {
        body["parameters"] = json!({ "retry_after": seconds });
    }
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
    (status, Json(body)).into_response()
}

/// Headers, half a body, and the end of the connection.
fn broken() -> Response {
    let chunks = [
        Ok(Bytes::from_static(b"{\"ok\":")),
        Err(std::io::Error::other("dropped")),
    ];
    Body::from_stream(stream::iter(chunks)).into_response()
}
