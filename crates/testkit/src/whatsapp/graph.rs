//! The Graph API, as documented.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Multipart, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::stream;
use serde_json::{Value, json};

use super::webhook::Webhook;
use super::world::{Failure, SentMessage, World};
use super::{DISPLAY_NUMBER, PHONE_NUMBER_ID, SECOND_NUMBER_ID, TOKEN, notification};

#[derive(Clone)]
struct Graph {
    world: Arc<World>,
    webhook: Webhook,
    address: SocketAddr,
}

pub(super) fn router(world: Arc<World>, webhook: Webhook, address: SocketAddr) -> Router {
    Router::new()
        .route("/{version}/{number}/messages", post(messages))
        .route("/{version}/{number}/media", post(upload))
        .route("/{version}/{node}", get(look_up))
        .route("/lookaside/{id}", get(file))
        .layer(DefaultBodyLimit::max(128 << 20))
        .with_state(Graph {
            world,
            webhook,
            address,
        })
}

async fn messages(
    State(graph): State<Graph>,
    Path((version, number)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Some(refused) = check_call(&headers, &version, &number) {
        return refused;
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return refuse(400, 100, None);
    };
    let is_read = body["status"] == "read";
    let failure = graph
        .world
        .failure(if is_read { "read" } else { "messages" });
    if let Some(failed) = failed(failure.as_ref()) {
        return failed;
    }
    if is_read {
        let message = body["message_id"].as_str().unwrap_or_default();
        let typing = body["typing_indicator"]["type"] == "text";
        graph.world.note_read(message.to_owned(), typing);
        return Json(json!({ "success": true })).into_response();
    }
    if let Err(code) = check_message(&graph.world, &body) {
        return refuse(400, code, None);
    }
    let id = graph.world.next_id();
    graph.world.note_sent(SentMessage {
        id: id.clone(),
        body: body.clone(),
    });
    if let Some(failed) = graph.world.next_status() {
        let status = notification::status(&id, &body, failed);
        graph.webhook.post_status(status);
    }
    if failure.is_some() {
        return broken();
    }
    Json(json!({ "messaging_product": "whatsapp", "messages": [{ "id": id }] })).into_response()
}

async fn upload(
    State(graph): State<Graph>,
    Path((version, number)): Path<(String, String)>,
    headers: HeaderMap,
    mut form: Multipart,
) -> Response {
    if let Some(refused) = check_call(&headers, &version, &number) {
        return refused;
    }
    if let Some(failed) = failed(graph.world.failure("media").as_ref()) {
        return failed;
    }
    let (mut product, mut kind, mut bytes) = (None, None, None);
    while let Ok(Some(field)) = form.next_field().await {
        match field.name() {
            Some("messaging_product") => product = field.text().await.ok(),
            Some("type") => kind = field.text().await.ok(),
            Some("file") => bytes = field.bytes().await.ok(),
            _ => {}
        }
    }
    let known = kind.is_some_and(|kind| !kind.ends_with("octet-stream"));
    match bytes.filter(|_| known && product.as_deref() == Some("whatsapp")) {
        Some(bytes) => {
            let id = graph.world.next_id().replace("wamid.HBgL", "77");
            graph.world.put_file(&id, bytes);
            Json(json!({ "id": id })).into_response()
        }
        None => refuse(400, 100, None),
    }
}

/// A number, or a file.
async fn look_up(
    State(graph): State<Graph>,
    Path((version, node)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    if let Some(refused) = check_call(&headers, &version, PHONE_NUMBER_ID) {
        return refused;
    }
    if is_number(&node) {
        return match failed(graph.world.failure("number").as_ref()) {
            Some(failed) => failed,
            None => Json(json!({
                "id": node,
                "display_phone_number": DISPLAY_NUMBER,
                "verified_name": "Hermetic",
                "quality_rating": "GREEN",
            }))
            .into_response(),
        };
    }
    match graph.world.file(&node) {
        Some(bytes) => Json(json!({
            "id": node,
            "messaging_product": "whatsapp",
            "url": format!("http://{}/lookaside/{node}", graph.address),
            "mime_type": "text/plain",
            "file_size": bytes.len(),
        }))
        .into_response(),
        None => refuse(400, 100, None),
    }
}

async fn file(State(graph): State<Graph>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let failure = graph.world.failure("file");
    match graph.world.file(&id).filter(|_| is_known(&headers)) {
        Some(_) if failure.is_some() => broken(),
        Some(bytes) => Body::from(bytes).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn check_call(headers: &HeaderMap, version: &str, number: &str) -> Option<Response> {
    if !is_known(headers) {
        return Some(refuse(401, 190, None));
    }
    let versioned = version.starts_with('v') && version.ends_with(".0");
    (!versioned || !is_number(number)).then(|| refuse(400, 100, None))
}

fn is_number(node: &str) -> bool {
    [PHONE_NUMBER_ID, SECOND_NUMBER_ID].contains(&node)
}

fn is_known(headers: &HeaderMap) -> bool {
    let shown = headers.get(header::AUTHORIZATION);
    shown.is_some_and(|shown| shown.as_bytes() == format!("Bearer {TOKEN}").as_bytes())
}

/// Meta's code if it would not take this message.
fn check_message(world: &World, body: &Value) -> Result<(), i64> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = text(&body["to"]);
    let id = text(&body["recipient"]);
    let named = match body["recipient_type"].as_str() {
        Some("group") => !number.is_empty() && id.is_empty(),
        _ if id.is_empty() => !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()),
        _ => number.is_empty() && id.get(2..3) == Some("."),
    };
    if body["messaging_product"] != "whatsapp" || !named {
        return Err(100);
    }
    let fits = |value: &Value, most: usize| {
        let text = text(value);
        !text.trim().is_empty() && text.encode_utf16().count() <= most
    };
    let is_good = match body["type"].as_str() {
        Some("text") => fits(&body["text"]["body"], 4096),
        Some("interactive") => {
            let interactive = &body["interactive"];
            body["recipient_type"] != "group"
                && fits(&interactive["body"]["text"], 1024)
                && check_choices(interactive)
        }
        Some("template") => fits(&body["template"]["name"], 512),
        Some(kind @ ("document" | "image" | "audio" | "video")) => {
            let media = &body[kind];
            let caption = media.get("caption");
            world.file(&text(&media["id"])).is_some()
                && caption.is_none_or(|caption| kind != "audio" && fits(caption, 1024))
        }
        _ => false,
    };
    if is_good { Ok(()) } else { Err(131_009) }
}

fn check_choices(interactive: &Value) -> bool {
    let action = &interactive["action"];
    let (choices, most, title, id): (Vec<&Value>, _, _, _) = match interactive["type"].as_str() {
        Some("button") => {
            let buttons = action["buttons"].as_array().into_iter().flatten();
            (buttons.map(|button| &button["reply"]).collect(), 3, 20, 256)
        }
        Some("list") => {
            let rows = action["sections"][0]["rows"].as_array();
            (rows.into_iter().flatten().collect(), 10, 24, 200)
        }
        _ => return false,
    };
    let length = |value: &Value| value.as_str().unwrap_or_default().encode_utf16().count();
    let fits = |choice: &&Value| {
        (1..=title).contains(&length(&choice["title"])) && (1..=id).contains(&length(&choice["id"]))
    };
    (1..=most).contains(&choices.len()) && choices.iter().all(fits)
}

/// An answer instead of the call; nothing where it is carried out first.
fn failed(failure: Option<&Failure>) -> Option<Response> {
    match failure? {
        Failure::Refuse {
            status,
            code,
            retry_after,
        } => Some(refuse(*status, *code, *retry_after)),
        Failure::BadGateway => {
            Some((StatusCode::BAD_GATEWAY, "<html>502 Bad Gateway</html>").into_response())
        }
        Failure::DropAfter => None,
    }
}

fn refuse(status: u16, code: i64, retry_after: Option<u64>) -> Response {
    let error = json!({ "error": {
        "message": format!("(#{code}) it was refused"),
        "type": "OAuthException",
        "code": code,
        "error_data": { "messaging_product": "whatsapp", "details": "as Meta details it" },
        "fbtrace_id": "A4O5a8RAgePwbcGSu",
    }});
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = (status, Json(error)).into_response();
    if let Some(seconds) = retry_after {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Headers, half a body, and the end of the connection.
fn broken() -> Response {
    let chunks = [
        Ok(Bytes::from_static(b"{\"messages\":")),
        Err(std::io::Error::other("dropped")),
    ];
    Body::from_stream(stream::iter(chunks)).into_response()
}
