//! A daemon like signal-cli's, written from its manual pages and its published source.
//!
//! It speaks JSON-RPC over HTTP, with events as Server-Sent Events, and over a socket, a line for each. It
//! hands an event over once, to everybody who is connected, and keeps it for the next who connects only if
//! it was started so. It refuses what signal-cli refuses, and fails on demand.

mod http;
mod methods;
mod socket;
mod world;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use world::World;

pub use world::{Call, Failure, ReceiveMode};

/// The number that the daemon runs as.
pub const NUMBER: &str = "+4915100000001";
/// The id behind it.
pub const UUID: &str = "aaaaaaaa-0000-4000-8000-000000000001";

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct SignalServer {
    address: SocketAddr,
    sockets: SocketAddr,
    world: Arc<World>,
    serving: Vec<JoinHandle<()>>,
}

/// Somebody on Signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    pub uuid: &'static str,
    pub number: Option<&'static str>,
    pub name: &'static str,
}

pub const ALICE: Person = Person {
    uuid: "bbbbbbbb-0000-4000-8000-000000000002",
    number: Some("+4915100000002"),
    name: "Alice",
};

/// Shows no number.
pub const BOB: Person = Person {
    uuid: "cccccccc-0000-4000-8000-000000000003",
    number: None,
    name: "Bob",
};

/// The owner of the account, on the phone.
pub const OWNER: Person = Person {
    uuid: UUID,
    number: Some(NUMBER),
    name: "Owner",
};

impl SignalServer {
    /// On loopback, with HTTP on one port and lines on another.
    pub async fn start(mode: ReceiveMode) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let lines = TcpListener::bind("127.0.0.1:0").await?;
        let (address, sockets) = (listener.local_addr()?, lines.local_addr()?);
        let world = Arc::new(World::new(mode));
        let router = http::router(Arc::clone(&world));
        let http = tokio::spawn(async move {
            // Ends with the task.
            let _ = axum::serve(listener, router).await;
        });
        let lines = tokio::spawn(socket::serve_tcp(lines, Arc::clone(&world)));
        Ok(Self {
            address,
            sockets,
            world,
            serving: vec![http, lines],
        })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address of its socket.
    pub fn socket_url(&self) -> String {
        format!("tcp://{}", self.sockets)
    }

    /// Listens on a UNIX socket as well.
    pub fn listen_at(&mut self, path: &Path) -> std::io::Result<String> {
        let listener = UnixListener::bind(path)?;
        let serving = socket::serve_unix(listener, Arc::clone(&self.world));
        self.serving.push(tokio::spawn(serving));
        Ok(format!("unix://{}", path.display()))
    }

    /// Somebody writes in private. Returns the time by which the message is known.
    pub fn says(&self, person: Person, text: &str) -> u64 {
        self.says_with(person, json!({ "message": text }))
    }

    /// The same, with any fields of a message.
    pub fn says_with(&self, person: Person, fields: Value) -> u64 {
        let (timestamp, message) = self.data(fields);
        self.event(&envelope(
            person,
            timestamp,
            json!({ "dataMessage": message }),
        ));
        timestamp
    }

    /// Somebody changes a message of theirs. Returns the time by which the change is known.
    pub fn edits(&self, person: Person, message: u64, text: &str) -> u64 {
        let (timestamp, data) = self.data(json!({ "message": text }));
        let edit = json!({ "targetSentTimestamp": message, "dataMessage": data });
        self.event(&envelope(person, timestamp, json!({ "editMessage": edit })));
        timestamp
    }

    /// Somebody reacts to one of the account's messages.
    pub fn reacts(&self, person: Person, message: u64, emoji: &str) -> u64 {
        self.says_with(person, reaction(message, emoji))
    }

    /// The owner of the account writes on the phone, to themselves if nobody else is named.
    pub fn owner_writes(&self, fields: Value) -> u64 {
        let (timestamp, message) = self.data(fields);
        let mut sent = json!({ "destinationNumber": NUMBER, "destinationUuid": UUID });
        extend(&mut sent, message);
        let sync = json!({ "syncMessage": { "sentMessage": sent } });
        self.event(&envelope(OWNER, timestamp, sync));
        timestamp
    }

    /// Anything at all, as an event.
    pub fn event(&self, event: &Value) {
        self.world.push(event.to_string());
    }

    /// Something that is not even JSON.
    pub fn garbage(&self, text: &str) {
        self.world.push(text.to_owned());
    }

    /// A sign of life.
    pub fn keep_alive(&self) {
        self.world.keep_alive();
    }

    /// Ends every connection over which events go.
    pub fn hang_up(&self) {
        self.world.hang_up();
    }

    /// The phone unlinks the daemon.
    pub fn unlink(&self) {
        self.world.set_linked(false);
    }

    /// The phone unlinks a daemon that is one for this account alone: it goes on answering what it can by
    /// itself.
    pub fn orphan(&self) {
        self.world.set_orphaned(true);
    }

    pub fn link(&self) {
        self.world.set_orphaned(false);
        self.world.set_linked(true);
    }

    /// The next call of this method, or of `events`, fails like this. Failures queue up.
    pub fn fail_next(&self, method: &str, failure: Failure) {
        self.world.fail_next(method, failure);
    }

    pub fn put_file(&self, id: &str, bytes: &[u8]) {
        self.world.put_file(id, bytes);
    }

    /// Somebody can be found by their number.
    pub fn register(&self, number: &str, uuid: &str) {
        self.world.register(number, uuid);
    }

    /// The calls of this method so far that succeeded.
    pub fn calls(&self, method: &str) -> Vec<Call> {
        self.world.calls(method)
    }

    /// How often the method was tried so far, with failures.
    pub fn tries(&self, method: &str) -> usize {
        self.world.tries(method)
    }

    /// Whether a message waits at Signal's servers for somebody to connect.
    pub fn still_has(&self, timestamp: u64) -> bool {
        self.world.still_has(timestamp)
    }

    /// How many connections take events.
    pub fn listeners(&self) -> usize {
        self.world.listeners()
    }

    /// The calls of this method, once there are at least `count`.
    pub async fn wait_for(&self, method: &str, count: usize) -> Vec<Call> {
        let look = || Some(self.calls(method)).filter(|calls| calls.len() >= count);
        self.wait_until(&format!("{count} calls of {method}"), look)
            .await
    }

    /// Waits until so many connections take events.
    pub async fn wait_for_listeners(&self, count: usize) {
        let look = || (self.listeners() == count).then_some(());
        self.wait_until(&format!("{count} listeners"), look).await;
    }

    /// Waits until something is so; looked at whenever the daemon did something.
    ///
    /// # Panics
    ///
    /// If it does not become so in time.
    pub async fn wait_until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
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

    fn data(&self, fields: Value) -> (u64, Value) {
        let timestamp = self.world.next_timestamp();
        let mut message = json!({
            "timestamp": timestamp, "message": null, "expiresInSeconds": 0, "viewOnce": false,
        });
        extend(&mut message, fields);
        (timestamp, message)
    }
}

/// The fields of a reaction to one of the account's messages.
pub fn reaction(message: u64, emoji: &str) -> Value {
    json!({ "reaction": {
        "emoji": emoji, "targetAuthor": NUMBER, "targetAuthorNumber": NUMBER,
        "targetAuthorUuid": UUID, "targetSentTimestamp": message, "isRemove": false,
    }})
}

/// The fields of a message in a group.
pub fn in_group(group: &str, text: &str) -> Value {
    let info =
        json!({ "groupId": group, "groupName": "a group", "revision": 1, "type": "DELIVER" });
    json!({ "message": text, "groupInfo": info })
}

fn envelope(person: Person, timestamp: u64, content: Value) -> Value {
    let Person { uuid, number, name } = person;
    let mut envelope = json!({
        "source": number.unwrap_or(uuid), "sourceNumber": number, "sourceUuid": uuid,
        "sourceName": name, "sourceDevice": 1, "timestamp": timestamp,
        "serverReceivedTimestamp": timestamp, "serverDeliveredTimestamp": timestamp,
    });
    extend(&mut envelope, content);
    json!({ "envelope": envelope, "account": NUMBER })
}

fn extend(into: &mut Value, fields: Value) {
    if let (Some(into), Value::Object(fields)) = (into.as_object_mut(), fields) {
        into.extend(fields);
    }
}

impl Drop for SignalServer {
    fn drop(&mut self) {
        self.world.hang_up();
        for serving in &self.serving {
            serving.abort();
        }
    }
}
