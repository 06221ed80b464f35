//! A WhatsApp of our own, written from the public documentation of the Cloud API.
//!
//! On one side it is the Graph API: it takes messages and files, refuses what Meta refuses (long texts,
//! a fourth button, an unknown token), and fails on demand. On the other it posts signed notifications to
//! an address that answered its challenge, and repeats each until it gets a 200.

mod graph;
mod http;
mod notification;
mod webhook;
mod world;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use webhook::Webhook;
use world::World;

pub use webhook::{CHALLENGE, sign};
pub use world::{Failure, SentMessage};

/// The only token the server knows.
pub const TOKEN: &str = "EAAtest-token";
pub const PHONE_NUMBER_ID: &str = "106540352242922";
/// Another number of the same app.
pub const SECOND_NUMBER_ID: &str = "206540352242922";
/// The number itself, as people see it.
pub const DISPLAY_NUMBER: &str = "+1 555-078-3881";
pub const APP_SECRET: &str = "test-app-secret";
pub const VERIFY_TOKEN: &str = "test-verify-token";

/// Long enough for a loaded machine; nothing waits for it when all is well.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Somebody who writes to the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    /// The business-scoped id.
    pub id: &'static str,
    /// `None` for somebody who hides it.
    pub number: Option<&'static str>,
    pub name: &'static str,
}

#[derive(Debug)]
pub struct WhatsAppServer {
    address: SocketAddr,
    world: Arc<World>,
    webhook: Webhook,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl WhatsAppServer {
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let webhook = Webhook::start(stop.clone());
        let world = Arc::new(World::default());
        let router = graph::router(Arc::clone(&world), webhook.clone(), address);
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
            webhook,
            stop,
            serving,
        })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks the address whether it knows the verify token, and posts there from now on if it does.
    /// Returns the status and the body of its answer.
    pub async fn subscribe(&self, callback: &str) -> (u16, String) {
        self.webhook.subscribe(callback).await
    }

    /// Somebody writes in private. Returns the message's id.
    pub fn says(&self, person: Person, text: &str) -> String {
        self.sends(person, json!({ "type": "text", "text": { "body": text } }))
    }

    /// The same, with any fields of a message.
    pub fn sends(&self, person: Person, fields: Value) -> String {
        let id = self.world.next_id();
        self.webhook
            .post_message(&notification::message(person, &id, fields));
        id
    }

    /// A button under one of the number's messages is pressed.
    pub fn presses(&self, person: Person, message: &str, data: &str) -> String {
        let interactive =
            json!({ "type": "button_reply", "button_reply": { "id": data, "title": "?" } });
        let number: String = DISPLAY_NUMBER
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        self.sends(
            person,
            json!({
                "type": "interactive",
                "interactive": interactive,
                "context": { "from": number, "id": message },
            }),
        )
    }

    /// Posts any body, in the order of what people say and repeated until it is taken.
    pub fn posts(&self, body: &Value) {
        self.webhook.post_message(body);
    }

    /// Posts these bytes once, with this signature. Returns the status of the answer.
    pub async fn posts_raw(&self, body: &[u8], signature: Option<&str>) -> u16 {
        self.webhook.post_raw(body, signature).await
    }

    /// Bodies that were posted and taken so far.
    pub fn taken(&self) -> usize {
        self.webhook.taken()
    }

    /// The next call of this kind (`messages`, `media`, `read`, `number`, `file`) fails like this.
    pub fn fail_next(&self, call: &str, failure: Failure) {
        self.world.fail_next(call, failure);
    }

    /// The next message is taken, and a status says then that it failed with this code.
    pub fn fail_later(&self, code: i64) {
        self.world.fail_later(code);
    }

    /// Whether statuses are posted at all.
    pub fn tell_statuses(&self, tell: bool) {
        self.world.tell_statuses(tell);
    }

    pub fn put_file(&self, id: &str, bytes: impl Into<Bytes>) {
        self.world.put_file(id, bytes.into());
    }

    /// The messages that were taken so far.
    pub fn sent(&self) -> Vec<SentMessage> {
        self.world.sent()
    }

    /// The same, once there are at least `count`.
    ///
    /// # Panics
    ///
    /// If they do not come in time.
    pub async fn wait_for_sent(&self, count: usize) -> Vec<SentMessage> {
        self.wait_until("messages", || {
            let sent = self.world.sent();
            (sent.len() >= count).then_some(sent)
        })
        .await
    }

    /// Ids of messages that were marked as read, and whether typing was shown with it.
    pub fn reads(&self) -> Vec<(String, bool)> {
        self.world.reads()
    }

    /// The same, once there are at least `count`.
    pub async fn wait_for_reads(&self, count: usize) -> Vec<(String, bool)> {
        self.wait_until("read receipts", || {
            let reads = self.world.reads();
            (reads.len() >= count).then_some(reads)
        })
        .await
    }

    /// How often a kind of call was tried, with failures.
    pub fn tries(&self, call: &str) -> usize {
        self.world.tries(call)
    }

    /// The bytes of an uploaded file.
    pub fn uploaded(&self, id: &str) -> Option<Bytes> {
        self.world.file(id)
    }

    async fn wait_until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let waited = timeout(WAIT_TIMEOUT, async {
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

impl Drop for WhatsAppServer {
    fn drop(&mut self) {
        self.stop.cancel();
        self.serving.abort();
    }
}
