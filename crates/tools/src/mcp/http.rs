//! The streamable HTTP transport: a POST for each message, an answer in JSON or as events.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_egress::EgressClient;
use hermetic_types::Secret;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::IDLE;
use super::message::{
    LONGEST_MESSAGE, LineCutter, RequestFailure, ServerMessage, notification,
    read as read_messages, request,
};
use crate::web_request::{WebAnswer, WebRequest, WebRequestError};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LONGEST_SESSION: usize = 1024;
/// Of an answer that is no success, what is told of it.
const LONGEST_COMPLAINT: usize = 2000;
/// What one answer may come to as events, comments and notifications included.
const MOST_EVENT_BYTES: usize = 16 * 1024 * 1024;
const NOTICE_TIMEOUT: Duration = Duration::from_secs(10);

/// A server at an address, and the session that it gave us. Dropping it ends the session.
#[derive(Debug)]
pub(super) struct HttpLink {
    client: EgressClient,
    address: Uri,
    headers: HeaderMap,
    state: Arc<Mutex<HttpState>>,
    next_id: AtomicU64,
    tools_changed: AtomicBool,
    _end: DropGuard,
}

#[derive(Debug)]
struct HttpState {
    session: Option<HeaderValue>,
    version: Option<&'static str>,
    is_over: bool,
    /// Until when somebody uses it, or has used it.
    last_use: Instant,
}

impl HttpLink {
    pub(super) fn to(
        client: EgressClient,
        url: &str,
        headers: &[(String, Secret)],
    ) -> Result<Self, RequestFailure> {
        let failed = |what: &str| RequestFailure(format!("its {what} cannot be used"));
        let address = url.parse().map_err(|_| failed("url"))?;
        let mut written = HeaderMap::new();
        for (name, value) in headers {
            let (name, value) = (name.parse::<HeaderName>(), value.expose().parse());
            let (Ok(name), Ok(mut value)) = (name, value) else {
                return Err(failed("headers"));
            };
            let value: &mut HeaderValue = &mut value;
            value.set_sensitive(true);
            written.insert(name, value.clone());
        }
        let state = Arc::new(Mutex::new(HttpState {
            session: None,
            version: None,
            is_over: false,
            last_use: Instant::now(),
        }));
        let mut end = WebRequest::new(Method::DELETE, Uri::clone(&address));
        end.headers = written.clone();
        let dropped = CancellationToken::new();
        let watched = Arc::clone(&state);
        tokio::spawn(let_go(watched, end, client.clone(), dropped.clone()));
        Ok(Self {
            client,
            address,
            headers: written,
            state,
            next_id: AtomicU64::new(1),
            tools_changed: AtomicBool::new(false),
            _end: dropped.drop_guard(),
        })
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.state().is_over
    }

    pub(super) fn take_tools_changed(&self) -> bool {
        self.tools_changed.swap(false, Ordering::Relaxed)
    }

    /// From here on every request names it.
    pub(super) fn agree_on(&self, version: &'static str) {
        self.state().version = Some(version);
    }

    pub(super) async fn notify(&self, method: &str, params: &Value) -> Result<(), RequestFailure> {
        let message = notification(method, params);
        self.post(&message, NOTICE_TIMEOUT).await.map(drop)
    }

    pub(super) async fn request(
        &self,
        method: &str,
        params: &Value,
        patience: Duration,
    ) -> Result<Value, RequestFailure> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let message = request(id, method, params);
        let asked = self.ask(id, &message, patience);
        // Not let go while it works.
        self.state().last_use = Instant::now() + patience;
        let outcome = tokio::time::timeout(patience, asked).await;
        self.state().last_use = Instant::now();
        outcome.unwrap_or_else(|_| {
            let seconds = patience.as_secs();
            Err(RequestFailure(format!(
                "it did not answer within {seconds} s"
            )))
        })
    }

    async fn ask(
        &self,
        id: u64,
        message: &Value,
        patience: Duration,
    ) -> Result<Value, RequestFailure> {
        let mut answer = self.post(message, patience).await?;
        let kind = answer.header("content-type").to_ascii_lowercase();
        if kind.starts_with("text/event-stream") {
            return self.answer_among_events(id, answer).await;
        }
        let body = answer
            .bytes(LONGEST_MESSAGE)
            .await
            .map_err(|error| broken(&error))?;
        let messages = read_messages(&body).unwrap_or_default();
        match self.look_through(id, messages).await {
            Some(outcome) => outcome,
            None => Err(RequestFailure(
                "it answered with something else than MCP; is the url right?".to_owned(),
            )),
        }
    }

    /// Events as they come, until one of them is the answer.
    async fn answer_among_events(
        &self,
        id: u64,
        mut answer: WebAnswer,
    ) -> Result<Value, RequestFailure> {
        let mut cutter = LineCutter::default();
        let (mut data, mut read) = (Vec::new(), 0);
        while let Some(piece) = answer.piece().await.map_err(|error| broken(&error))? {
            read += piece.len();
            if read > MOST_EVENT_BYTES {
                return Err(RequestFailure("it sends events without end".to_owned()));
            }
            cutter.push(&piece);
            loop {
                let too_long = |_| RequestFailure("it sent an event that is too long".to_owned());
                let Some(line) = cutter.next_line().map_err(too_long)? else {
                    break;
                };
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if let Some(more) = line.strip_prefix(b"data:") {
                    data.extend_from_slice(more.strip_prefix(b" ").unwrap_or(more));
                    data.push(b'\n');
                } else if line.is_empty() && !data.is_empty() {
                    let messages = read_messages(&data).unwrap_or_default();
                    data.clear();
                    if let Some(outcome) = self.look_through(id, messages).await {
                        return outcome;
                    }
                }
            }
        }
        Err(RequestFailure("it broke off before it answered".to_owned()))
    }

    /// The answer to this request, if it is among these.
    async fn look_through(
        &self,
        id: u64,
        messages: Vec<ServerMessage>,
    ) -> Option<Result<Value, RequestFailure>> {
        let mut found = None;
        for message in messages {
            match message {
                ServerMessage::Answer { id: of, outcome } if of == id => found = Some(outcome),
                ServerMessage::Request { reply } => {
                    // It does without, where it cannot be told.
                    let _ = Box::pin(self.post(&reply, NOTICE_TIMEOUT)).await;
                }
                ServerMessage::ToolsChanged => self.tools_changed.store(true, Ordering::Relaxed),
                ServerMessage::Answer { .. } | ServerMessage::Other => {}
            }
        }
        found
    }

    async fn post(&self, message: &Value, patience: Duration) -> Result<WebAnswer, RequestFailure> {
        let mut post = WebRequest::new(Method::POST, self.address.clone());
        post.headers = self.headers.clone();
        let json = HeaderValue::from_static("application/json");
        let both = HeaderValue::from_static("application/json, text/event-stream");
        post.headers.insert(CONTENT_TYPE, json);
        post.headers.insert(ACCEPT, both);
        {
            let state = self.state();
            if let Some(session) = &state.session {
                post.headers.insert(SESSION, session.clone());
            }
            if let Some(version) = state.version {
                post.headers
                    .insert(VERSION, HeaderValue::from_static(version));
            }
        }
        post.body = message.to_string();
        let mut answer = post
            .send(&self.client, patience)
            .await
            .map_err(|error| broken(&error))?;
        if answer.status.is_success() {
            let session = answer.headers.get(&SESSION);
            if let Some(session) = session.filter(|session| session.len() <= LONGEST_SESSION) {
                self.state().session = Some(session.clone());
            }
            return Ok(answer);
        }
        Err(self.refused(&mut answer).await)
    }

    async fn refused(&self, answer: &mut WebAnswer) -> RequestFailure {
        let status = answer.status;
        {
            // A session that the server has forgotten, in whatever words it says so: the next request
            // begins another.
            let mut state = self.state();
            let is_refused = status.is_client_error() && state.session.is_some();
            state.is_over |= is_refused || status == StatusCode::NOT_FOUND;
        }
        let words = answer.text(LONGEST_COMPLAINT).await.unwrap_or_default();
        RequestFailure(match status {
            StatusCode::UNAUTHORIZED => format!(
                "it wants a login ({status}); put a token into `headers:` of the server, or into \
                 gateway.egress.credentials for its host"
            ),
            _ if status.is_redirection() => format!(
                "it points to another address ({status}), which is not followed: {}",
                answer
                    .header("location")
                    .chars()
                    .take(300)
                    .collect::<String>()
            ),
            _ => format!("it answered with {status}: {}", words.trim()),
        })
    }

    fn state(&self) -> MutexGuard<'_, HttpState> {
        locked(&self.state)
    }
}

/// Tells the server that its session is not needed any more, once the link was dropped or nobody used it
/// for long.
async fn let_go(
    state: Arc<Mutex<HttpState>>,
    mut end: WebRequest,
    client: EgressClient,
    dropped: CancellationToken,
) {
    let idle = async {
        loop {
            let until = locked(&state).last_use + IDLE;
            sleep_until(until).await;
            let mut state = locked(&state);
            if state.last_use + IDLE <= until {
                // In one go with the look: nobody begins to use it meanwhile.
                state.is_over = true;
                return;
            }
        }
    };
    tokio::select! {
        () = idle => {}
        () = dropped.cancelled() => {}
    }
    let session = locked(&state).session.take();
    if let Some(session) = session {
        end.headers.insert(SESSION, session);
        let _ = end.send(&client, NOTICE_TIMEOUT).await;
    }
}

fn locked(state: &Mutex<HttpState>) -> MutexGuard<'_, HttpState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken(error: &WebRequestError) -> RequestFailure {
    RequestFailure(error.to_string())
}
