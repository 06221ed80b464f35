//! What the server knows.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// A message that was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct SentMessage {
    pub id: String,
    pub body: Value,
}

/// How a call fails.
#[derive(Clone, Debug)]
pub enum Failure {
    /// As Meta says it.
    Refuse {
        status: u16,
        code: i64,
        retry_after: Option<u64>,
    },
    /// A page by something in between.
    BadGateway,
    /// The connection breaks in the middle of the answer, after the call was carried out.
    DropAfter,
}

#[derive(Debug, Default)]
pub(super) struct World {
    inner: Mutex<Inner>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    failures: HashMap<String, VecDeque<Failure>>,
    later: VecDeque<i64>,
    untold: bool,
    tries: HashMap<String, usize>,
    sent: Vec<SentMessage>,
    reads: Vec<(String, bool)>,
    files: HashMap<String, Bytes>,
}

impl SentMessage {
    /// What the person reads.
    pub fn text(&self) -> String {
        let body = &self.body;
        let texts = [
            &body["text"]["body"],
            &body["interactive"]["body"]["text"],
            &body["document"]["caption"],
            &body["image"]["caption"],
        ];
        let text = texts.into_iter().find_map(Value::as_str);
        text.unwrap_or_default().to_owned()
    }

    /// The labels that can be chosen, with what comes back.
    pub fn choices(&self) -> Vec<(String, String)> {
        let action = &self.body["interactive"]["action"];
        let buttons = action["buttons"].as_array().into_iter().flatten();
        let buttons = buttons.map(|button| &button["reply"]);
        let rows = action["sections"][0]["rows"]
            .as_array()
            .into_iter()
            .flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        buttons
            .chain(rows)
            .map(|choice| (text(&choice["title"]), text(&choice["id"])))
            .collect()
    }
}

impl World {
    pub(super) fn next_id(&self) -> String {
        let mut inner = self.lock();
        inner.last += 1;
        format!("wamid.HBgL{:08}", inner.last)
    }

    pub(super) fn fail_next(&self, call: &str, failure: Failure) {
        let mut inner = self.lock();
        let failures = inner.failures.entry(call.to_owned()).or_default();
        failures.push_back(failure);
    }

    /// Counts a try and says whether it is to fail.
    pub(super) fn failure(&self, call: &str) -> Option<Failure> {
        let mut inner = self.lock();
        *inner.tries.entry(call.to_owned()).or_default() += 1;
        let failures = inner.failures.get_mut(call);
        failures.and_then(VecDeque::pop_front)
    }

    pub(super) fn tries(&self, call: &str) -> usize {
        self.lock().tries.get(call).copied().unwrap_or_default()
    }

    pub(super) fn fail_later(&self, code: i64) {
        self.lock().later.push_back(code);
    }

    pub(super) fn tell_statuses(&self, tell: bool) {
        self.lock().untold = !tell;
    }

    /// What the next status says, if there is one.
    pub(super) fn next_status(&self) -> Option<Option<i64>> {
        let mut inner = self.lock();
        let failed = inner.later.pop_front();
        (!inner.untold).then_some(failed)
    }

    pub(super) fn note_sent(&self, message: SentMessage) {
        self.lock().sent.push(message);
        self.changed.notify_waiters();
    }

    pub(super) fn sent(&self) -> Vec<SentMessage> {
        self.lock().sent.clone()
    }

    pub(super) fn note_read(&self, message: String, typing: bool) {
        self.lock().reads.push((message, typing));
        self.changed.notify_waiters();
    }

    pub(super) fn reads(&self) -> Vec<(String, bool)> {
        self.lock().reads.clone()
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
