//! A Discord server of our own, written from the public documentation.
//!
//! Its gateway numbers events, keeps them for who resumes, and closes with Discord's codes; its HTTP API
//! refuses what Discord refuses (long texts, a second thread under a message, a press answered late), and
//! fails on demand. Discord's own client library is tried against it too, so that it is more than a
//! mirror of ours.

mod gateway;
mod methods;
mod people;
mod rest;
mod rules;
mod session;
mod world;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use session::Order;
use world::World;

pub use world::{Call, Failure};

/// The only token the server knows.
pub const TOKEN: &str = "NDI.test.token-of-the-bot";
pub const BOT_ID: u64 = 42;
pub const APPLICATION: u64 = 43;
/// A server with one channel.
pub const GUILD: u64 = 50;
pub const CHANNEL: u64 = 51;

/// The routes that tests ask about most.
pub const CREATE_MESSAGE: &str = "POST /channels/{}/messages";
pub const EDIT_MESSAGE: &str = "PATCH /channels/{}/messages/{}";
pub const MAKE_THREAD: &str = "POST /channels/{}/messages/{}/threads";
pub const FIRST_ANSWER: &str = "POST /interactions/{}/{}/callback";
pub const HISTORY: &str = "GET /channels/{}/messages";

/// Long enough for a client that takes its time to start on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// As Discord has it.
const BEAT: Duration = Duration::from_millis(41_250);

#[derive(Debug)]
pub struct DiscordServer {
    address: SocketAddr,
    world: Arc<World>,
    serving: [JoinHandle<()>; 2],
}

impl DiscordServer {
    pub async fn start() -> std::io::Result<Self> {
        Self::beating(BEAT).await
    }

    /// A server that wants to hear beats so often.
    pub async fn beating(every: Duration) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let sockets = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let gateway = format!("ws://{}", sockets.local_addr()?);
        let world = Arc::new(World::default());
        world.change(|inner| inner.gateway_url.clone_from(&gateway));
        let router = rest::router(Arc::clone(&world));
        let api = tokio::spawn(async move {
            // It ends when it is aborted.
            let _ = axum::serve(listener, router).await;
        });
        let events = gateway::serve(sockets, gateway, Arc::clone(&world), every);
        Ok(Self {
            address,
            world,
            serving: [api, tokio::spawn(events)],
        })
    }

    /// Of the API with its version.
    pub fn url(&self) -> String {
        format!("http://{}/api/v10", self.address)
    }

    /// The address of a file that attachments may name.
    pub fn put_file(&self, name: &str, bytes: impl Into<bytes::Bytes>) -> String {
        let bytes = bytes.into();
        self.world
            .change(|inner| inner.files.insert(name.to_owned(), bytes));
        format!("http://{}/files/{name}", self.address)
    }

    /// The next call of this route fails like this. Failures queue up.
    pub fn fail_next(&self, route: &str, failure: Failure) {
        self.world.fail_next(route, failure);
    }

    /// From now on the route may be called so often in so much time.
    pub fn limit(&self, route: &str, most: u32, each: Duration) {
        self.world.limit(route, most, each);
    }

    /// The calls of this route so far that succeeded.
    pub fn calls(&self, route: &str) -> Vec<Call> {
        self.world.calls(route)
    }

    /// How often the route was tried so far, with failures.
    pub fn tries(&self, route: &str) -> usize {
        self.world.tries(route)
    }

    /// The calls of this route, once there are at least `count`.
    ///
    /// # Panics
    ///
    /// If they do not come in time.
    pub async fn wait_for(&self, route: &str, count: usize) -> Vec<Call> {
        self.wait_until(&format!("{count} calls of {route}"), || {
            let calls = self.world.calls(route);
            (calls.len() >= count).then_some(calls)
        })
        .await
    }

    /// Waits until the route was tried so often, with failures.
    pub async fn wait_for_tries(&self, route: &str, count: usize) {
        self.wait_until(&format!("{count} tries of {route}"), || {
            (self.world.tries(route) >= count).then_some(())
        })
        .await;
    }

    /// How many sessions were begun.
    pub fn identifies(&self) -> u32 {
        self.world.look(|inner| inner.identifies)
    }

    /// The numbers that sessions were resumed from.
    pub fn resumes(&self) -> Vec<u64> {
        self.world.look(|inner| inner.resumes.clone())
    }

    /// The codes that the bot closed connections with.
    pub fn closes(&self) -> Vec<u16> {
        self.world.look(|inner| inner.closes.clone())
    }

    pub fn beats(&self) -> u32 {
        self.world.look(|inner| inner.beats)
    }

    /// The number of the last event.
    pub fn sequence(&self) -> u64 {
        self.world
            .look(|inner| inner.session.as_ref().map_or(0, |session| session.sequence))
    }

    /// Sessions that may still be begun.
    pub fn leave_starts(&self, left: u64) {
        self.world.change(|inner| inner.starts_left = left);
    }

    /// The message content intent is not switched on for this bot.
    pub fn withhold_content(&self) {
        self.world.change(|inner| inner.has_message_content = false);
    }

    /// Beats are not answered any more, or again.
    pub fn answer_beats(&self, answers: bool) {
        self.world.change(|inner| inner.answers_beats = answers);
    }

    /// People wait for the first bot with what they do. At Discord it would be lost.
    pub fn wait_for_first_bot(&self) {
        self.world.change(|inner| inner.early = Some(Vec::new()));
    }

    /// Somebody has these roles in the server.
    pub fn give_roles(&self, user: u64, roles: &[u64]) {
        self.world
            .change(|inner| inner.roles.insert(user, roles.to_vec()));
    }

    /// The bot may do this in the server and nothing else, by Discord's bits.
    pub fn permit_only(&self, permissions: u64) {
        self.world.change(|inner| inner.permissions = permissions);
    }

    pub fn forbid_threads(&self) {
        self.world.change(|inner| inner.may_make_threads = false);
    }

    /// The session is over, and the connection with it.
    pub fn forget_session(&self) {
        self.world.change(|inner| {
            if let Some(session) = inner.session.take() {
                session.order(Order::Cut);
            }
        });
    }

    /// Closes the bot's connection with this code; the session lives on.
    pub fn close(&self, code: u16) {
        self.order(Order::Close(code));
    }

    /// The connection ends without a word.
    pub fn cut(&self) {
        self.order(Order::Cut);
    }

    pub fn order_reconnect(&self) {
        self.order(Order::Send(json!({ "op": 7, "d": null })));
    }

    pub fn invalidate_session(&self, resumable: bool) {
        self.order(Order::Send(json!({ "op": 9, "d": resumable })));
    }

    pub fn ask_for_beat(&self) {
        self.order(Order::Send(json!({ "op": 1, "d": null })));
    }

    /// Something that is no payload.
    pub fn garbage(&self, text: &str) {
        self.order(Order::SendText(text.to_owned()));
    }

    /// Any event, numbered.
    pub fn dispatch(&self, kind: &str, data: Value) {
        self.world.change(|inner| inner.dispatch(kind, data));
    }

    /// Waits until a bot is connected.
    pub async fn wait_for_bot(&self) {
        self.wait_until("a bot", || {
            let connected = |inner: &world::Inner| {
                inner
                    .session
                    .as_ref()
                    .is_some_and(session::Session::is_connected)
            };
            self.world.look(connected).then_some(())
        })
        .await;
    }

    /// Waits until something is so.
    ///
    /// # Panics
    ///
    /// If that does not come in time.
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

    fn order(&self, order: Order) {
        self.world.look(|inner| {
            if let Some(session) = &inner.session {
                session.order(order);
            }
        });
    }
}

impl Drop for DiscordServer {
    fn drop(&mut self) {
        self.serving.iter().for_each(JoinHandle::abort);
    }
}
