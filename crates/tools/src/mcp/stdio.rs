//! The stdio transport: a line for each message, both ways.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::IDLE;
use super::message::{LONGEST_MESSAGE, RequestFailure, ServerMessage, read as read_messages};
use super::process::{ProcessEvent, ServerInput, ServerProcess};
use crate::json_rpc::{LineCutter, notification, request};

/// Messages that wait to be written.
const UNWRITTEN: usize = 32;
/// What a server may write between two answers.
const MOST_UNASKED_BYTES: usize = 64 * 1024 * 1024;
/// Lines in a row that are no messages. Some servers greet in plain words.
const MOST_GARBAGE_LINES: usize = 200;
/// Of its standard error, the end: it often says why.
const KEPT_ERROR_BYTES: usize = 2048;

/// A server at the other end of two pipes. Dropping it ends the server.
#[derive(Debug)]
pub(super) struct StdioLink {
    unwritten: mpsc::Sender<Vec<u8>>,
    state: Arc<StdioState>,
    _end: DropGuard,
}

#[derive(Debug)]
struct StdioState {
    waiting: Mutex<WaitingAnswers>,
    next_id: AtomicU64,
    tools_changed: AtomicBool,
    last_use: Mutex<Instant>,
}

#[derive(Debug, Default)]
struct WaitingAnswers {
    by_id: HashMap<u64, oneshot::Sender<Result<Value, RequestFailure>>>,
    /// Why there will be no more answers.
    ended: Option<RequestFailure>,
}

impl StdioLink {
    pub(super) fn over(process: ServerProcess, input: ServerInput) -> Self {
        let (unwritten, to_write) = mpsc::channel(UNWRITTEN);
        let state = Arc::new(StdioState {
            waiting: Mutex::default(),
            next_id: AtomicU64::new(1),
            tools_changed: AtomicBool::new(false),
            last_use: Mutex::new(Instant::now()),
        });
        let end = CancellationToken::new();
        let reader = StdioReader {
            process,
            state: Arc::clone(&state),
            replies: unwritten.clone(),
            complaint: Vec::new(),
        };
        tokio::spawn(serve(reader, input, to_write, end.clone()));
        Self {
            unwritten,
            state,
            _end: end.drop_guard(),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.state.waiting().ended.is_none()
    }

    /// Whether it said since the last time that its tools are others now.
    pub(super) fn take_tools_changed(&self) -> bool {
        self.state.tools_changed.swap(false, Ordering::Relaxed)
    }

    pub(super) async fn notify(&self, method: &str, params: &Value) -> Result<(), RequestFailure> {
        let sent = self.unwritten.send(line(&notification(method, params)));
        sent.await.map_err(|_| self.state.why_ended())
    }

    /// Cancelled where nobody waits for the answer any more: the server is told.
    pub(super) async fn request(
        &self,
        method: &str,
        params: &Value,
        patience: Duration,
    ) -> Result<Value, RequestFailure> {
        let id = self.state.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.state.waiting();
            // Under one lock with the entry: a link that ends in between would leave this one
            // waiting for ever.
            if let Some(ended) = &waiting.ended {
                return Err(ended.clone());
            }
            // Entered before it is sent: the answer may come before the send returns.
            waiting.by_id.insert(id, answer);
        }
        self.state.touch();
        let mut cancel = CancelOnDrop {
            link: self,
            id,
            is_armed: true,
        };
        let asked = async {
            let sent = self.unwritten.send(line(&request(id, method, params)));
            sent.await.map_err(|_| self.state.why_ended())?;
            answered.await.map_err(|_| self.state.why_ended())?
        };
        let Ok(outcome) = timeout(patience, asked).await else {
            let seconds = patience.as_secs();
            let silent = RequestFailure(format!("it did not answer within {seconds} s"));
            // It may hang for good, and whoever asks next would wait as long.
            self.state.end(silent.clone());
            return Err(silent);
        };
        cancel.is_armed = false;
        self.state.touch();
        outcome
    }
}

/// Takes a request back.
struct CancelOnDrop<'a> {
    link: &'a StdioLink,
    id: u64,
    is_armed: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.is_armed {
            self.link.state.waiting().by_id.remove(&self.id);
            let params = json!({"requestId": self.id, "reason": "nobody waits for it any more"});
            let told = notification("notifications/cancelled", &params);
            // One whose input is full is not told.
            let _ = self.link.unwritten.try_send(line(&told));
        }
    }
}

/// Reads and writes until one of both is over.
async fn serve(
    mut reader: StdioReader,
    mut input: ServerInput,
    mut to_write: mpsc::Receiver<Vec<u8>>,
    end: CancellationToken,
) {
    let writing = async {
        while let Some(line) = to_write.recv().await {
            if let Err(failed) = input.write(&line).await {
                return failed;
            }
        }
        RequestFailure("it is not needed any more".to_owned())
    };
    let why = tokio::select! {
        why = reader.read() => why,
        // What it wrote before it closed its input says more than that it did.
        _ = writing => match timeout(Duration::from_secs(1), reader.read()).await {
            Ok(why) => why,
            Err(_) => RequestFailure("it takes no more input".to_owned()),
        },
        () = end.cancelled() => RequestFailure("it was ended".to_owned()),
    };
    let state = Arc::clone(&reader.state);
    // The program first: whoever learns of the end may start another.
    drop(reader);
    state.end(why);
}

#[derive(Debug)]
struct StdioReader {
    process: ServerProcess,
    state: Arc<StdioState>,
    replies: mpsc::Sender<Vec<u8>>,
    /// The end of its standard error.
    complaint: Vec<u8>,
}

impl StdioReader {
    /// Until there is nothing more to read; why.
    async fn read(&mut self) -> RequestFailure {
        let mut cutter = LineCutter::up_to(LONGEST_MESSAGE);
        let (mut unasked, mut garbage) = (0, 0);
        loop {
            let until = self.state.last_use() + IDLE;
            let event = match timeout_at(until, self.process.next()).await {
                Ok(event) => event,
                Err(_) if self.state.last_use() + IDLE > until => continue,
                Err(_) => return RequestFailure("nobody needed it for a while".to_owned()),
            };
            match event {
                ProcessEvent::Ended(why) => return self.with_complaint(why),
                ProcessEvent::Err(bytes) => self.keep_complaint(&bytes),
                ProcessEvent::Out(bytes) => {
                    unasked += bytes.len();
                    if unasked > MOST_UNASKED_BYTES {
                        return RequestFailure(
                            "it wrote without end, and nobody had asked".to_owned(),
                        );
                    }
                    cutter.push(&bytes);
                    loop {
                        match cutter.next_line() {
                            Ok(None) => break,
                            Ok(Some(line)) if line.trim_ascii().is_empty() => {}
                            Ok(Some(line)) => match read_messages(line) {
                                None => garbage += 1,
                                Some(messages) => {
                                    garbage = 0;
                                    for message in messages {
                                        if self.take(message) {
                                            unasked = 0;
                                        }
                                    }
                                }
                            },
                            Err(_) => {
                                return RequestFailure(
                                    "it wrote a line that is longer than any message may be"
                                        .to_owned(),
                                );
                            }
                        }
                        if garbage > MOST_GARBAGE_LINES {
                            return self.with_complaint(
                                "it writes something else than MCP to its standard output"
                                    .to_owned(),
                            );
                        }
                    }
                    // One that floods leaves the others their turn.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Whether it was an answer that somebody waited for.
    fn take(&self, message: ServerMessage) -> bool {
        match message {
            ServerMessage::Answer { id, outcome } => {
                let waiting = self.state.waiting().by_id.remove(&id);
                waiting.is_some_and(|waiting| waiting.send(outcome).is_ok())
            }
            ServerMessage::Request { reply } => {
                // One that asks faster than it reads gets no answer.
                let _ = self.replies.try_send(line(&reply));
                false
            }
            ServerMessage::ToolsChanged => {
                self.state.tools_changed.store(true, Ordering::Relaxed);
                false
            }
            ServerMessage::Other => false,
        }
    }

    fn keep_complaint(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(KEPT_ERROR_BYTES)..];
        self.complaint.extend_from_slice(bytes);
        let over = self.complaint.len().saturating_sub(KEPT_ERROR_BYTES);
        self.complaint.drain(..over);
    }

    fn with_complaint(&self, why: String) -> RequestFailure {
        let complaint = crate::ansi::plain(&self.complaint);
        let complaint = String::from_utf8_lossy(&complaint);
        match complaint.trim() {
            "" => RequestFailure(why),
            complaint => RequestFailure(format!("{why}; its last words: {complaint}")),
        }
    }
}

impl StdioState {
    fn end(&self, why: RequestFailure) {
        let mut waiting = self.waiting();
        for (_, answer) in waiting.by_id.drain() {
            let _ = answer.send(Err(why.clone()));
        }
        waiting.ended = Some(why);
    }

    fn why_ended(&self) -> RequestFailure {
        let ended = self.waiting().ended.clone();
        ended.unwrap_or_else(|| RequestFailure("it takes no more input".to_owned()))
    }

    fn touch(&self) {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last_use(&self) -> Instant {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingAnswers> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}
