//! `GET /health`: whether it serves. The dashboard will live on the same port.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use hermetic_chat::ChatState;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::Gateway;

pub(crate) async fn answer(gateway: Arc<Gateway>, listener: TcpListener, stop: CancellationToken) {
    let routes = Router::new()
        .route("/health", get(health))
        .with_state(gateway);
    let serving = axum::serve(listener, routes).into_future();
    if let Some(Err(error)) = stop.run_until_cancelled(serving).await {
        tracing::error!(%error, "health is not answered any more");
    }
}

/// Nothing here that a stranger on the loopback could use.
async fn health(State(gateway): State<Arc<Gateway>>) -> Json<Value> {
    let platforms: Vec<_> = gateway
        .chats
        .iter()
        .map(|chat| json!({"name": chat.platform().name(), "state": state(&chat.state())}))
        .collect();
    Json(json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "backend": gateway.settings.facts.backend,
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
