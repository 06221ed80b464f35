//! What the daemon knows.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermetic_types::{Clock, SystemClock};
use serde_json::Value;
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, mpsc};

/// One call that was carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub params: Value,
    /// The time by which the message that it made is known; zero if it made none.
    pub timestamp: u64,
}

/// How a call fails.
#[derive(Clone, Debug)]
pub enum Failure {
    /// As signal-cli says it; `data` as in its answer.
    Refuse {
        code: i64,
        message: &'static str,
        data: Value,
    },
    /// A status without a body.
    Status(u16),
    /// The connection breaks instead of an answer.
    Drop,
    /// The same, after the call was carried out.
    DropAfter,
}

/// `--receive-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveMode {
    /// What comes while nobody listens is lost.
    OnStart,
    /// What comes while nobody listens stays at Signal's servers.
    OnConnection,
    /// The same, and a socket has to ask for messages.
    Manual,
}

/// What goes to one who listens.
#[derive(Clone, Debug)]
pub(super) enum Sent {
    Event(String),
    KeepAlive,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) mode: ReceiveMode,
    inner: Mutex<Inner>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    listeners: Vec<mpsc::UnboundedSender<Sent>>,
    /// At Signal's servers.
    waiting: VecDeque<String>,
    is_unlinked: bool,
    /// Unlinked, and the daemon answers as before: it is a daemon for this one account.
    is_orphaned: bool,
    last_timestamp: u64,
    failures: HashMap<String, VecDeque<Failure>>,
    calls: HashMap<String, Vec<Call>>,
    tries: HashMap<String, usize>,
    files: HashMap<String, Vec<u8>>,
    registered: HashMap<String, String>,
}

impl World {
    pub(super) fn new(mode: ReceiveMode) -> Self {
        let inner = Inner {
            last_timestamp: u64::try_from(SystemClock.now().millis()).unwrap_or_default(),
            ..Inner::default()
        };
        Self {
            mode,
            inner: Mutex::new(inner),
            changed: Arc::default(),
        }
    }

    /// Hands something to everybody who listens.
    pub(super) fn push(&self, event: String) {
        self.change(|inner| {
            inner.listeners.retain(|listener| !listener.is_closed());
            if inner.listeners.is_empty() {
                if self.mode != ReceiveMode::OnStart {
                    inner.waiting.push_back(event);
                }
                return;
            }
            for listener in &inner.listeners {
                let _ = listener.send(Sent::Event(event.clone()));
            }
        });
    }

    pub(super) fn still_has(&self, timestamp: u64) -> bool {
        let inner = self.lock();
        let timestamp = timestamp.to_string();
        inner.waiting.iter().any(|event| event.contains(&timestamp))
    }

    pub(super) fn keep_alive(&self) {
        for listener in &self.lock().listeners {
            let _ = listener.send(Sent::KeepAlive);
        }
    }

    pub(super) fn listen(&self) -> mpsc::UnboundedReceiver<Sent> {
        let (listener, events) = mpsc::unbounded_channel();
        self.change(|inner| {
            for event in inner.waiting.drain(..) {
                let _ = listener.send(Sent::Event(event));
            }
            inner.listeners.push(listener);
        });
        events
    }

    pub(super) fn hang_up(&self) {
        self.change(|inner| inner.listeners.clear());
    }

    pub(super) fn listeners(&self) -> usize {
        let mut inner = self.lock();
        inner.listeners.retain(|listener| !listener.is_closed());
        inner.listeners.len()
    }

    pub(super) fn is_receiving(&self) -> bool {
        self.mode == ReceiveMode::OnStart || self.listeners() > 0
    }

    pub(super) fn set_linked(&self, linked: bool) {
        self.change(|inner| inner.is_unlinked = !linked);
    }

    pub(super) fn is_linked(&self) -> bool {
        !self.lock().is_unlinked
    }

    pub(super) fn set_orphaned(&self, orphaned: bool) {
        self.change(|inner| inner.is_orphaned = orphaned);
    }

    pub(super) fn is_orphaned(&self) -> bool {
        self.lock().is_orphaned
    }

    pub(super) fn next_timestamp(&self) -> u64 {
        let mut inner = self.lock();
        inner.last_timestamp += 1000;
        inner.last_timestamp
    }

    pub(super) fn fail_next(&self, method: &str, failure: Failure) {
        let mut inner = self.lock();
        let failures = inner.failures.entry(method.to_owned()).or_default();
        failures.push_back(failure);
    }

    /// Notes that the method is tried, and says how it is to fail.
    pub(super) fn begin(&self, method: &str) -> Option<Failure> {
        self.change(|inner| {
            *inner.tries.entry(method.to_owned()).or_default() += 1;
            inner.failures.get_mut(method)?.pop_front()
        })
    }

    pub(super) fn note(&self, method: &str, params: &Value, timestamp: u64) {
        let call = Call {
            params: params.clone(),
            timestamp,
        };
        self.change(|inner| inner.calls.entry(method.to_owned()).or_default().push(call));
    }

    pub(super) fn calls(&self, method: &str) -> Vec<Call> {
        self.lock().calls.get(method).cloned().unwrap_or_default()
    }

    pub(super) fn tries(&self, method: &str) -> usize {
        self.lock().tries.get(method).copied().unwrap_or_default()
    }

    pub(super) fn put_file(&self, id: &str, bytes: &[u8]) {
        self.lock().files.insert(id.to_owned(), bytes.to_vec());
    }

    pub(super) fn file(&self, id: &str) -> Option<Vec<u8>> {
        self.lock().files.get(id).cloned()
    }

    pub(super) fn register(&self, number: &str, uuid: &str) {
        let mut inner = self.lock();
        inner.registered.insert(number.to_owned(), uuid.to_owned());
    }

    pub(super) fn uuid(&self, number: &str) -> Option<String> {
        self.lock().registered.get(number).cloned()
    }

    pub(super) fn changed(&self) -> OwnedNotified {
        Arc::clone(&self.changed).notified_owned()
    }

    pub(super) fn note_change(&self) {
        self.changed.notify_waiters();
    }

    fn change<T>(&self, how: impl FnOnce(&mut Inner) -> T) -> T {
        let changed = how(&mut self.lock());
        self.note_change();
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
