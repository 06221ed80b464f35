//! What stands between an account and its homeserver, and spoils things on purpose.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::future::pending;
use futures::stream;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Hands requests on, but for what it was told to do with them. It ends when dropped.
#[derive(Debug)]
pub struct MatrixProxy {
    url: String,
    shared: Arc<Shared>,
    end: CancellationToken,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ProxyFault {
    /// The next message is refused.
    RefuseSend,
    /// The next message arrives, and nobody ever hears that it did.
    SwallowSend,
    /// The next message arrives, and the answer is lost once.
    LoseAnswer,
    /// The next so many messages have to wait so long.
    ThrottleSends { times: usize, retry_after_ms: u64 },
    /// The next answer to a sync holds things that are no events.
    Garbage,
    /// The next answer to a sync holds what the last one held, once more.
    Repeat,
    /// The next answer to a sync holds these events in that room, as somebody could forge them.
    Forge { room: String, events: Vec<Value> },
    /// The next answer to a sync that tells of that room describes so many members, as a homeserver does
    /// that knows nothing of loading them lazily.
    Crowd { room: String, members: usize },
    /// The token that is used next is good no more.
    LogOut,
    /// Connections stand and nothing comes, until this is taken back.
    Deaf,
    /// The next so many syncs break off.
    BreakSyncs(usize),
    /// A page of a history holds so many events and no more, until this is taken back.
    ShortPages(usize),
    /// The next so many requests of any kind are answered by something in front of a homeserver that is away.
    Away(usize),
}

#[derive(Debug)]
struct Shared {
    upstream: String,
    client: Client,
    world: Mutex<World>,
    syncs: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct World {
    faults: Vec<ProxyFault>,
    /// Transactions whose answers are lost.
    swallowed: Vec<String>,
    /// Tokens that are good no more.
    logged_out: Vec<String>,
    /// The rooms of the last answer that held any.
    last_rooms: Option<Value>,
    /// Every request, as in `PUT /_matrix/…`.
    requests: Vec<String>,
}

impl MatrixProxy {
    pub async fn start(upstream: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let client = Client::builder().no_proxy().build();
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            client: client.map_err(io::Error::other)?,
            world: Mutex::default(),
            syncs: watch::Sender::new(0),
        });
        let end = CancellationToken::new();
        let router = Router::new()
            .fallback(hand_on)
            .with_state(Arc::clone(&shared));
        let ending = end.clone();
        tokio::spawn(async move {
            let serving = axum::serve(listener, router);
            ending.run_until_cancelled(serving.into_future()).await
        });
        Ok(Self { url, shared, end })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn spoil(&self, fault: ProxyFault) {
        self.shared.lock().faults.push(fault);
    }

    /// Takes back what has not happened yet.
    pub fn mend(&self) {
        self.shared.lock().faults.clear();
    }

    /// Every request so far, as in `PUT /_matrix/client/v3/…`.
    pub fn requests(&self) -> Vec<String> {
        self.shared.lock().requests.clone()
    }

    pub fn sync_count(&self) -> usize {
        *self.shared.syncs.borrow()
    }

    /// Waits until so many syncs were asked for.
    pub async fn syncs(&self, count: usize) {
        let mut syncs = self.shared.syncs.subscribe();
        let _ = syncs.wait_for(|so_far| *so_far >= count).await;
    }
}

impl Drop for MatrixProxy {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    /// The request as it is handed on, where pages are to be short.
    fn short_page(&self, path: String) -> String {
        let mut faults = self.faults.iter();
        let size = faults.find_map(|fault| match fault {
            ProxyFault::ShortPages(size) => Some(size),
            _ => None,
        });
        match (size, path.contains("/messages?"), path.split_once("limit=")) {
            (Some(size), true, Some((before, after))) => {
                let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
                format!("{before}limit={size}{rest}")
            }
            _ => path,
        }
    }

    fn take(&mut self, wanted: impl Fn(&ProxyFault) -> bool) -> Option<ProxyFault> {
        let at = self.faults.iter().position(wanted)?;
        Some(self.faults.remove(at))
    }
}

/// What becomes of a request.
enum Fate {
    HandOn,
    HandOnAndLose,
    Answer(StatusCode, Value),
    Break,
    Hang,
}

async fn hand_on(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request
        .uri()
        .path_and_query()
        .map_or("", |path| path.as_str())
        .to_owned();
    let path = shared.lock().short_page(path);
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let is_sync = path.starts_with("/_matrix/client/v3/sync");
    let fate = fate(&shared, &parts.method, &path, &parts.headers);
    if is_sync {
        shared.syncs.send_modify(|syncs| *syncs += 1);
    }
    let lose = match fate {
        Fate::Hang => return pending().await,
        Fate::Break => return broken(),
        Fate::Answer(status, body) => return (status, axum::Json(body)).into_response(),
        Fate::HandOn => false,
        Fate::HandOnAndLose => true,
    };
    match ask(&shared, parts.method, &path, &parts.headers, body).await {
        _ if lose => broken(),
        Ok((status, headers, body)) => {
            let body = if is_sync && status.is_success() {
                spoil_sync(&shared, body)
            } else {
                body
            };
            let mut response = (status, body).into_response();
            if let Some(kind) = headers.get(header::CONTENT_TYPE) {
                response
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, kind.clone());
            }
            if let Some(wait) = headers.get(header::RETRY_AFTER) {
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, wait.clone());
            }
            response
        }
        Err(_) => (StatusCode::BAD_GATEWAY, "bad gateway").into_response(),
    }
}

async fn ask(
    shared: &Shared,
    method: Method,
    path: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> reqwest::Result<(StatusCode, HeaderMap, Bytes)> {
    let mut request = shared
        .client
        .request(method, format!("{}{path}", shared.upstream));
    for name in [header::AUTHORIZATION, header::CONTENT_TYPE] {
        if let Some(value) = headers.get(&name) {
            request = request.header(name, value);
        }
    }
    let answer = request.body(body).send().await?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    Ok((status, headers, answer.bytes().await?))
}

fn fate(shared: &Shared, method: &Method, path: &str, headers: &HeaderMap) -> Fate {
    let mut world = shared.lock();
    world.requests.push(format!("{method} {path}"));
    let is_sync = path.starts_with("/_matrix/client/v3/sync");
    let is_send = *method == Method::PUT && path.contains("/send/m.room.");
    let token = headers
        .get(header::AUTHORIZATION)
        .and_then(|token| token.to_str().ok());
    if let Some(token) = token {
        if world.take(|fault| *fault == ProxyFault::LogOut).is_some() {
            world.logged_out.push(token.to_owned());
        }
        if world.logged_out.iter().any(|gone| gone == token) {
            let refusal = json!({ "errcode": "M_UNKNOWN_TOKEN", "error": "Token expired.", "soft_logout": true });
            return Fate::Answer(StatusCode::UNAUTHORIZED, refusal);
        }
    }
    if let Some(ProxyFault::Away(left)) = world.take(|fault| matches!(fault, ProxyFault::Away(_))) {
        if left > 1 {
            world.faults.push(ProxyFault::Away(left - 1));
        }
        return Fate::Answer(StatusCode::BAD_GATEWAY, json!("away"));
    }
    if is_sync && world.faults.contains(&ProxyFault::Deaf) {
        return Fate::Hang;
    }
    if is_sync
        && let Some(ProxyFault::BreakSyncs(left)) =
            world.take(|fault| matches!(fault, ProxyFault::BreakSyncs(_)))
    {
        if left > 1 {
            world.faults.push(ProxyFault::BreakSyncs(left - 1));
        }
        return Fate::Break;
    }
    match is_send {
        true => fate_of_send(&mut world, path),
        false => Fate::HandOn,
    }
}

fn fate_of_send(world: &mut World, path: &str) -> Fate {
    if world.swallowed.iter().any(|swallowed| swallowed == path) {
        return Fate::HandOnAndLose;
    }
    let is_of_sends = |fault: &ProxyFault| {
        matches!(
            fault,
            ProxyFault::RefuseSend
                | ProxyFault::SwallowSend
                | ProxyFault::LoseAnswer
                | ProxyFault::ThrottleSends { .. }
        )
    };
    match world.take(is_of_sends) {
        Some(ProxyFault::RefuseSend) => {
            let refusal = json!({ "errcode": "M_FORBIDDEN", "error": "You may not write here." });
            Fate::Answer(StatusCode::FORBIDDEN, refusal)
        }
        Some(ProxyFault::SwallowSend) => {
            world.swallowed.push(path.to_owned());
            Fate::HandOnAndLose
        }
        Some(ProxyFault::LoseAnswer) => Fate::HandOnAndLose,
        Some(ProxyFault::ThrottleSends {
            times,
            retry_after_ms,
        }) => {
            if times > 1 {
                world.faults.push(ProxyFault::ThrottleSends {
                    times: times - 1,
                    retry_after_ms,
                });
            }
            let refusal = json!({ "errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests",
                "retry_after_ms": retry_after_ms });
            Fate::Answer(StatusCode::TOO_MANY_REQUESTS, refusal)
        }
        _ => Fate::HandOn,
    }
}

/// Puts into an answer what it was told to put there, if the answer tells of any room.
fn spoil_sync(shared: &Shared, body: Bytes) -> Bytes {
    let Ok(mut answer) = serde_json::from_slice::<Value>(&body) else {
        return body;
    };
    let mut world = shared.lock();
    let Some(joined) = answer["rooms"]["join"].as_object().cloned() else {
        return body;
    };
    let rooms: Vec<_> = joined.keys().cloned().collect();
    if world.take(|fault| *fault == ProxyFault::Garbage).is_some() {
        answer["rooms"]["join"]["no room"] = json!(7);
        answer["rooms"]["invite"]["!x"] = json!({ "invite_state": "nothing" });
        for room in &rooms {
            let garbage = [
                json!(null),
                json!({ "type": 7 }),
                json!({ "type": "m.room.message", "content": [] }),
            ];
            prepend(&mut answer, room, &garbage);
        }
    }
    if world.take(|fault| *fault == ProxyFault::Repeat).is_some()
        && let Some(last) = world.last_rooms.clone()
    {
        for room in &rooms {
            let events = last[room]["timeline"]["events"].as_array().cloned();
            prepend(&mut answer, room, &events.unwrap_or_default());
        }
    }
    if let Some(ProxyFault::Forge { room, events }) =
        world.take(|fault| matches!(fault, ProxyFault::Forge { room, .. } if rooms.contains(room)))
    {
        prepend(&mut answer, &room, &events);
    }
    let is_crowd = |fault: &ProxyFault| matches!(fault, ProxyFault::Crowd { room, .. } if rooms.contains(room));
    if let Some(ProxyFault::Crowd { room, members }) = world.take(is_crowd) {
        let room = &mut answer["rooms"]["join"][room];
        room["summary"]["m.joined_member_count"] = json!(members);
        let crowd = (0..members).map(|number| {
            json!({ "type": "m.room.member", "event_id": format!("$crowd{number}"),
                "sender": format!("@p{number}:example.org"), "state_key": format!("@p{number}:example.org"),
                "content": { "membership": "join", "displayname": format!("\u{202e}p\u{200b}{number}") } })
        });
        room["state"]["events"] = Value::Array(crowd.collect());
    }
    world.last_rooms = Some(Value::Object(joined));
    answer.to_string().into()
}

fn prepend(answer: &mut Value, room: &str, events: &[Value]) {
    let timeline = &mut answer["rooms"]["join"][room]["timeline"]["events"];
    let mut all = events.to_vec();
    all.extend(timeline.as_array().cloned().unwrap_or_default());
    *timeline = Value::Array(all);
}

/// An answer that begins and breaks off.
fn broken() -> Response {
    let torn = stream::iter([Ok(Bytes::from_static(b"{")), Err(io::Error::other("torn"))]);
    Body::from_stream(torn).into_response()
}
