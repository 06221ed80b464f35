//! A Slack of our own, written from the public documentation: the Web API, Socket Mode and histories.
//!
//! It sends an event to one of the sockets that are open, sends it again when that socket goes before it
//! was acknowledged, and loses what happens while none is open, as Slack does. It posts to the channel
//! when a thread is gone, and fails on demand.

mod events;
mod files;
mod methods;
mod params;
mod sockets;
mod world;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use world::World;

pub use events::direct_channel;
pub use world::{Failure, WhileAway};

/// The only tokens the server knows.
pub const BOT_TOKEN: &str = "xoxb-test-token";
pub const APP_TOKEN: &str = "xapp-test-token";
pub const TEAM: &str = "T0HOME";
pub const BOT_USER: &str = "U0BOT";
pub const BOT_ID: &str = "B0BOT";
/// A channel in which the bot is.
pub const CHANNEL: &str = "C0GENERAL";

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct SlackServer {
    address: SocketAddr,
    world: Arc<World>,
    serving: [JoinHandle<()>; 2],
}

impl SlackServer {
    pub async fn start() -> std::io::Result<Self> {
        let (methods, sockets) = (bind().await?, bind().await?);
        let address = methods.local_addr()?;
        let world = Arc::new(World::new(address, sockets.local_addr()?));
        let router = methods::router(Arc::clone(&world));
        let serving_methods = tokio::spawn(async move {
            // Ends with the server.
            let _ = axum::serve(methods, router).await;
        });
        let serving_sockets = tokio::spawn(sockets::serve(sockets, Arc::clone(&world)));
        Ok(Self {
            address,
            world,
            serving: [serving_methods, serving_sockets],
        })
    }

    /// What stands in the place of `https://slack.com/api`.
    pub fn url(&self) -> String {
        format!("http://{}/api", self.address)
    }

    /// What becomes of events while no socket is open.
    pub fn while_away(&self, away: WhileAway) {
        self.world.lock().while_away = away;
    }

    /// What somebody calls themselves.
    pub fn call_person(&self, user: &str, name: &str) {
        let names = &mut self.world.lock().names;
        names.insert(user.to_owned(), name.to_owned());
    }

    /// Takes a scope away from the bot token.
    pub fn revoke_scope(&self, scope: &str) {
        self.world.lock().revoked.push(scope.to_owned());
    }

    /// The next call of this method fails like this. Failures queue up.
    pub fn fail_next(&self, method: &str, failure: Failure) {
        self.world.fail_next(method, failure);
    }

    /// The calls of this method so far that succeeded, by their parameters.
    pub fn calls(&self, method: &str) -> Vec<Value> {
        self.world.calls(method)
    }

    /// How often the method was tried so far, with failures.
    pub fn tries(&self, method: &str) -> usize {
        self.world.tries(method)
    }

    /// The calls of this method, once there are at least `count`.
    ///
    /// # Panics
    ///
    /// If they do not come in time.
    pub async fn wait_for(&self, method: &str, count: usize) -> Vec<Value> {
        self.wait_until(&format!("{count} calls of {method}"), || {
            let calls = self.world.calls(method);
            (calls.len() >= count).then_some(calls)
        })
        .await
    }

    /// Waits until the method was tried so often, with failures.
    pub async fn wait_for_tries(&self, method: &str, count: usize) {
        self.wait_until(&format!("{count} tries of {method}"), || {
            (self.world.tries(method) >= count).then_some(())
        })
        .await;
    }

    /// Sockets that are open now.
    pub fn open_sockets(&self) -> usize {
        self.world.lock().sockets.len()
    }

    /// Waits until so many sockets were opened since the start.
    pub async fn wait_for_sockets(&self, count: usize) {
        self.wait_until(&format!("{count} sockets"), || {
            (self.world.lock().sockets_opened >= count).then_some(())
        })
        .await;
    }

    /// Waits until so many sockets are open.
    pub async fn wait_for_open_sockets(&self, count: usize) {
        self.wait_until(&format!("{count} open sockets"), || {
            (self.open_sockets() == count).then_some(())
        })
        .await;
    }

    /// Envelopes that were sent and not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.world.lock().unacknowledged.len()
    }

    /// Waits until every envelope is acknowledged.
    pub async fn wait_until_acknowledged(&self) {
        self.wait_until("all envelopes acknowledged", || {
            (self.unacknowledged() == 0).then_some(())
        })
        .await;
    }

    /// The texts that people see in a channel, each as it was changed last.
    pub fn shown(&self, channel: &str) -> Vec<String> {
        self.world.shown(channel)
    }

    /// The bot's messages in a channel by their times, each as people see it now.
    pub fn messages(&self, channel: &str) -> Vec<(String, String)> {
        self.world.own_messages(channel)
    }

    /// A message of a channel or thread, as the history has it.
    pub fn message(&self, channel: &str, ts: &str) -> Option<Value> {
        let inner = self.world.lock();
        inner.channels.get(channel)?.get(ts).cloned()
    }

    /// Waits until `look` finds what it wants; it is tried again whenever something happens.
    ///
    /// # Panics
    ///
    /// If it does not come in time.
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
}

impl Drop for SlackServer {
    fn drop(&mut self) {
        self.world.lock().sockets.clear();
        for serving in &self.serving {
            serving.abort();
        }
    }
}

async fn bind() -> std::io::Result<TcpListener> {
    TcpListener::bind("127.0.0.1:0").await
}
