//! The daemon's three addresses.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream;

use super::NUMBER;
use super::methods::{self, Reply};
use super::world::{Failure, Sent, World};

pub(super) fn router(world: Arc<World>) -> Router {
    Router::new()
        .route("/api/v1/rpc", post(rpc))
        .route("/api/v1/events", get(events))
        .route("/api/v1/check", get(async || StatusCode::OK))
        .layer(DefaultBodyLimit::max(64 << 20))
        .with_state(world)
}

async fn rpc(State(world): State<Arc<World>>, headers: HeaderMap, body: Bytes) -> Response {
    if !has_local_host(&headers) {
        return StatusCode::MISDIRECTED_REQUEST.into_response();
    }
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let Ok(message) = serde_json::from_slice(&body) else {
        return axum::Json(methods::parse_error()).into_response();
    };
    match methods::handle(&world, &message) {
        Reply::Answer(answer) => axum::Json(answer).into_response(),
        Reply::Nothing => StatusCode::CREATED.into_response(),
        Reply::Status(status) => bare(status),
        Reply::Break => broken(),
    }
}

async fn events(
    State(world): State<Arc<World>>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    if !has_local_host(&headers) {
        return StatusCode::MISDIRECTED_REQUEST.into_response();
    }
    match world.begin("events") {
        Some(Failure::Status(status)) => return bare(status),
        Some(Failure::Drop) => return broken(),
        _ => {}
    }
    let account = query.get("account");
    if account.is_some_and(|account| account != NUMBER) || !world.is_linked() {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let listening = (world.listen(), Noticed(world));
    let lines = stream::unfold(listening, |(mut events, world)| async move {
        let text = match events.recv().await? {
            Sent::Event(event) => format!("event:receive\ndata:{event}\n\n"),
            Sent::KeepAlive => ":\n".to_owned(),
        };
        Some((Ok::<_, io::Error>(Bytes::from(text)), (events, world)))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (kind, Body::from_stream(lines)).into_response()
}

/// Tells that a listener went, when it does.
struct Noticed(Arc<World>);

impl Drop for Noticed {
    fn drop(&mut self) {
        self.0.note_change();
    }
}

/// Since 0.14.4 a page in a browser cannot speak to it under a name of its own.
fn has_local_host(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.map(|host| host.rsplit_once(':').map_or(host, |(host, _)| host));
    matches!(host, Some("127.0.0.1" | "localhost"))
}

fn bare(status: u16) -> Response {
    let status = StatusCode::from_u16(status);
    status
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        .into_response()
}

/// An answer that ends before it said what it promised.
fn broken() -> Response {
    let pieces = [Ok(Bytes::from("{\"jso")), Err(io::Error::other("broken"))];
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, Body::from_stream(stream::iter(pieces))).into_response()
}
