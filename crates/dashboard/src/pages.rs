//! The pages.

pub(crate) mod approvals;
pub(crate) mod audit;
mod chart;
pub(crate) mod chat;
pub(crate) mod configuration;
pub(crate) mod conversations;
pub(crate) mod egress;
mod layout;
pub(crate) mod overview;
pub(crate) mod people;
mod running_output;
pub(crate) mod sandbox;
mod sandbox_use;
pub(crate) mod sandboxes;
mod terminal;
pub(crate) mod timeline;
pub(crate) mod usage;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;

pub(crate) use layout::{link_page, plain_page, sign_in_page};

use crate::api;
use crate::failure::PageFailure;
use crate::state::SharedState;

pub(crate) fn routes() -> Router<SharedState> {
    Router::new()
        .route("/", get(overview::page))
        .route("/conversations", get(conversations::page))
        .route("/conversation", get(timeline::page))
        .route("/conversation/stop", post(timeline::stop))
        .route("/conversation/reset", post(timeline::reset))
        .route("/conversation/destroy", post(timeline::destroy))
        .route("/chat", get(chat::page))
        .route("/chat/open", post(chat::open))
        .route("/chat/say", post(chat::say))
        .route("/chat/press", post(chat::press))
        .route("/chat/delete", post(chat::delete))
        .route("/chat/file", get(chat::file))
        .route("/sandboxes", get(sandboxes::page))
        .route("/sandbox", get(sandbox::page))
        .route("/sandbox/stop", post(sandboxes::stop))
        .route("/sandbox/destroy", post(sandbox::destroy))
        .route("/terminal", get(terminal::page))
        .route("/approvals", get(approvals::page))
        .route("/approvals/answer", post(approvals::answer))
        .route("/egress", get(egress::page))
        .route(
            "/egress/rule",
            get(egress::preview).post(egress::write_rule),
        )
        .route("/egress/rule/remove", post(egress::remove_rule))
        .route("/audit", get(audit::page))
        .route("/audit/verify", get(audit::verify_page))
        .route("/audit/export", get(audit::export))
        .route("/people", get(people::page))
        .route("/people/approve", post(people::approve))
        .route("/people/revoke", post(people::revoke))
        .route("/configuration", get(configuration::page))
        .route("/usage", get(usage::page))
        .route("/waiting", get(waiting))
}

/// How many questions wait for a person: what a page asks for that has nothing else to bring up to date.
async fn waiting(State(state): State<SharedState>) -> Result<Response, PageFailure> {
    let waiting = state.approvals.pending().await?.len();
    Ok(Json(json!({ "waiting": waiting })).into_response())
}

pub(crate) async fn not_found(request: Request) -> Response {
    if request.uri().path().starts_with("/api/") {
        return api::refusal(StatusCode::NOT_FOUND, "there is nothing under this address");
    }
    plain_page(
        StatusCode::NOT_FOUND,
        "Nothing is here",
        "There is no page under this address.",
        Some(("/", "To the overview")),
    )
}
