//! `/process` and the rest of the toolbox of one sandbox.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Path, RawPathParams};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::faults::refuse;
use super::{Cloud, Machine, files, pty, sessions};

pub(crate) fn routes() -> Router<Arc<Cloud>> {
    Router::new()
        .route("/process/execute", post(execute))
        .route("/process/pty", post(pty::create))
        .route("/process/pty/create-connect", get(pty::create_and_connect))
        .route("/process/pty/{id}", delete(pty::delete))
        .route("/process/pty/{id}/connect", get(pty::connect))
        .route("/process/session", post(sessions::create))
        .route(
            "/process/session/{id}",
            get(sessions::look).delete(sessions::delete),
        )
        .route("/process/session/{id}/exec", post(sessions::execute))
        .route(
            "/process/session/{id}/command/{command}",
            get(sessions::command),
        )
        .route(
            "/process/session/{id}/command/{command}/logs",
            get(sessions::logs),
        )
        .route("/files/bulk-upload", post(files::upload))
        .route("/files/bulk-download", post(files::download))
        .route("/work-dir", get(async || Json(json!({ "dir": "/root" }))))
}

/// The sandbox of a request, which has to run.
pub(crate) struct Running(pub(crate) Arc<Machine>);

impl FromRequestParts<Arc<Cloud>> for Running {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        cloud: &Arc<Cloud>,
    ) -> Result<Self, Self::Rejection> {
        let params = RawPathParams::from_request_parts(parts, cloud).await;
        let params = params.map_err(IntoResponse::into_response)?;
        let id = params
            .iter()
            .find(|(name, _)| *name == "sandbox")
            .unwrap()
            .1;
        let machine = cloud
            .find(id)
            .ok_or_else(|| refuse(404, "no such sandbox"))?;
        if machine.state() != "started" {
            return Err(refuse(400, "bad request: sandbox is not running"));
        }
        Ok(Self(machine))
    }
}

/// The named part of a path below a sandbox.
pub(crate) fn part(path: &Path<Vec<(String, String)>>, name: &str) -> String {
    let found = path.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

async fn execute(Running(machine): Running, Json(wanted): Json<Value>) -> Response {
    let text = wanted["command"].as_str().unwrap_or_default();
    let seconds = wanted["timeout"].as_u64().filter(|seconds| *seconds > 0);
    let running = {
        let cage = machine.cage.lock().await;
        let folder = wanted["cwd"].as_str().unwrap_or("/root");
        let script = format!("exec 2>&1\ncd {folder} || exit\n{text}");
        let mut command = cage.enter(&[], &["bash", "-c", &script]);
        let envs = wanted["envs"].as_object().into_iter().flatten();
        command.envs(envs.map(|(name, value)| (name, value.as_str().unwrap())));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let limit = Duration::from_secs(seconds.unwrap_or(360));
    match tokio::time::timeout(limit, running.wait_with_output()).await {
        Err(_) => refuse(408, "command execution timeout"),
        Ok(output) => {
            let output = output.unwrap();
            let result = String::from_utf8_lossy(&output.stdout).into_owned();
            let code = output.status.code().unwrap_or(-1);
            Json(json!({ "exitCode": code, "result": result })).into_response()
        }
    }
}
