//! Files both ways.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::methods::broken;
use super::params::text;
use super::world::{Failure, StoredFile, World};
use super::{BOT_ID, BOT_TOKEN, BOT_USER, SlackServer};

const LOGIN_PAGE: &str = "<!DOCTYPE html><html><title>Sign in to Home | Slack</title></html>";

impl SlackServer {
    /// A file that somebody uploaded.
    pub fn put_file(&self, id: &str, mime: &str, bytes: impl Into<Bytes>) {
        let file = StoredFile {
            name: format!("{id}.bin"),
            mime: mime.to_owned(),
            bytes: bytes.into(),
            hidden: false,
        };
        self.world.lock().files.insert(id.to_owned(), file);
    }

    /// Whoever fetches the file gets the login page, as without `files:read`.
    pub fn hide_file(&self, id: &str) {
        if let Some(file) = self.world.lock().files.get_mut(id) {
            file.hidden = true;
        }
    }

    /// The bytes of a file.
    pub fn file(&self, id: &str) -> Option<Bytes> {
        let inner = self.world.lock();
        inner.files.get(id).map(|file| file.bytes.clone())
    }
}

pub(super) fn upload_url(world: &World, params: &Value) -> Result<Value, &'static str> {
    let name = text(params, "filename")?.to_owned();
    text(params, "length")?;
    let id = format!("F0UP{}", world.number());
    let file = StoredFile {
        name,
        mime: "application/octet-stream".to_owned(),
        bytes: Bytes::new(),
        hidden: false,
    };
    world.lock().files.insert(id.clone(), file);
    let url = format!("http://{}/upload/{id}", world.methods_at);
    Ok(json!({ "upload_url": url, "file_id": id }))
}

pub(super) async fn upload(
    State(world): State<Arc<World>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match world.attempt("upload") {
        Some(Failure::Drop | Failure::DropAfter) => return broken(),
        Some(Failure::BadGateway) => return StatusCode::BAD_GATEWAY.into_response(),
        _ => {}
    }
    // The address is the permission; a token has no business here.
    if headers.contains_key(header::AUTHORIZATION) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    match world.lock().files.get_mut(&id) {
        Some(file) => file.bytes = body,
        None => return StatusCode::NOT_FOUND.into_response(),
    }
    "OK".into_response()
}

pub(super) fn complete(world: &World, params: &Value) -> Result<Value, &'static str> {
    let id = params["files"][0]["id"]
        .as_str()
        .ok_or("invalid_arguments")?
        .to_owned();
    let channel = text(params, "channel_id")?.to_owned();
    let known = world
        .lock()
        .files
        .get(&id)
        .is_some_and(|file| !file.bytes.is_empty());
    if !known {
        return Err("file_not_found");
    }
    let ts = world.next_ts();
    let message = json!({
        "type": "message", "subtype": "file_share", "ts": ts, "user": BOT_USER, "bot_id": BOT_ID,
        "text": params["initial_comment"].as_str().unwrap_or_default(),
        "thread_ts": params["thread_ts"], "files": [{ "id": id }],
    });
    world.put(&channel, &ts, message);
    Ok(json!({ "files": [{ "id": id, "title": params["files"][0]["title"] }] }))
}

pub(super) fn info(world: &World, params: &Value) -> Result<Value, &'static str> {
    let id = text(params, "file")?;
    let inner = world.lock();
    let file = inner.files.get(id).ok_or("file_not_found")?;
    let url = format!("http://{}/files/{id}", world.methods_at);
    Ok(json!({ "file": {
        "id": id, "name": file.name, "mimetype": file.mime, "size": file.bytes.len(),
        "url_private": url, "url_private_download": url,
    }}))
}

pub(super) async fn download(
    State(world): State<Arc<World>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    if let Some(Failure::Drop) = world.attempt("download") {
        return broken();
    }
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let may = bearer == Some(&format!("Bearer {BOT_TOKEN}"));
    let file = world.lock().files.get(&id).cloned();
    match file.filter(|file| may && !file.hidden) {
        Some(file) => {
            let kind = [(header::CONTENT_TYPE, file.mime)];
            (kind, Body::from(file.bytes)).into_response()
        }
        None => (
            [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
            LOGIN_PAGE,
        )
            .into_response(),
    }
}
