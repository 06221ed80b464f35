//! `/files`: several at once, as forms.

use axum::Json;
use axum::body::Body;
use axum::extract::Multipart;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::faults::refuse;
use super::toolbox::Running;

pub(crate) async fn upload(Running(machine): Running, mut form: Multipart) -> Response {
    let cage = machine.cage.lock().await;
    let mut path = None;
    while let Ok(Some(field)) = form.next_field().await {
        let name = field.name().unwrap_or_default().to_owned();
        let content = match field.bytes().await {
            Ok(content) => content,
            Err(error) => return refuse(400, &error.to_string()),
        };
        if name.ends_with(".path") {
            path = String::from_utf8(content.to_vec()).ok();
        } else if let (true, Some(path)) = (name.ends_with(".file"), path.take()) {
            let place = cage.outside(&path);
            tokio::fs::create_dir_all(place.parent().unwrap())
                .await
                .unwrap();
            if let Err(error) = tokio::fs::write(place, content).await {
                return refuse(400, &error.to_string());
            }
        } else {
            return refuse(400, "a file without its path");
        }
    }
    ().into_response()
}

pub(crate) async fn download(Running(machine): Running, Json(wanted): Json<Value>) -> Response {
    const BOUNDARY: &str = "of-the-test-service";
    let cage = machine.cage.lock().await;
    let mut body = Vec::new();
    for path in wanted["paths"].as_array().into_iter().flatten() {
        let path = path.as_str().unwrap();
        let (name, kind, content) = match tokio::fs::read(cage.outside(path)).await {
            Ok(content) => ("file", "application/octet-stream", content),
            Err(error) => ("error", "text/plain", error.to_string().into_bytes()),
        };
        let head = format!(
            "--{BOUNDARY}\r\nContent-Type: {kind}\r\nContent-Disposition: form-data; \
             name=\"{name}\"; filename=\"{path}\"\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    ([(CONTENT_TYPE, kind)], Body::from(body)).into_response()
}
