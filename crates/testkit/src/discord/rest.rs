//! The HTTP API: who asks, how often, and what fails on demand.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use futures::stream;
use serde_json::{Value, json};

use super::TOKEN;
use super::methods::{self, Asked};
use super::world::{Failure, World};

/// Why a request is refused: status, Discord's number, words.
pub(super) type Refusal = (u16, u32, &'static str);

pub(super) fn router(world: Arc<World>) -> Router {
    Router::new()
        .route("/api/v10/{*path}", any(call))
        .route("/files/{name}", get(file))
        .layer(DefaultBodyLimit::max(64 << 20))
        .with_state(world)
}

async fn call(
    State(world): State<Arc<World>>,
    Path(path): Path<String>,
    request: Request,
) -> Response {
    let (method, query) = (
        request.method().clone(),
        request.uri().query().map(str::to_owned),
    );
    if let Err(refusal) = check_caller(&request, &path) {
        return refuse(refusal);
    }
    let route = template(&method, &path);
    let Some((body, file)) = body(request).await else {
        return refuse((400, 50109, "The request body contains invalid JSON."));
    };
    let left = match world.count(&route) {
        Ok(left) => left,
        Err(resets) => return too_many(resets.as_secs_f64(), false),
    };
    let after = match world.failure(&route) {
        None | Some(Failure::NotYet) => false,
        Some(Failure::Refuse {
            status,
            code,
            message,
        }) => return refuse((status, code, message)),
        Some(Failure::TooMany {
            retry_after,
            global,
        }) => return too_many(retry_after, global),
        Some(Failure::BadGateway) => {
            return (StatusCode::BAD_GATEWAY, "<html>502 Bad Gateway</html>").into_response();
        }
        Some(Failure::Hang) => std::future::pending().await,
        Some(Failure::Drop) => return broken(),
        Some(Failure::DropAfter) => true,
    };
    let asked = Asked {
        world: &world,
        route: &route,
        path: &path,
        query: query.as_deref().unwrap_or_default(),
        body,
        file,
    };
    let answer = methods::answer(asked);
    if after {
        return broken();
    }
    let mut response = match answer {
        Ok(Value::Null) => StatusCode::NO_CONTENT.into_response(),
        Ok(value) => Json(value).into_response(),
        Err(refusal) => refuse(refusal),
    };
    if let Some((most, left, resets)) = left {
        let reset_after = format!("{:.3}", resets.as_secs_f64());
        for (name, value) in [
            ("x-ratelimit-bucket", format!("bucket of {route}")),
            ("x-ratelimit-limit", most.to_string()),
            ("x-ratelimit-remaining", left.to_string()),
            ("x-ratelimit-reset-after", reset_after),
        ] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(name, value);
            }
        }
    }
    response
}

/// Who asks, and with which right.
fn check_caller(request: &Request, path: &str) -> Result<(), Refusal> {
    let named = |name| {
        let value = request.headers().get(name).map(HeaderValue::to_str);
        value.and_then(Result::ok).unwrap_or_default()
    };
    if !named(header::USER_AGENT).starts_with("DiscordBot (") {
        return Err((403, 40333, "internal network error"));
    }
    let is_interaction = path.starts_with("interactions/") || path.starts_with("webhooks/");
    let is_known = named(header::AUTHORIZATION) == format!("Bot {TOKEN}");
    (is_known || is_interaction)
        .then_some(())
        .ok_or((401, 0, "401: Unauthorized"))
}

/// As in `POST /channels/{}/messages`: what numbers and tokens stand for braces.
fn template(method: &Method, path: &str) -> String {
    let mut after = "";
    let steps = path.split('/').map(|step| {
        let is_token = matches!(after, "interactions" | "webhooks") && step.contains("token");
        let is_id = !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit());
        if !is_id {
            after = if is_token { after } else { step };
        }
        if is_id || is_token { "{}" } else { step }
    });
    format!("{method} /{}", steps.collect::<Vec<_>>().join("/"))
}

async fn body(request: Request) -> Option<(Value, Option<Bytes>)> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("multipart/form-data") {
        let bytes = axum::body::to_bytes(request.into_body(), 64 << 20)
            .await
            .ok()?;
        if bytes.is_empty() {
            return Some((Value::Null, None));
        }
        return Some((serde_json::from_slice(&bytes).ok()?, None));
    }
    let mut parts = Multipart::from_request(request, &()).await.ok()?;
    let (mut fields, mut file) = (Value::Null, None);
    while let Some(part) = parts.next_field().await.ok()? {
        let name = part.name().unwrap_or_default().to_owned();
        let bytes = part.bytes().await.ok()?;
        match name.as_str() {
            "payload_json" => fields = serde_json::from_slice(&bytes).ok()?,
            _ => file = Some(bytes),
        }
    }
    Some((fields, file))
}

async fn file(State(world): State<Arc<World>>, Path(name): Path<String>) -> Response {
    match world.look(|inner| inner.files.get(&name).cloned()) {
        Some(bytes) => bytes.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn refuse((status, code, message): Refusal) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    (status, Json(json!({ "message": message, "code": code }))).into_response()
}

fn too_many(retry_after: f64, global: bool) -> Response {
    let said = json!({
        "message": "You are being rate limited.", "retry_after": retry_after, "global": global,
    });
    (StatusCode::TOO_MANY_REQUESTS, Json(said)).into_response()
}

/// The connection ends before the answer does.
fn broken() -> Response {
    let pieces = [
        Ok(Bytes::from_static(b"{")),
        Err(std::io::Error::other("cut")),
    ];
    Body::from_stream(stream::iter(pieces)).into_response()
}
