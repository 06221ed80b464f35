//! The files that come along with the pages.

use std::sync::LazyLock;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("../assets/dashboard.css");
const SCRIPT: &str = include_str!("../assets/dashboard.js");
const CHAT_SCRIPT: &str = include_str!("../assets/chat.js");
const SCREEN_SCRIPT: &str = include_str!("../assets/terminal-screen.js");
const TERMINAL_SCRIPT: &str = include_str!("../assets/terminal.js");
const TERMINAL_STYLE: &str = include_str!("../assets/terminal.css");
const ICON: &str = include_str!("../assets/icon.svg");

/// Names this version of the files, so that a browser may keep them for good.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for text in [
        STYLE,
        SCRIPT,
        CHAT_SCRIPT,
        SCREEN_SCRIPT,
        TERMINAL_SCRIPT,
        TERMINAL_STYLE,
        ICON,
    ] {
        hash.update(text.as_bytes());
    }
    hash.finalize()[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
});

pub(crate) fn url(name: &str) -> String {
    format!("/assets/{name}?{}", *VERSION)
}

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route(
            "/assets/dashboard.css",
            get(|| async { file("text/css; charset=utf-8", STYLE) }),
        )
        .route(
            "/assets/dashboard.js",
            get(|| async { file("text/javascript; charset=utf-8", SCRIPT) }),
        )
        .route(
            "/assets/chat.js",
            get(|| async { file("text/javascript; charset=utf-8", CHAT_SCRIPT) }),
        )
        .route(
            "/assets/terminal-screen.js",
            get(|| async { file("text/javascript; charset=utf-8", SCREEN_SCRIPT) }),
        )
        .route(
            "/assets/terminal.js",
            get(|| async { file("text/javascript; charset=utf-8", TERMINAL_SCRIPT) }),
        )
        .route(
            "/assets/terminal.css",
            get(|| async { file("text/css; charset=utf-8", TERMINAL_STYLE) }),
        )
        .route(
            "/assets/icon.svg",
            get(|| async { file("image/svg+xml", ICON) }),
        )
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    (headers, text).into_response()
}
