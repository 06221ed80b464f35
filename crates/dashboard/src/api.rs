//! The same for programs: JSON under `/api/v1`, for whoever has a token or a session.
//!
//! `docs/api/dashboard.json` describes it.

use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use serde_json::{Value, json};

use crate::access::Viewer;
use crate::failure::PageFailure;
use crate::pages::{
    approvals, audit, chat, configuration, conversations, egress, overview, people, sandbox,
    sandboxes, timeline, usage,
};
use crate::state::SharedState;
use crate::words;

/// What a program gets.
type ApiAnswer = Result<Response, ApiFailure>;

/// A failure, as JSON.
pub(crate) struct ApiFailure(PageFailure);

pub(crate) fn routes() -> Router<SharedState> {
    Router::new()
        .route("/api/v1/overview", get(overview_json))
        .route("/api/v1/conversations", get(conversations_json))
        .route("/api/v1/conversation", get(conversation_json))
        .route("/api/v1/chat", get(chat_json))
        .route("/api/v1/sandboxes", get(sandboxes_json))
        .route("/api/v1/sandbox", get(sandbox_json))
        .route("/api/v1/approvals", get(approvals_json))
        .route("/api/v1/egress", get(egress_json))
        .route("/api/v1/audit", get(audit_json))
        .route("/api/v1/audit/verify", get(verify_json))
        .route("/api/v1/people", get(people_json))
        .route("/api/v1/configuration", get(configuration_json))
        .route("/api/v1/usage", get(usage_json))
        .route("/api/v1/approvals/answer", post(approvals::answer))
        .route("/api/v1/chat/open", post(chat::open))
        .route("/api/v1/chat/say", post(chat::say))
        .route("/api/v1/chat/press", post(chat::press))
        .route("/api/v1/chat/delete", post(chat::delete))
        .route("/api/v1/chat/file", get(chat::file))
        .route("/api/v1/conversation/stop", post(timeline::stop))
        .route("/api/v1/conversation/reset", post(timeline::reset))
        .route("/api/v1/conversation/destroy", post(timeline::destroy))
        .route("/api/v1/sandbox/stop", post(sandboxes::stop))
        .route("/api/v1/sandbox/destroy", post(sandbox::destroy))
        .route("/api/v1/egress/rule", post(egress::write_rule))
        .route("/api/v1/egress/rule/remove", post(egress::remove_rule))
        .route("/api/v1/people/approve", post(people::approve))
        .route("/api/v1/people/revoke", post(people::revoke))
}

/// A refusal, as JSON.
pub(crate) fn refusal(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

impl From<PageFailure> for ApiFailure {
    fn from(failure: PageFailure) -> Self {
        Self(failure)
    }
}

impl IntoResponse for ApiFailure {
    fn into_response(self) -> Response {
        self.0.log();
        refusal(self.0.status(), &self.0.to_string())
    }
}

/// What a page is made of, as a program may print it: no text of somebody else's hides or turns what stands beside it,
/// whichever field it is in. Keys of conversations stay as they are, since acts name them.
fn told(page: impl Serialize) -> Response {
    match serde_json::to_value(page) {
        Ok(mut value) => {
            make_visible(&mut value);
            Json(value).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "an answer for a program could not be written");
            refusal(
                StatusCode::INTERNAL_SERVER_ERROR,
                "this could not be written down",
            )
        }
    }
}

fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) => *text = words::visible(text),
        Value::Array(values) => values.iter_mut().for_each(make_visible),
        Value::Object(fields) => {
            let shown = fields
                .iter_mut()
                .filter(|(name, _)| *name != "conversation");
            shown.for_each(|(_, value)| make_visible(value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

async fn overview_json(State(state): State<SharedState>) -> ApiAnswer {
    Ok(told(overview::load(&state).await?))
}

async fn conversations_json(
    State(state): State<SharedState>,
    Query(query): Query<conversations::ListQuery>,
) -> ApiAnswer {
    Ok(told(conversations::load(&state, &query).await?))
}

async fn conversation_json(
    State(state): State<SharedState>,
    Query(query): Query<timeline::TimelineQuery>,
) -> ApiAnswer {
    Ok(told(timeline::load(&state, &query).await?))
}

async fn chat_json(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<chat::ChatQuery>,
) -> ApiAnswer {
    Ok(told(chat::load(&state, &viewer, &query).await?))
}

async fn sandboxes_json(State(state): State<SharedState>) -> ApiAnswer {
    Ok(told(sandboxes::load(&state).await?))
}

async fn sandbox_json(
    State(state): State<SharedState>,
    Query(query): Query<sandbox::SandboxQuery>,
) -> ApiAnswer {
    Ok(told(sandbox::load(&state, &query).await?))
}

async fn approvals_json(State(state): State<SharedState>) -> ApiAnswer {
    Ok(told(approvals::load(&state).await?))
}

async fn egress_json(
    State(state): State<SharedState>,
    Query(query): Query<egress::EgressQuery>,
) -> ApiAnswer {
    Ok(told(egress::load(&state, &query).await?))
}

async fn audit_json(
    State(state): State<SharedState>,
    Query(query): Query<audit::AuditQuery>,
) -> ApiAnswer {
    Ok(told(audit::load(&state, &query).await?))
}

async fn verify_json(State(state): State<SharedState>) -> ApiAnswer {
    Ok(told(audit::verified(&state).await?))
}

async fn people_json(State(state): State<SharedState>) -> ApiAnswer {
    Ok(told(people::load(&state).await?))
}

async fn configuration_json(State(state): State<SharedState>) -> ApiAnswer {
    Ok(told(configuration::load(&state).await))
}

async fn usage_json(
    State(state): State<SharedState>,
    Query(query): Query<usage::UsageQuery>,
) -> ApiAnswer {
    Ok(told(usage::load(&state, &query).await?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn whatever_field_a_strangers_text_is_in_it_hides_nothing() {
        let mut value = json!({
            "asked": [{ "what": "a\u{202e}b", "conversation": "k\u{200b}" }],
            "event": { "host": "x\u{1b}[2J", "ports": [443, null, true] },
        });
        make_visible(&mut value);
        assert_eq!(value["asked"][0]["what"], "a⟦202E⟧b");
        assert_eq!(value["event"]["host"], "x␛[2J");
        assert_eq!(
            value["asked"][0]["conversation"], "k\u{200b}",
            "what an act names"
        );
    }

    /// Held against this very file, so that no path is left out of the document or out of the program.
    #[test]
    fn the_document_names_every_path_and_no_other() {
        let own = include_str!("api.rs");
        let (routes, _) = own.split_once("/// A refusal, as JSON.").unwrap();
        let paths: BTreeSet<&str> = routes
            .split('"')
            .filter(|text| text.starts_with("/api/v1/"))
            .collect();
        let document = include_str!("../../../docs/api/dashboard.json");
        let document: serde_json::Value = serde_json::from_str(document).unwrap();
        let described = document["paths"].as_object().unwrap();
        let described: BTreeSet<&str> = described.keys().map(String::as_str).collect();
        assert_eq!(paths, described);
        assert!(paths.len() > 15);
        for (path, methods) in document["paths"].as_object().unwrap() {
            let line = routes
                .lines()
                .find(|line| line.contains(&format!("\"{path}\"")));
            let is_post = line.unwrap().contains("post(");
            assert_eq!(methods.get("post").is_some(), is_post, "{path}");
        }
    }
}
