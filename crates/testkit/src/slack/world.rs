//! What the server knows.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hermetic_types::{Clock as _, SystemClock};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::sync::mpsc::UnboundedSender;

/// What the bot token may do.
const SCOPES: [&str; 14] = [
    "app_mentions:read",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
];

/// How a call fails.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Not this one: it goes through.
    NotYet,
    /// As Slack says it: `ok: false` and this error.
    Refuse(&'static str),
    /// 429, with seconds to wait.
    Throttle(u64),
    /// A page by something in between.
    BadGateway,
    /// The connection breaks in the middle of the answer.
    Drop,
    /// The same, after the call was carried out.
    DropAfter,
}

/// What becomes of events while no socket is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhileAway {
    /// As on Slack.
    #[default]
    Lost,
    /// As if the first socket were there already: for tests that speak before anybody listens.
    Kept,
}

/// What the server sends over a socket.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    Text(String),
    /// The connection goes, without a word.
    Cut,
    /// The server reads and says nothing any more, not even a pong.
    Freeze,
}

#[derive(Debug)]
pub(super) struct World {
    inner: Mutex<Inner>,
    changed: Arc<Notify>,
    pub(super) methods_at: SocketAddr,
    pub(super) sockets_at: SocketAddr,
}

#[derive(Debug, Default)]
pub(super) struct Inner {
    /// Messages by their time, channel by channel.
    pub(super) channels: BTreeMap<String, BTreeMap<String, Value>>,
    pub(super) sockets: BTreeMap<usize, UnboundedSender<Frame>>,
    pub(super) sockets_opened: usize,
    pub(super) tickets: Vec<String>,
    pub(super) while_away: WhileAway,
    /// By envelope: what was sent, and over which socket.
    pub(super) unacknowledged: BTreeMap<String, (usize, Value)>,
    pub(super) waiting: VecDeque<Value>,
    pub(super) files: HashMap<String, StoredFile>,
    /// What the bot token may not do.
    pub(super) revoked: Vec<String>,
    /// What people call themselves.
    pub(super) names: HashMap<String, String>,
    /// The page size of histories.
    pub(super) page: usize,
    calls: HashMap<String, Vec<Value>>,
    tries: HashMap<String, usize>,
    failures: HashMap<String, VecDeque<Failure>>,
    counter: u64,
}

#[derive(Clone, Debug)]
pub(super) struct StoredFile {
    pub(super) name: String,
    pub(super) mime: String,
    pub(super) bytes: Bytes,
    /// The login page is shown instead of it.
    pub(super) hidden: bool,
}

impl World {
    pub(super) fn new(methods_at: SocketAddr, sockets_at: SocketAddr) -> Self {
        let inner = Inner {
            page: 200,
            ..Inner::default()
        };
        Self {
            inner: Mutex::new(inner),
            changed: Arc::default(),
            methods_at,
            sockets_at,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves at the next change after this call.
    pub(super) fn changed(&self) -> OwnedNotified {
        Arc::clone(&self.changed).notified_owned()
    }

    pub(super) fn notify(&self) {
        self.changed.notify_waiters();
    }

    /// A number that nobody had before.
    pub(super) fn number(&self) -> u64 {
        let mut inner = self.lock();
        inner.counter += 1;
        inner.counter
    }

    /// The time of the next message: now, and later than all before.
    pub(super) fn next_ts(&self) -> String {
        let number = self.number();
        let seconds = SystemClock.now().seconds();
        format!("{seconds}.{:06}", number * 10)
    }

    /// What the bot token may do, as Slack tells it.
    pub(super) fn scopes(&self) -> String {
        let inner = self.lock();
        let granted = SCOPES
            .iter()
            .filter(|scope| !inner.revoked.iter().any(|one| one == *scope));
        granted.copied().collect::<Vec<_>>().join(",")
    }

    pub(super) fn put(&self, channel: &str, ts: &str, message: Value) {
        let mut inner = self.lock();
        let messages = inner.channels.entry(channel.to_owned()).or_default();
        messages.insert(ts.to_owned(), message);
    }

    pub(super) fn shown(&self, channel: &str) -> Vec<String> {
        let messages = self.own_messages(channel).into_iter();
        messages.map(|(_, text)| text).collect()
    }

    pub(super) fn own_messages(&self, channel: &str) -> Vec<(String, String)> {
        let inner = self.lock();
        let messages = inner.channels.get(channel).into_iter().flatten();
        let own = messages.filter(|(_, message)| message["bot_id"].is_string());
        own.map(|(ts, message)| (ts.clone(), visible_text(message)))
            .collect()
    }

    pub(super) fn fail_next(&self, method: &str, failure: Failure) {
        let mut inner = self.lock();
        let failures = inner.failures.entry(method.to_owned()).or_default();
        failures.push_back(failure);
    }

    /// Counts the attempt; how it fails, if it does.
    pub(super) fn attempt(&self, method: &str) -> Option<Failure> {
        let failure = {
            let mut inner = self.lock();
            *inner.tries.entry(method.to_owned()).or_default() += 1;
            inner.failures.get_mut(method).and_then(VecDeque::pop_front)
        };
        self.notify();
        failure
    }

    pub(super) fn note_call(&self, method: &str, params: Value) {
        let mut inner = self.lock();
        inner
            .calls
            .entry(method.to_owned())
            .or_default()
            .push(params);
        drop(inner);
        self.notify();
    }

    pub(super) fn calls(&self, method: &str) -> Vec<Value> {
        self.lock().calls.get(method).cloned().unwrap_or_default()
    }

    pub(super) fn tries(&self, method: &str) -> usize {
        self.lock().tries.get(method).copied().unwrap_or_default()
    }
}

/// What a person reads: the blocks where there are any, otherwise the text.
fn visible_text(message: &Value) -> String {
    let blocks = message["blocks"].as_array().into_iter().flatten();
    let sections: Vec<_> = blocks
        .filter_map(|block| block["text"]["text"].as_str())
        .collect();
    let text = match sections.is_empty() {
        true => message["text"].as_str().unwrap_or_default().to_owned(),
        false => sections.join("\n"),
    };
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}
