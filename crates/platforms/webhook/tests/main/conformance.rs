//! The webhook against the contract of every chat.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::routing::post;
use hermetic_chat::Chat;
use hermetic_chat::conformance::{ChatCandidate, SendFate, StandIn};
use hermetic_types::{AccountId, ChatId, ChatKind, ChatPlace, MessageId, Platform, UserId};
use hermetic_webhook::{WebhookAdapter, WebhookConfig};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::lab::serve;
use crate::webhook::{clock, say, secret};

hermetic_chat::conformance!(candidate);

const ALICE: &str = "alice";

async fn candidate(name: &str) -> ChatCandidate {
    let script = Arc::new(Script::default());
    let callback = axum::Router::new()
        .route("/", post(take_reply))
        .with_state(Arc::clone(&script));
    let (callback, hearing) = serve(callback).await;
    let webhook = WebhookAdapter::new(WebhookConfig {
        account: AccountId::new(Platform::Webhook, name.parse().unwrap()),
        wait: None,
        callback: Some(callback),
        ..WebhookConfig::new(secret(), clock())
    });
    let webhook = Arc::new(webhook.unwrap());
    let intake = Arc::clone(&webhook).intake().expect("it is called by HTTP");
    let (url, taking) = serve(intake.mounted()).await;
    ChatCandidate {
        chat: webhook,
        stand_in: Box::new(Script::stand_in(script, url, [hearing, taking])),
    }
}

/// What the other side was sent, and what it does with the next reply.
#[derive(Debug, Default)]
struct Script {
    replies: Mutex<Vec<String>>,
    fates: Mutex<VecDeque<SendFate>>,
}

async fn take_reply(State(script): State<Arc<Script>>, Json(reply): Json<Value>) -> StatusCode {
    let fate = script.fates.lock().unwrap().pop_front();
    if fate == Some(SendFate::Refused) {
        return StatusCode::FORBIDDEN;
    }
    let text = reply["text"].as_str().unwrap().to_owned();
    script.replies.lock().unwrap().push(text);
    match fate {
        Some(_) => StatusCode::BAD_GATEWAY,
        None => StatusCode::OK,
    }
}

#[derive(Debug)]
struct Caller {
    script: Arc<Script>,
    url: String,
    next: AtomicU64,
    last: Mutex<Option<(String, Value)>>,
    serving: [JoinHandle<()>; 2],
}

impl Script {
    fn stand_in(self: Arc<Self>, url: String, serving: [JoinHandle<()>; 2]) -> Caller {
        Caller {
            script: self,
            url,
            next: AtomicU64::new(1),
            last: Mutex::default(),
            serving,
        }
    }
}

impl Caller {
    fn request(&self, body: Value) {
        let nonce = format!("n{}", self.next.fetch_add(1, Ordering::Relaxed));
        *self.last.lock().unwrap() = Some((nonce.clone(), body.clone()));
        self.post(nonce, body);
    }

    /// As a caller has to: until it is taken.
    fn post(&self, nonce: String, body: Value) {
        let url = self.url.clone();
        tokio::spawn(async move {
            while say(&url, &nonce, &body).await.0 == StatusCode::SERVICE_UNAVAILABLE {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
}

impl StandIn for Caller {
    fn person(&self) -> UserId {
        UserId::new(ALICE).unwrap()
    }

    fn place(&self) -> ChatPlace {
        ChatPlace {
            chat: ChatId::new("ops").unwrap(),
            kind: ChatKind::Dm,
            thread: None,
        }
    }

    fn says(&self, text: &str) {
        self.request(json!({ "chat": "ops", "user": ALICE, "text": text }));
    }

    fn presses(&self, message: &MessageId, data: &str) {
        let press = json!({ "message": message.as_str(), "data": data });
        self.request(json!({ "chat": "ops", "user": ALICE, "press": press }));
    }

    fn repeats(&self) {
        let last = self.last.lock().unwrap().clone();
        let (nonce, body) = last.expect("something was said");
        self.post(nonce, body);
    }

    fn sends_garbage(&self) {
        self.request(json!({ "chat": 7 }));
    }

    fn decide_next_send(&self, fate: SendFate) {
        self.script.fates.lock().unwrap().push_back(fate);
    }

    fn shown(&self) -> Vec<String> {
        self.script.replies.lock().unwrap().clone()
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.serving.iter().for_each(JoinHandle::abort);
    }
}
