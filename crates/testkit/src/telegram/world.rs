//! What the server knows.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// One call the bot made.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub params: Value,
    /// The bytes of an uploaded file.
    pub file: Option<Bytes>,
    /// The id of the message it made.
    pub message: i64,
}

/// How a call fails.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Not this one: it goes through.
    NotYet,
    /// As Telegram says it.
    Refuse {
        code: u16,
        description: &'static str,
        retry_after: Option<u64>,
    },
    /// A page by something in between.
    BadGateway,
    /// The connection breaks in the middle of the answer.
    Drop,
    /// The same, after the call was carried out.
    DropAfter,
    /// Telegram waits for somebody who never comes.
    Hang,
}

#[derive(Debug, Default)]
pub(super) struct World {
    inner: Mutex<Inner>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    updates: BTreeMap<i64, Value>,
    garbage: Vec<Value>,
    last_update: i64,
    last_message: i64,
    failures: HashMap<String, VecDeque<Failure>>,
    calls: HashMap<String, Vec<Call>>,
    tries: HashMap<String, usize>,
    texts: HashMap<(i64, i64), String>,
    files: HashMap<String, Bytes>,
}

impl World {
    pub(super) fn push(&self, mut update: Value) -> i64 {
        let mut inner = self.lock();
        let id = update
            .get("update_id")
            .and_then(Value::as_i64)
            .unwrap_or(inner.last_update + 1);
        inner.last_update = inner.last_update.max(id);
        update["update_id"] = json!(id);
        inner.updates.insert(id, update);
        drop(inner);
        self.changed.notify_waiters();
        id
    }

    pub(super) fn push_garbage(&self, value: Value) {
        self.lock().garbage.push(value);
        self.changed.notify_waiters();
    }

    /// Forgets what is below the offset and returns what is left. In reverse: a bot that relies on
    /// the order would be found out.
    pub(super) fn take_updates(&self, offset: Option<i64>) -> Vec<Value> {
        let mut inner = self.lock();
        let before = inner.updates.len();
        if let Some(offset) = offset {
            inner.updates.retain(|id, _| *id >= offset);
        }
        let confirmed = inner.updates.len() < before;
        let garbage = std::mem::take(&mut inner.garbage);
        let updates = inner
            .updates
            .values()
            .rev()
            .cloned()
            .chain(garbage)
            .collect();
        drop(inner);
        if confirmed {
            self.changed.notify_waiters();
        }
        updates
    }

    pub(super) fn unconfirmed(&self) -> Vec<i64> {
        self.lock().updates.keys().copied().collect()
    }

    pub(super) fn next_message(&self) -> i64 {
        let mut inner = self.lock();
        inner.last_message += 1;
        inner.last_message
    }

    pub(super) fn fail_next(&self, method: &str, failure: Failure) {
        self.lock()
            .failures
            .entry(method.to_owned())
            .or_default()
            .push_back(failure);
    }

    /// Counts a try and says whether it is to fail.
    pub(super) fn failure(&self, method: &str) -> Option<Failure> {
        let mut inner = self.lock();
        *inner.tries.entry(method.to_owned()).or_default() += 1;
        let failure = inner.failures.get_mut(method).and_then(VecDeque::pop_front);
        drop(inner);
        self.changed.notify_waiters();
        failure
    }

    pub(super) fn note(&self, method: &str, call: Call) {
        self.lock()
            .calls
            .entry(method.to_owned())
            .or_default()
            .push(call);
        self.changed.notify_waiters();
    }

    pub(super) fn calls(&self, method: &str) -> Vec<Call> {
        self.lock().calls.get(method).cloned().unwrap_or_default()
    }

    pub(super) fn tries(&self, method: &str) -> usize {
        self.lock().tries.get(method).copied().unwrap_or_default()
    }

    /// The text a message shows from now on; returns what it showed before.
    pub(super) fn set_text(&self, chat: i64, message: i64, text: String) -> Option<String> {
        self.lock().texts.insert((chat, message), text)
    }

    pub(super) fn text(&self, chat: i64, message: i64) -> Option<String> {
        self.lock().texts.get(&(chat, message)).cloned()
    }

    pub(super) fn texts(&self, chat: i64) -> Vec<String> {
        let inner = self.lock();
        let own = inner.texts.iter().filter(|((of, _), _)| *of == chat);
        own.map(|(_, text)| text.clone()).collect()
    }

    pub(super) fn put_file(&self, id: &str, bytes: Bytes) {
        self.lock().files.insert(id.to_owned(), bytes);
    }

    pub(super) fn file(&self, id: &str) -> Option<Bytes> {
        self.lock().files.get(id).cloned()
    }

    /// Completes at the next change after this call, also if it is polled only later.
    pub(super) fn changed(&self) -> OwnedNotified {
        Arc::clone(&self.changed).notified_owned()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
