//! `GET /health`: whether it serves, and which part does not do all of its work. The dashboard lives
//! on the same port.
//!
//! The answer is 200 as long as messages are taken over, also when a part is degraded: whoever asks only
//! for the number wants to know whether a restart or another machine would help. It is 503 when they are
//! not: the store cannot be written, or the start is not over.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use hermetic_chat::ChatState;
use serde_json::{Value, json};

use super::GatewayStage;
use crate::Gateway;

pub(crate) fn routes(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/health", get(health))
        .with_state(gateway)
}

/// Nothing here that a stranger on the loopback could use.
async fn health(State(gateway): State<Arc<Gateway>>) -> (StatusCode, Json<Value>) {
    let parts = gateway.parts();
    let is_starting = *gateway.stage.borrow() == GatewayStage::Starting;
    let takes_messages = !is_starting && gateway.store.health().health().is_ok();
    let is_well = parts.iter().all(|part| part.health.is_ok());
    let number = match takes_messages {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let platforms: Vec<_> = gateway
        .chats
        .iter()
        .map(|chat| {
            let account = chat.account();
            json!({
                "name": account,
                "state": state(&chat.state()),
                "backend": gateway.toolsets.of(account.platform()).facts.backend,
            })
        })
        .collect();
    let body = json!({
        "status": match (is_well, is_starting) {
            (false, _) => "degraded",
            (true, true) => "starting",
            (true, false) => "ok",
        },
        "parts": parts,
        "version": env!("CARGO_PKG_VERSION"),
        "backend": gateway.toolsets.usual().facts.backend,
        "active_conversations": gateway.conversations.count(),
        "platforms": platforms,
    });
    (number, Json(body))
}

fn state(state: &ChatState) -> &'static str {
    match state {
        ChatState::Starting => "starting",
        ChatState::Connected => "connected",
        ChatState::Retrying { .. } => "retrying",
        ChatState::Stopped { .. } => "stopped",
    }
}
