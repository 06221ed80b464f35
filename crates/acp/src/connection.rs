//! A living agent at the other end of two streams: requests, answers, and what it says unasked.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermetic_tools::json_rpc::{LineCutter, LineTooLong};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::bounds::{KEPT_ERROR_BYTES, LONGEST_LINE, MOST_GARBAGE_LINES, UNREAD, UNWRITTEN};
use crate::failure::AgentFailure;
use crate::permission::{PermissionRequest, cancelled};
use crate::stream::{AgentInput, AgentStream, StreamEvent};
use crate::update::{SessionUpdate, session_of};
use crate::wire::{self, WireMessage};

/// For a message to find room among those that wait to be written.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// A living agent. Dropping it ends the agent.
pub(crate) struct AgentConnection {
    unwritten: mpsc::Sender<Vec<u8>>,
    state: Arc<ConnectionState>,
    _end: DropGuard,
}

/// What an agent says while a turn listens.
#[derive(Debug, PartialEq)]
pub(crate) enum AgentMessage {
    Update(SessionUpdate),
    /// It wants to be allowed something; the id of its question, and what it is where a person could say yes.
    /// Read before it waits to be looked at, so that what waits is bounded.
    Permission {
        id: Value,
        request: Option<PermissionRequest>,
    },
}

struct ConnectionState {
    /// The agent's name.
    agent: String,
    waiting: Mutex<WaitingRequests>,
    next_id: AtomicU64,
    /// The turn that listens, and to which session.
    listener: Mutex<Option<(String, mpsc::Sender<AgentMessage>)>>,
    last_sign: Mutex<Instant>,
    /// Bytes that it wrote since this was last put back.
    written: AtomicUsize,
    most_written: AtomicUsize,
}

#[derive(Default)]
struct WaitingRequests {
    by_id: HashMap<u64, oneshot::Sender<Result<Value, String>>>,
    /// Why there will be no more answers.
    ended: Option<AgentFailure>,
}

/// Listens until it is dropped.
pub(crate) struct ListeningTurn<'a> {
    connection: &'a AgentConnection,
    pub(crate) messages: mpsc::Receiver<AgentMessage>,
}

impl Drop for ListeningTurn<'_> {
    fn drop(&mut self) {
        *self.connection.state.listener() = None;
    }
}

impl AgentConnection {
    pub(crate) fn over(
        agent: &str,
        stream: impl AgentStream + 'static,
        input: impl AgentInput + 'static,
        most_written: usize,
    ) -> Self {
        let (unwritten, to_write) = mpsc::channel(UNWRITTEN);
        let state = Arc::new(ConnectionState {
            agent: agent.to_owned(),
            waiting: Mutex::default(),
            next_id: AtomicU64::new(1),
            listener: Mutex::default(),
            last_sign: Mutex::new(Instant::now()),
            written: AtomicUsize::new(0),
            most_written: AtomicUsize::new(most_written),
        });
        let end = CancellationToken::new();
        let reader = AgentReader {
            stream: Box::new(stream),
            state: Arc::clone(&state),
            replies: unwritten.clone(),
            complaint: Vec::new(),
        };
        // On its own, because an agent speaks and has to be read between turns as well: one whose
        // output is full stands still, and its next turn would find it so.
        tokio::spawn(serve(reader, Box::new(input), to_write, end.clone()));
        Self {
            unwritten,
            state,
            _end: end.drop_guard(),
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.state.waiting().ended.is_none()
    }

    /// Since when it has said nothing.
    pub(crate) fn last_sign(&self) -> Instant {
        *self.state.sign()
    }

    /// Has what the agent says about this session looked at.
    pub(crate) fn listen(&self, session: &str) -> ListeningTurn<'_> {
        let (sender, messages) = mpsc::channel(UNREAD);
        *self.state.listener() = Some((session.to_owned(), sender));
        self.put_back();
        ListeningTurn {
            connection: self,
            messages,
        }
    }

    /// What it wrote so far is not counted any more.
    pub(crate) fn put_back(&self) {
        self.state.written.store(0, Ordering::Relaxed);
        self.note_sign();
    }

    /// Has it write so much at most, until this is said anew.
    pub(crate) fn bound_written(&self, most: usize) {
        self.state.most_written.store(most, Ordering::Relaxed);
    }

    /// Nobody waited for the agent until now.
    pub(crate) fn note_sign(&self) {
        *self.state.sign() = Instant::now();
    }

    /// One that reads nothing is given up: whoever sends this has other things to look at.
    pub(crate) async fn send(&self, line: Vec<u8>) -> Result<(), AgentFailure> {
        match timeout(SEND_TIMEOUT, self.unwritten.send(line)).await {
            Ok(sent) => sent.map_err(|_| self.why_ended()),
            Err(_) => Err(takes_no_more()),
        }
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) -> Result<(), AgentFailure> {
        self.send(wire::notification(method, &params)).await
    }

    /// Asks, and waits for the answer no longer than that.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> Result<Value, AgentFailure> {
        let answered = async { self.begin(method, params).await?.answer().await };
        timeout(patience, answered)
            .await
            .unwrap_or(Err(AgentFailure::Silent {
                seconds: patience.as_secs(),
            }))
    }

    /// Asks. The answer may take any time.
    pub(crate) async fn begin<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> Result<BegunRequest<'a>, AgentFailure> {
        let id = self.state.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answered) = oneshot::channel();
        {
            let mut waiting = self.state.waiting();
            if let Some(ended) = &waiting.ended {
                return Err(ended.clone());
            }
            // Before the request leaves: an agent may answer before `send` returns. Looked at under
            // the same lock, so that one that has ended leaves nobody waiting.
            waiting.by_id.insert(id, sender);
        }
        let begun = BegunRequest {
            connection: self,
            method,
            id,
            answered,
        };
        self.send(wire::request(id, method, &params)).await?;
        Ok(begun)
    }

    pub(crate) fn why_ended(&self) -> AgentFailure {
        let ended = self.state.waiting().ended.clone();
        ended.unwrap_or(AgentFailure::LetGo)
    }
}

/// A request that was asked. Dropping it forgets the answer.
pub(crate) struct BegunRequest<'a> {
    connection: &'a AgentConnection,
    method: &'a str,
    id: u64,
    answered: oneshot::Receiver<Result<Value, String>>,
}

impl BegunRequest<'_> {
    /// May be dropped and called again.
    pub(crate) async fn answer(&mut self) -> Result<Value, AgentFailure> {
        match (&mut self.answered).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(message)) => Err(AgentFailure::Refused {
                method: self.method.to_owned(),
                message,
            }),
            Err(_) => Err(self.connection.why_ended()),
        }
    }
}

impl Drop for BegunRequest<'_> {
    fn drop(&mut self) {
        self.connection.state.waiting().by_id.remove(&self.id);
    }
}

/// Reads and writes until one of both is over.
async fn serve(
    mut reader: AgentReader,
    mut input: Box<dyn AgentInput>,
    mut to_write: mpsc::Receiver<Vec<u8>>,
    end: CancellationToken,
) {
    let writing = async {
        while let Some(line) = to_write.recv().await {
            if input.write(&line).await.is_err() {
                return;
            }
        }
    };
    let why = tokio::select! {
        why = reader.read() => why,
        // What it wrote before it closed its input says more than that it did.
        () = writing => timeout(Duration::from_secs(1), reader.read()).await.unwrap_or_else(|_| takes_no_more()),
        () = end.cancelled() => AgentFailure::LetGo,
    };
    let state = Arc::clone(&reader.state);
    // The program first: whoever learns of the end may start another.
    drop(reader);
    state.end(why);
}

fn takes_no_more() -> AgentFailure {
    AgentFailure::Ended {
        how: "takes no more input".to_owned(),
        complaint: String::new(),
    }
}

struct AgentReader {
    stream: Box<dyn AgentStream>,
    state: Arc<ConnectionState>,
    replies: mpsc::Sender<Vec<u8>>,
    /// The end of its standard error.
    complaint: Vec<u8>,
}

impl AgentReader {
    /// Counts what it wrote; whether that is more than it may.
    fn is_flooded_by(&self, bytes: usize) -> bool {
        let written = self.state.written.fetch_add(bytes, Ordering::Relaxed);
        written + bytes > self.state.most_written.load(Ordering::Relaxed)
    }

    /// Until there is nothing more to read; why.
    async fn read(&mut self) -> AgentFailure {
        let mut cutter = LineCutter::up_to(LONGEST_LINE);
        let mut garbage = 0;
        loop {
            let bytes = match self.stream.next().await {
                StreamEvent::Ended(how) => {
                    let complaint = self.complaint();
                    return AgentFailure::Ended { how, complaint };
                }
                StreamEvent::Err(bytes) => {
                    self.keep_complaint(&bytes);
                    if self.is_flooded_by(bytes.len()) {
                        return AgentFailure::Flood;
                    }
                    // Standard error is no sign of life, or a program that only complains would
                    // never count as silent; it counts against what may be written all the same.
                    tokio::task::yield_now().await;
                    continue;
                }
                StreamEvent::Out(bytes) => bytes,
            };
            *self.state.sign() = Instant::now();
            if self.is_flooded_by(bytes.len()) {
                return AgentFailure::Flood;
            }
            cutter.push(&bytes);
            loop {
                let line = match cutter.next_line() {
                    Ok(Some(line)) => line,
                    Ok(None) => break,
                    Err(LineTooLong) => return AgentFailure::LongLine,
                };
                match wire::read(line) {
                    Some(message) => {
                        garbage = 0;
                        // Waits where the turn is behind: the agent is slowed down by its own
                        // stream, instead of us keeping what it writes.
                        self.take(message).await;
                    }
                    None => garbage += 1,
                }
                if garbage > MOST_GARBAGE_LINES {
                    let complaint = self.complaint();
                    return AgentFailure::Garbage { complaint };
                }
            }
            // One that floods leaves the others their turn.
            tokio::task::yield_now().await;
        }
    }

    async fn take(&mut self, message: WireMessage) {
        match message {
            WireMessage::Answer { id, outcome } => {
                let waiting = self.state.waiting().by_id.remove(&id);
                // An answer that nobody waits for is no answer.
                if let Some(waiting) = waiting {
                    let _ = waiting.send(outcome);
                }
            }
            WireMessage::Notification { method, params } if method == "session/update" => {
                if let Some(turn) = self.listener_to(&params) {
                    let update = AgentMessage::Update(SessionUpdate::read(&params));
                    let _ = turn.send(update).await;
                }
            }
            WireMessage::Notification { .. } => {}
            WireMessage::Request { id, method, params } => {
                let is_permission = method == "session/request_permission";
                match self.listener_to(&params).filter(|_| is_permission) {
                    Some(turn) => {
                        let request = PermissionRequest::read(&self.state.agent, &params);
                        drop(params);
                        let asked = AgentMessage::Permission { id, request };
                        let _ = turn.send(asked).await;
                    }
                    None if is_permission => self.answer(wire::reply(&id, &cancelled())),
                    None => self.answer(wire::not_offered(&id)),
                }
            }
        }
    }

    /// Whoever listens to the session that this is about.
    fn listener_to(&self, params: &Value) -> Option<mpsc::Sender<AgentMessage>> {
        let listener = self.state.listener();
        let (session, sender) = listener.as_ref()?;
        (session_of(params) == Some(session)).then(|| sender.clone())
    }

    /// One whose input is full is not answered: waiting for it could take for ever.
    fn answer(&self, line: Vec<u8>) {
        let _ = self.replies.try_send(line);
    }

    fn keep_complaint(&mut self, bytes: &[u8]) {
        self.complaint.extend_from_slice(bytes);
        let excess = self.complaint.len().saturating_sub(KEPT_ERROR_BYTES);
        self.complaint.drain(..excess);
    }

    /// What it last wrote to its standard error, as the end of a sentence.
    fn complaint(&self) -> String {
        let text = String::from_utf8_lossy(&self.complaint);
        let last = text
            .lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty());
        last.map_or_else(String::new, |line| {
            format!(", and wrote last: {}", wire::cut(line, 300))
        })
    }
}

impl ConnectionState {
    fn end(&self, why: AgentFailure) {
        let mut waiting = self.waiting();
        waiting.ended.get_or_insert(why);
        // Whoever waits finds out why.
        waiting.by_id.clear();
        drop(waiting);
        // After the reason is set: a turn whose messages end looks for it at once.
        *self.listener() = None;
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingRequests> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listener(&self) -> MutexGuard<'_, Option<(String, mpsc::Sender<AgentMessage>)>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sign(&self) -> MutexGuard<'_, Instant> {
        self.last_sign
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for AgentConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentConnection")
            .field("alive", &self.is_alive())
            .finish_non_exhaustive()
    }
}
