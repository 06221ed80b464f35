//! `GET /health`: whether it serves. The dashboard will live on the same port.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use hermetic_chat::ChatState;
use serde_json::{Value, json};

use crate::Gateway;

pub(crate) fn routes(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/health", get(health))
        .with_state(gateway)
}

/// Nothing here that a stranger on the loopback could use.
async fn health(State(gateway): State<Arc<Gateway>>) -> Json<Value> {
    let platforms: Vec<_> = gateway
        .chats
        .iter()
        .map(|chat| {
            let platform = chat.platform();
            json!({
                "name": platform.name(),
                "state": state(&chat.state()),
                "backend": gateway.worksites.of(platform).facts.backend,
            })
        })
        .collect();
    Json(json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "backend": gateway.worksites.usual().facts.backend,
        "active_conversations": gateway.lanes.active(),
        "platforms": platforms,
    }))
}

fn state(state: &ChatState) -> &'static str {
    match state {
        ChatState::Starting => "starting",
        ChatState::Connected => "connected",
        ChatState::Retrying { .. } => "retrying",
        ChatState::Stopped { .. } => "stopped",
    }
}
