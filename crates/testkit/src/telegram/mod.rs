//! A Telegram server of our own, written from the public Bot API documentation.
//!
//! It keeps updates until a later offset confirms them, holds a poll open, refuses what Telegram
//! refuses (bad MarkdownV2, long texts, long button data, edits that change nothing), and fails on
//! demand.

mod markdown_v2;
mod methods;
mod world;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use world::World;

pub use markdown_v2::{CannotParse, visible_text};
pub use world::{Call, Failure};

/// The only token the server knows.
pub const TOKEN: &str = "42:test-token";
pub const BOT_ID: i64 = 42;
pub const BOT_NAME: &str = "HermeticTestBot";

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct TelegramServer {
    address: SocketAddr,
    world: Arc<World>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl TelegramServer {
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let world = Arc::new(World::default());
        let stop = CancellationToken::new();
        let router = methods::router(Arc::clone(&world));
        let ended = stop.clone();
        let serving = tokio::spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                _ = axum::serve(listener, router) => {}
            }
        });
        Ok(Self {
            address,
            world,
            stop,
            serving,
        })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Somebody writes to the bot in private. Returns the update's id.
    pub fn says(&self, user: i64, text: &str) -> i64 {
        self.says_with(user, json!({ "text": text }))
    }

    /// The same, with any fields of a message.
    pub fn says_with(&self, user: i64, fields: Value) -> i64 {
        let mut message = json!({
            "message_id": self.world.next_message(),
            "date": 1_700_000_000,
            "chat": { "id": user, "type": "private" },
            "from": { "id": user, "is_bot": false, "first_name": format!("user {user}") },
        });
        if let (Some(message), Value::Object(fields)) = (message.as_object_mut(), fields) {
            message.extend(fields);
        }
        self.update(json!({ "message": message }))
    }

    /// A button under one of the bot's messages is pressed.
    pub fn presses(&self, user: i64, message: i64, data: &str) -> i64 {
        self.update(json!({ "callback_query": {
            "id": format!("query-{message}"),
            "from": { "id": user, "is_bot": false, "first_name": format!("user {user}") },
            "message": { "message_id": message, "date": 0, "chat": { "id": user, "type": "private" } },
            "chat_instance": "1",
            "data": data,
        }}))
    }

    /// Any update; the id is put in unless it is there.
    pub fn update(&self, update: Value) -> i64 {
        self.world.push(update)
    }

    /// Something that is no update at all, once.
    pub fn garbage(&self, value: Value) {
        self.world.push_garbage(value);
    }

    /// The next call of this method fails like this. Failures queue up.
    pub fn fail_next(&self, method: &str, failure: Failure) {
        self.world.fail_next(method, failure);
    }

    pub fn put_file(&self, id: &str, bytes: impl Into<bytes::Bytes>) {
        self.world.put_file(id, bytes.into());
    }

    /// Ids of the updates the bot has not confirmed.
    pub fn unconfirmed(&self) -> Vec<i64> {
        self.world.unconfirmed()
    }

    /// The calls of this method so far that succeeded.
    pub fn calls(&self, method: &str) -> Vec<Call> {
        self.world.calls(method)
    }

    /// The calls of this method, once there are at least `count`.
    ///
    /// # Panics
    ///
    /// If they do not come in time.
    pub async fn wait_for(&self, method: &str, count: usize) -> Vec<Call> {
        self.wait_until(&format!("{count} calls of {method}"), || {
            let calls = self.world.calls(method);
            (calls.len() >= count).then_some(calls)
        })
        .await
    }

    /// The texts of the bot in a chat, each as it was changed last and as it was sent.
    pub fn shown(&self, chat: i64) -> Vec<String> {
        self.world.texts(chat)
    }

    /// How often the method was tried so far, with failures.
    pub fn tries(&self, method: &str) -> usize {
        self.world.tries(method)
    }

    /// Waits until the method was tried so often, with failures.
    pub async fn wait_for_tries(&self, method: &str, count: usize) {
        self.wait_until(&format!("{count} tries of {method}"), || {
            (self.world.tries(method) >= count).then_some(())
        })
        .await;
    }

    /// Waits until every update is confirmed.
    pub async fn wait_until_confirmed(&self) {
        self.wait_until("all updates confirmed", || {
            self.world.unconfirmed().is_empty().then_some(())
        })
        .await;
    }

    async fn wait_until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let waited = timeout(PATIENCE, async {
            loop {
                let changed = self.world.changed();
                if let Some(found) = look() {
                    return found;
                }
                changed.await;
            }
        });
        match waited.await {
            Ok(found) => found,
            Err(_) => {
                #[expect(clippy::panic, reason = "a test that waits in vain has failed")]
                {
                    panic!("waited in vain for {what}")
                }
            }
        }
    }
}

impl Drop for TelegramServer {
    fn drop(&mut self) {
        self.stop.cancel();
        self.serving.abort();
    }
}
