//! A model that answers by what it is shown: asked again after a crash, it says the same.

use std::fs;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::lab::Lab;

/// Has what was said run as a command, once, and then says what came of it.
pub(crate) struct Clerk {
    address: String,
    serving: JoinHandle<()>,
}

impl Clerk {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let routes = Router::new().route("/v1/chat/completions", post(answer));
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, serving }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// From the next start on.
    pub(crate) fn takes_the_place_of_the_model(&self, lab: &Lab) {
        let config = fs::read_to_string(lab.path("config.yaml")).unwrap();
        let config = config.replace(&lab.model.base_url(), &self.base_url());
        fs::write(lab.path("config.yaml"), config).unwrap();
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(Json(asked): Json<Value>) -> impl IntoResponse {
    let messages = asked["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    if last["role"] == "user" && last["content"].to_string().contains("never answer") {
        std::future::pending::<()>().await;
    }
    let delta = if last["role"] == "user" {
        let command = json!({"command": last["content"]}).to_string();
        json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "terminal", "arguments": command}}]})
    } else {
        let seen = last["content"].as_str().unwrap_or_default();
        let done = if seen.contains("ran it") {
            "done"
        } else {
            "not known"
        };
        json!({"content": format!("It is {done}.")})
    };
    let event = |choice: Value| format!("data: {}\n\n", json!({"choices": [choice]}));
    let reason = if last["role"] == "user" {
        "tool_calls"
    } else {
        "stop"
    };
    let events = format!(
        "{}{}data: [DONE]\n\n",
        event(json!({"index": 0, "delta": delta})),
        event(json!({"index": 0, "delta": {}, "finish_reason": reason}))
    );
    ([(CONTENT_TYPE, "text/event-stream")], events)
}
