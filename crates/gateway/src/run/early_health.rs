//! `/health` of a start that waits before there is a gateway to ask: for room, or for another gateway to end.

use std::io;
use std::net::TcpListener as StdListener;
use std::os::fd::AsFd;
use std::time::Duration;

use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use hermetic_listen::{BoundedListener, ConnectionBounds, serve_http};
use hermetic_types::{PartHealth, Timestamp};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::GatewayPart;

/// A start that waits is asked by a supervisor and by `hermetic status`, and by nobody else.
const MOST_CONNECTIONS: usize = 32;

/// How long an answer may go on when the waiting is over.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Answers `/health` until it is dropped. The port itself stays open for whoever serves after it.
#[derive(Debug)]
pub struct EarlyHealth {
    _stop: DropGuard,
}

impl EarlyHealth {
    /// Says that the start waits for room since then. Must be called within a runtime.
    pub fn without_room(port: &impl AsFd, backend: &str, since: Timestamp) -> io::Result<Self> {
        let store = GatewayPart {
            name: "store".to_owned(),
            health: PartHealth::Degraded {
                why: "the disk is full; the start waits for room".to_owned(),
                since,
            },
        };
        Self::answering(port, waiting("degraded", &[store], backend))
    }

    /// Says that another gateway serves and this one stands by. Must be called within a runtime.
    pub fn standing_by(port: &impl AsFd, backend: &str) -> io::Result<Self> {
        Self::answering(port, waiting("standing by", &[], backend))
    }

    fn answering(port: &impl AsFd, body: Value) -> io::Result<Self> {
        let own = StdListener::from(port.as_fd().try_clone_to_owned()?);
        let listener = BoundedListener::new(
            TcpListener::from_std(own)?,
            ConnectionBounds::of(MOST_CONNECTIONS),
        );
        let answer = move || {
            let body = body.clone();
            async move { (StatusCode::SERVICE_UNAVAILABLE, Json(body)) }
        };
        let stop = CancellationToken::new();
        let routes = Router::new().route("/health", get(answer));
        tokio::spawn(serve_http(listener, routes, stop.clone(), LAST_ANSWERS));
        Ok(Self {
            _stop: stop.drop_guard(),
        })
    }
}

/// The same fields as those of a gateway that serves.
fn waiting(status: &str, parts: &[GatewayPart], backend: &str) -> Value {
    json!({
        "status": status,
        "parts": parts,
        "version": env!("CARGO_PKG_VERSION"),
        "backend": backend,
        "active_conversations": 0,
        "platforms": [],
    })
}
