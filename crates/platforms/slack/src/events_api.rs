//! Events that Slack posts to us: events as JSON, presses and slash commands as forms.
//!
//! A request is answered when what it carries is stored, so a crash in between costs nothing: Slack posts
//! an event again at once, after a minute and after five. That it does says that we were out of reach, and
//! the histories are read for what it has given up. Who does not know the secret learns nothing.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use reqwest::Url;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{debug, warn};

use crate::account::SlackAccount;
use crate::acknowledgement::EventAcknowledgement;
use crate::config::SlackEventIntake;
use crate::listening::ListeningState;
use crate::signature;

const BODY_BYTES: usize = 2 << 20;
/// Only what Slack posts again has it.
const RETRY_HEADER: &str = "x-slack-retry-num";
/// Fields of a form; a slash command has some fifteen.
const MOST_FIELDS: usize = 64;

pub(crate) fn router(slack: Arc<SlackAccount>) -> Router {
    Router::new()
        .route("/", post(take))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(slack)
}

/// What a request carries.
enum RequestPayload {
    Challenge(String),
    Event(Value),
    Interaction(Value),
    Command(Value),
    /// There was too much for a while, and Slack tells us nothing of it.
    HeldBack,
    Nothing(&'static str),
}

async fn take(State(slack): State<Arc<SlackAccount>>, headers: HeaderMap, body: Bytes) -> Response {
    let SlackEventIntake::EventsApi { signing_secret, .. } = &slack.intake else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // Over the bytes as they came, before anything is read from them.
    if let Err(error) = signature::check(signing_secret, &headers, &body, slack.clock.now()) {
        if let Some(refused) = slack.refusals.refuse() {
            warn!(account = %slack.account, rule = "slack signature", %error, refused, "refused");
        }
        return StatusCode::NOT_FOUND.into_response();
    }
    let carried = read(&headers, &body);
    match carried {
        RequestPayload::Challenge(challenge) => {
            Json(json!({ "challenge": challenge })).into_response()
        }
        RequestPayload::Nothing(why) => {
            debug!(account = %slack.account, why, "slack posted nothing for us");
            StatusCode::OK.into_response()
        }
        // Before we know who we are we cannot tell what is meant for us.
        carried => match slack.listening() {
            Some(listening) => {
                if headers.contains_key(RETRY_HEADER) || matches!(carried, RequestPayload::HeldBack)
                {
                    listening.note_missed();
                }
                hand_over(&slack, &listening, &carried)
                    .await
                    .into_response()
            }
            None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        },
    }
}

async fn hand_over(
    slack: &SlackAccount,
    listening: &ListeningState,
    carried: &RequestPayload,
) -> StatusCode {
    let (given, acknowledged) = oneshot::channel();
    let given = EventAcknowledgement::Request(given);
    let hearing = async {
        match carried {
            RequestPayload::Event(payload) => listening.hear_event(slack, payload, given).await,
            RequestPayload::Interaction(payload) => {
                listening.hear_interaction(slack, payload, given).await;
            }
            RequestPayload::Command(payload) => listening.hear_command(slack, payload, given).await,
            RequestPayload::Challenge(_)
            | RequestPayload::HeldBack
            | RequestPayload::Nothing(_) => given.give(),
        }
        // Dropped unacknowledged it is an error here, and the 503 has Slack send it again.
        acknowledged.await
    };
    match timeout(slack.timing.storing, hearing).await {
        Ok(Ok(())) => StatusCode::OK,
        // Slack posts it again.
        Ok(Err(_)) | Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn read(headers: &HeaderMap, body: &[u8]) -> RequestPayload {
    let kind = headers.get(header::CONTENT_TYPE);
    let is_form = kind.is_some_and(|kind| {
        kind.as_bytes()
            .starts_with(b"application/x-www-form-urlencoded")
    });
    match is_form {
        true => read_form(body),
        false => read_json(body),
    }
}

fn read_json(body: &[u8]) -> RequestPayload {
    let Ok(payload) = serde_json::from_slice::<Value>(body) else {
        return RequestPayload::Nothing("no JSON");
    };
    match payload["type"].as_str() {
        Some("url_verification") => match payload["challenge"].as_str() {
            Some(challenge) => RequestPayload::Challenge(challenge.to_owned()),
            None => RequestPayload::Nothing("a challenge without one"),
        },
        Some("event_callback") => RequestPayload::Event(payload),
        Some("app_rate_limited") => RequestPayload::HeldBack,
        _ => RequestPayload::Nothing("neither an event nor a challenge"),
    }
}

fn read_form(body: &[u8]) -> RequestPayload {
    let Some(fields) = form_fields(body) else {
        return RequestPayload::Nothing("a form that is none");
    };
    match fields.get("payload").and_then(Value::as_str) {
        Some(payload) => match serde_json::from_str(payload) {
            Ok(payload) => RequestPayload::Interaction(payload),
            Err(_) => RequestPayload::Nothing("an interaction that is no JSON"),
        },
        None if fields.contains_key("command") => RequestPayload::Command(Value::Object(fields)),
        None => RequestPayload::Nothing("neither an interaction nor a command"),
    }
}

fn form_fields(body: &[u8]) -> Option<Map<String, Value>> {
    let body = std::str::from_utf8(body).ok()?;
    // A query and a form are written alike.
    let mut url = Url::parse("form:").ok()?;
    url.set_query(Some(body));
    let fields = url.query_pairs().take(MOST_FIELDS);
    Some(
        fields
            .map(|(name, value)| (name.into_owned(), json!(value)))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_it_was_written() {
        let fields = form_fields(b"command=%2Fsh&text=echo+%22a%26b%22+%23+x&empty=").unwrap();
        assert_eq!(fields["command"], "/sh");
        assert_eq!(fields["text"], "echo \"a&b\" # x");
        assert_eq!(fields["empty"], "");
    }
}
