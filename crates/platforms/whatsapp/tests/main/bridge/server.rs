//! A bridge of our own, with the endpoints of Hermes' one.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::lab::serve;

#[derive(Debug)]
pub(super) struct BridgeServer {
    pub(super) url: String,
    world: Arc<Mutex<World>>,
    serving: JoinHandle<()>,
}

#[derive(Debug, Default)]
pub(super) struct World {
    queue: Vec<Value>,
    /// Statuses of the next sends; what is 500 is carried out first.
    pub(super) failures: VecDeque<u16>,
    /// What was sent, in order; an edit changes it.
    pub(super) sent: Vec<(String, Value)>,
    /// The bytes of the files, as they were when they were sent.
    pub(super) files: Vec<Vec<u8>>,
    pub(super) typing: usize,
    pub(super) is_away: bool,
}

type Shared = State<Arc<Mutex<World>>>;
type Answer = (StatusCode, Json<Value>);

impl BridgeServer {
    pub(super) async fn start() -> Self {
        let world = Arc::new(Mutex::new(World::default()));
        let router = Router::new()
            .route("/health", get(health))
            .route("/messages", get(messages))
            .route("/send", post(send))
            .route("/edit", post(edit))
            .route("/send-media", post(send_media))
            .route("/typing", post(typing))
            .with_state(Arc::clone(&world));
        let (url, serving) = serve(router).await;
        Self {
            url,
            world,
            serving,
        }
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Queues a message; whatever is missing in it is filled in.
    #[expect(clippy::needless_pass_by_value, reason = "callers write it in place")]
    pub(super) fn says(&self, fields: Value) {
        let mut message = json!({
            "messageId": "3EB0", "chatId": "16505551234@s.whatsapp.net",
            "senderId": "16505551234@s.whatsapp.net", "senderName": "Alice", "isGroup": false,
            "body": "hello", "hasMedia": false, "mediaType": "", "mediaUrls": [],
            "mentionedIds": [], "quotedMessageId": null, "quotedParticipant": null,
            "botIds": ["15550783881@7@s.whatsapp.net", "998877665544@7@lid"],
        });
        let fields = fields.as_object().cloned().unwrap_or_default();
        message.as_object_mut().unwrap().extend(fields);
        self.queues(message);
    }

    pub(super) fn queues(&self, message: Value) {
        self.world().queue.push(message);
    }
}

impl Drop for BridgeServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn health(State(world): Shared) -> Json<Value> {
    let is_away = world.lock().unwrap().is_away;
    Json(json!({ "status": if is_away { "disconnected" } else { "connected" }, "queueLength": 0 }))
}

async fn messages(State(world): Shared) -> Json<Value> {
    let queue = std::mem::take(&mut world.lock().unwrap().queue);
    Json(Value::Array(queue))
}

async fn send(State(world): Shared, Json(body): Json<Value>) -> Answer {
    let mut world = world.lock().unwrap();
    match world.failures.pop_front() {
        Some(500) => {
            let _ = world.note(body);
            refused(500)
        }
        Some(status) => refused(status),
        None => world.note(body),
    }
}

async fn edit(State(world): Shared, Json(body): Json<Value>) -> Answer {
    let mut world = world.lock().unwrap();
    let edited = world
        .sent
        .iter_mut()
        .find(|(id, _)| body["messageId"] == *id);
    match edited {
        Some((_, sent)) => {
            sent["message"] = body["message"].clone();
            (
                StatusCode::OK,
                Json(json!({ "success": true, "messageIds": [] })),
            )
        }
        None => refused(404),
    }
}

async fn send_media(State(world): Shared, Json(body): Json<Value>) -> Answer {
    let mut world = world.lock().unwrap();
    match std::fs::read(Path::new(body["filePath"].as_str().unwrap())) {
        Ok(bytes) => {
            world.files.push(bytes);
            world.note(body)
        }
        Err(_) => refused(404),
    }
}

async fn typing(State(world): Shared) -> Json<Value> {
    world.lock().unwrap().typing += 1;
    Json(json!({ "success": true }))
}

impl World {
    fn note(&mut self, body: Value) -> Answer {
        let id = format!("BAE5{}", self.sent.len());
        self.sent.push((id.clone(), body));
        let answer = json!({ "success": true, "messageId": id, "messageIds": [id] });
        (StatusCode::OK, Json(answer))
    }
}

fn refused(status: u16) -> Answer {
    let status = StatusCode::from_u16(status).unwrap();
    (status, Json(json!({ "error": "it was refused" })))
}
