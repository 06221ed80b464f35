//! The streamable HTTP transport: a POST for each message, an answer in JSON or as events.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_egress::EgressClient;
use hermetic_oauth::BearerLogin;
use hermetic_types::Secret;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::IDLE;
use super::authorization::{self, RefusedLogin};
use super::events::{McpEvents, StreamResumption};
use super::message::{LONGEST_MESSAGE, RequestFailure, ServerMessage, read as read_messages};
use crate::json_rpc::{notification, request};
use crate::web_request::{WebAnswer, WebRequest, WebRequestError};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const LONGEST_SESSION: usize = 1024;
/// Of an answer that is no success, what is told of it.
const LONGEST_COMPLAINT: usize = 2000;
const NOTICE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the events of one request are taken up again where they broke off.
const MOST_RESUMPTIONS: usize = 32;

/// A server at an address, and the session that it gave us. Dropping it ends the session.
#[derive(Debug)]
pub(super) struct HttpLink {
    client: EgressClient,
    address: Uri,
    headers: HeaderMap,
    login: Option<BearerLogin>,
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
        login: Option<BearerLogin>,
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
        let ending = SessionEnd {
            state: Arc::clone(&state),
            end,
            client: client.clone(),
            login: login.clone(),
        };
        tokio::spawn(ending.let_go(dropped.clone()));
        Ok(Self {
            client,
            address,
            headers: written,
            login,
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
        let deadline = Instant::now() + patience;
        let mut answer = self.post(message, patience).await?;
        if is_events(&answer) {
            return self.answer_among_events(id, answer, deadline).await;
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

    /// Events as they come, until one of them is the answer. Where the server ends them before that and has
    /// numbered them, they are taken up again behind the last one.
    async fn answer_among_events(
        &self,
        id: u64,
        answer: WebAnswer,
        deadline: Instant,
    ) -> Result<Value, RequestFailure> {
        let mut events = McpEvents::over(answer);
        let mut resumption = StreamResumption::default();
        for _ in 0..=MOST_RESUMPTIONS {
            while let Some(data) = events.next(&mut resumption).await? {
                let messages = read_messages(&data).unwrap_or_default();
                if let Some(outcome) = self.look_through(id, messages).await {
                    return outcome;
                }
            }
            let Some(last) = &resumption.last_event else {
                break;
            };
            sleep_until((Instant::now() + resumption.pause).min(deadline)).await;
            let mut get = self.message(Method::GET);
            get.headers.insert(LAST_EVENT, last.clone());
            get.headers
                .insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
            let patience = deadline.saturating_duration_since(Instant::now());
            let again = self.send(get, patience).await?;
            if !is_events(&again) {
                break;
            }
            events.go_on(again);
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
        let mut post = self.message(Method::POST);
        let json = HeaderValue::from_static("application/json");
        let both = HeaderValue::from_static("application/json, text/event-stream");
        post.headers.insert(CONTENT_TYPE, json);
        post.headers.insert(ACCEPT, both);
        post.body = message.to_string();
        self.send(post, patience).await
    }

    /// A request with all that every request has.
    fn message(&self, method: Method) -> WebRequest {
        let mut message = WebRequest::new(method, self.address.clone());
        message.headers = self.headers.clone();
        let state = self.state();
        if let Some(session) = &state.session {
            message.headers.insert(SESSION, session.clone());
        }
        if let Some(version) = state.version {
            let version = HeaderValue::from_static(version);
            message.headers.insert(VERSION, version);
        }
        message
    }

    async fn send(
        &self,
        message: WebRequest,
        patience: Duration,
    ) -> Result<WebAnswer, RequestFailure> {
        let sent = match &self.login {
            Some(login) => authorization::send(login, message, &self.client, patience).await,
            None => {
                let sent = message.send(&self.client, patience).await;
                sent.map(Ok).map_err(|error| broken(&error))
            }
        };
        let mut answer = match sent? {
            Ok(answer) => answer,
            Err(RefusedLogin { status, why }) => {
                self.note_refusal(status);
                return Err(why);
            }
        };
        if answer.status.is_success() {
            let session = answer.headers.get(&SESSION);
            if let Some(session) = session.filter(|session| session.len() <= LONGEST_SESSION) {
                self.state().session = Some(session.clone());
            }
            return Ok(answer);
        }
        Err(self.refused(&mut answer).await)
    }

    /// A session that the server has forgotten, in whatever words it says so: the next request begins
    /// another.
    fn note_refusal(&self, status: StatusCode) {
        let mut state = self.state();
        let is_refused = status.is_client_error() && state.session.is_some();
        state.is_over |= is_refused || status == StatusCode::NOT_FOUND;
    }

    async fn refused(&self, answer: &mut WebAnswer) -> RequestFailure {
        let status = answer.status;
        self.note_refusal(status);
        let words = answer.text(LONGEST_COMPLAINT).await.unwrap_or_default();
        RequestFailure(match status {
            StatusCode::UNAUTHORIZED => format!(
                "it wants a login ({status}); write `auth: oauth` for the server and log in with hermetic \
                 mcp login, or put a token into its `headers:`, or into gateway.egress.credentials for its \
                 host"
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

/// What it takes to tell a server that its session is not needed any more.
struct SessionEnd {
    state: Arc<Mutex<HttpState>>,
    end: WebRequest,
    client: EgressClient,
    login: Option<BearerLogin>,
}

impl SessionEnd {
    /// Once the link was dropped, or nobody used it for long.
    async fn let_go(mut self, dropped: CancellationToken) {
        let idle = async {
            loop {
                let until = locked(&self.state).last_use + IDLE;
                sleep_until(until).await;
                let mut state = locked(&self.state);
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
        let session = locked(&self.state).session.take();
        if let Some(session) = session {
            self.end.headers.insert(SESSION, session);
            let _ = match &self.login {
                Some(login) => authorization::send(login, self.end, &self.client, NOTICE_TIMEOUT)
                    .await
                    .is_ok(),
                None => self.end.send(&self.client, NOTICE_TIMEOUT).await.is_ok(),
            };
        }
    }
}

fn is_events(answer: &WebAnswer) -> bool {
    let kind = answer.header("content-type").to_ascii_lowercase();
    kind.starts_with("text/event-stream")
}

fn locked(state: &Mutex<HttpState>) -> MutexGuard<'_, HttpState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn broken(error: &WebRequestError) -> RequestFailure {
    RequestFailure(error.to_string())
}
