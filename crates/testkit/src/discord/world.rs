//! What the server knows.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hermetic_types::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Instant;

use super::session::Session;
use super::{APPLICATION, BOT_ID, CHANNEL, GUILD};

/// The first moment that an id can tell, in milliseconds of Unix time.
const EPOCH_MS: i64 = 1_420_070_400_000;
/// The channel of private messages is named after who writes there.
const PRIVATE: u64 = 100_000;

/// One call the bot made.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// With its ids.
    pub path: String,
    pub body: Value,
    /// The bytes of an uploaded file.
    pub file: Option<Bytes>,
    /// The id of the message it made or changed.
    pub message: u64,
}

/// How a call fails.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Not this one: it goes through.
    NotYet,
    /// As Discord says it.
    Refuse {
        status: u16,
        code: u32,
        message: &'static str,
    },
    TooMany {
        retry_after: f64,
        global: bool,
    },
    /// A page by something in between.
    BadGateway,
    /// The connection breaks in the middle of the answer.
    Drop,
    /// The same, after the call was carried out.
    DropAfter,
    /// Discord waits for somebody who never comes.
    Hang,
}

#[derive(Debug, Default)]
pub(super) struct World {
    inner: Mutex<Inner>,
    changed: Arc<Notify>,
}

#[derive(Debug)]
pub(super) struct Inner {
    last_id: u64,
    /// Where the gateway is.
    pub(super) gateway_url: String,
    pub(super) channels: BTreeMap<u64, Value>,
    /// By channel and id.
    pub(super) messages: BTreeMap<(u64, u64), Value>,
    pub(super) nonces: HashMap<String, (u64, u64)>,
    pub(super) session: Option<Session>,
    /// What people do before a bot was ever there; told to the first, if they wait for it.
    pub(super) early: Option<Vec<(String, Value)>>,
    pub(super) starts_left: u64,
    pub(super) identifies: u32,
    /// The numbers that sessions were resumed from.
    pub(super) resumes: Vec<u64>,
    /// The codes that the bot closed with.
    pub(super) closes: Vec<u16>,
    pub(super) has_message_content: bool,
    pub(super) answers_beats: bool,
    pub(super) beats: u32,
    pub(super) may_make_threads: bool,
    failures: HashMap<String, VecDeque<Failure>>,
    calls: HashMap<String, Vec<Call>>,
    tries: HashMap<String, usize>,
    limits: HashMap<String, Limit>,
    pub(super) interactions: HashMap<String, Interaction>,
    pub(super) files: HashMap<String, Bytes>,
    pub(super) commands: Vec<Value>,
    /// The roles of people in the server.
    pub(super) roles: HashMap<u64, Vec<u64>>,
    /// What the bot may do in the server.
    pub(super) permissions: u64,
}

#[derive(Clone, Debug)]
struct Limit {
    most: u32,
    each: Duration,
    left: u32,
    resets: Instant,
}

#[derive(Clone, Debug)]
pub(super) struct Interaction {
    pub(super) id: u64,
    pub(super) made: Instant,
    pub(super) acknowledged: bool,
}

impl Default for Inner {
    fn default() -> Self {
        let channel = json!({
            "id": CHANNEL.to_string(), "type": 0, "guild_id": GUILD.to_string(), "name": "general",
            "position": 0, "permission_overwrites": [], "parent_id": null, "topic": null,
            "nsfw": false, "rate_limit_per_user": 0, "last_message_id": null,
        });
        Self {
            last_id: 0,
            gateway_url: String::new(),
            channels: BTreeMap::from([(CHANNEL, channel)]),
            messages: BTreeMap::new(),
            nonces: HashMap::new(),
            session: None,
            early: None,
            starts_left: 1000,
            identifies: 0,
            resumes: Vec::new(),
            closes: Vec::new(),
            has_message_content: true,
            answers_beats: true,
            beats: 0,
            may_make_threads: true,
            failures: HashMap::new(),
            calls: HashMap::new(),
            tries: HashMap::new(),
            limits: HashMap::new(),
            interactions: HashMap::new(),
            files: HashMap::new(),
            commands: Vec::new(),
            roles: HashMap::new(),
            permissions: u64::MAX >> 12,
        }
    }
}

impl World {
    /// Changes something and wakes whoever waits for a change.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_waiters();
        changed
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&Inner) -> T) -> T {
        look(&self.lock())
    }

    /// Counts a try and says whether it is to fail.
    pub(super) fn failure(&self, route: &str) -> Option<Failure> {
        self.change(|inner| {
            *inner.tries.entry(route.to_owned()).or_default() += 1;
            inner.failures.get_mut(route).and_then(VecDeque::pop_front)
        })
    }

    pub(super) fn fail_next(&self, route: &str, failure: Failure) {
        let mut inner = self.lock();
        let failures = inner.failures.entry(route.to_owned()).or_default();
        failures.push_back(failure);
    }

    pub(super) fn note(&self, route: &str, call: Call) {
        self.change(|inner| inner.calls.entry(route.to_owned()).or_default().push(call));
    }

    pub(super) fn calls(&self, route: &str) -> Vec<Call> {
        self.lock().calls.get(route).cloned().unwrap_or_default()
    }

    pub(super) fn tries(&self, route: &str) -> usize {
        self.lock().tries.get(route).copied().unwrap_or_default()
    }

    /// From now on the route is allowed so often in so much time.
    pub(super) fn limit(&self, route: &str, most: u32, each: Duration) {
        let limit = Limit {
            most,
            each,
            left: most,
            resets: Instant::now() + each,
        };
        self.lock().limits.insert(route.to_owned(), limit);
    }

    /// Counts a request; what is left of its bucket and when it resets, or nothing if it is not limited.
    /// `Err` if there was nothing left.
    pub(super) fn count(&self, route: &str) -> Result<Option<(u32, u32, Duration)>, Duration> {
        let mut inner = self.lock();
        let Some(limit) = inner.limits.get_mut(route) else {
            return Ok(None);
        };
        let now = Instant::now();
        if limit.resets <= now {
            limit.left = limit.most;
            limit.resets = now + limit.each;
        }
        let resets = limit.resets.saturating_duration_since(now);
        match limit.left.checked_sub(1) {
            Some(left) => {
                limit.left = left;
                Ok(Some((limit.most, left, resets)))
            }
            None => Err(resets),
        }
    }

    /// Completes at the next change after this call, also if it is polled only later.
    pub(super) fn changed(&self) -> OwnedNotified {
        Arc::clone(&self.changed).notified_owned()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Ids grow with time, as Discord's do.
    pub(super) fn next_id(&mut self) -> u64 {
        let since = SystemClock.now().millis() - EPOCH_MS;
        self.last_id = (since.unsigned_abs() << 22).max(self.last_id + 1);
        self.last_id
    }

    /// The private channel with somebody, opened if need be.
    pub(super) fn private_channel(&mut self, user: u64) -> u64 {
        let id = PRIVATE + user;
        let channel = json!({
            "id": id.to_string(), "type": 1, "last_message_id": null, "recipients": [person(user)],
        });
        self.channels.entry(id).or_insert(channel);
        id
    }

    pub(super) fn is_private(&self, channel: u64) -> bool {
        self.channels
            .get(&channel)
            .is_some_and(|channel| channel["type"] == 1)
    }

    /// Tells the bot, if it has a session; whether it listens or not.
    pub(super) fn dispatch(&mut self, kind: &str, data: Value) {
        match (&mut self.session, &mut self.early) {
            (Some(session), _) => session.dispatch(kind, data),
            (None, Some(early)) => early.push((kind.to_owned(), data)),
            (None, None) => {}
        }
    }

    /// A message as it is kept, with the fields of its channel where it is told live.
    pub(super) fn post(&mut self, channel: u64, mut message: Value) -> u64 {
        let id = self.next_id();
        message["id"] = json!(id.to_string());
        message["channel_id"] = json!(channel.to_string());
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel["last_message_id"] = json!(id.to_string());
        }
        self.messages.insert((channel, id), message.clone());
        self.announce(channel, message);
        id
    }

    pub(super) fn announce(&mut self, channel: u64, mut message: Value) {
        let kind = self.channels.get(&channel).map(|channel| &channel["type"]);
        message["channel_type"] = kind.cloned().unwrap_or_default();
        if !self.is_private(channel) {
            message["guild_id"] = json!(GUILD.to_string());
            let author = message["author"]["id"].as_str().unwrap_or_default();
            let mut member = super::methods::member(self, author.parse().unwrap_or_default());
            // Who it is stands beside it.
            if let Some(member) = member.as_object_mut() {
                member.remove("user");
            }
            message["member"] = member;
        }
        self.dispatch("MESSAGE_CREATE", message);
    }
}

pub(super) fn person(user: u64) -> Value {
    json!({
        "id": user.to_string(), "username": format!("user{user}"), "discriminator": "0",
        "global_name": format!("User {user}"), "avatar": null,
    })
}

pub(super) fn bot() -> Value {
    json!({
        "id": BOT_ID.to_string(), "username": "hermetic", "discriminator": "0", "global_name": null,
        "avatar": null, "bot": true,
    })
}

pub(super) fn application(has_message_content: bool) -> Value {
    let flags = if has_message_content { 1 << 19 } else { 0 };
    json!({ "id": APPLICATION.to_string(), "name": "hermetic", "flags": flags })
}
