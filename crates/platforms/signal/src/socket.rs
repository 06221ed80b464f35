//! The daemon over its UNIX or TCP socket: a line of JSON for each request, answer and event.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::daemon::DaemonFrame;
use crate::endpoint::DaemonEndpoint;
use crate::files::LONGEST_ATTACHMENT_ANSWER;
use crate::lines::{BoundedLine, LineBuffer};
use crate::rpc::{self, SignalCallError};
use crate::sse::StreamEnded;

const CONNECTING: Duration = Duration::from_secs(10);
const HANGING_UP: Duration = Duration::from_secs(2);
/// Events that wait to be taken. When they are many the daemon has to wait too, and Signal's servers
/// keep the rest.
const WAITING_EVENTS: usize = 64;
const WAITING_REQUESTS: usize = 64;

type CallOutcome = Result<Value, SignalCallError>;
type WaitingCalls = Arc<Mutex<HashMap<u64, oneshot::Sender<CallOutcome>>>>;

/// One connection for calls and events, opened by whoever needs it first and kept.
#[derive(Debug)]
pub(crate) struct SocketDaemon {
    endpoint: DaemonEndpoint,
    connection: AsyncMutex<Option<DaemonConnection>>,
}

#[derive(Debug)]
struct DaemonConnection {
    requests: mpsc::Sender<Vec<u8>>,
    waiting: WaitingCalls,
    /// Taken by who listens, and left here for the next who does.
    events: Arc<AsyncMutex<mpsc::Receiver<DaemonFrame>>>,
    reader: AbortOnDropHandle<()>,
    writer: AbortOnDropHandle<()>,
}

#[derive(Debug)]
pub(crate) struct SocketEvents {
    events: Arc<AsyncMutex<mpsc::Receiver<DaemonFrame>>>,
}

impl SocketDaemon {
    pub(crate) fn new(endpoint: DaemonEndpoint) -> Self {
        Self {
            endpoint,
            connection: AsyncMutex::new(None),
        }
    }

    pub(crate) async fn call(
        &self,
        id: u64,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> CallOutcome {
        let mut line = rpc::request(id, method, params).to_string().into_bytes();
        line.push(b'\n');
        let (answered, answer) = oneshot::channel();
        let (requests, waiting) = {
            let mut connection = self.connection.lock().await;
            let connection = self.connected(&mut connection).await?;
            (connection.requests.clone(), Arc::clone(&connection.waiting))
        };
        // Before the request leaves, or its answer could come to nobody.
        lock(&waiting).insert(id, answered);
        let _forget = PendingCall {
            waiting: Arc::clone(&waiting),
            id,
        };
        // Written by a task of its own: half a line, left by a caller who gave up, would spoil the next.
        requests
            .send(line)
            .await
            .map_err(SignalCallError::unreachable)?;
        match timeout(limit, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(gone)) => Err(SignalCallError::broken(gone)),
            Err(late) => Err(SignalCallError::broken(late)),
        }
    }

    pub(crate) async fn events(&self) -> Result<SocketEvents, SignalCallError> {
        let mut connection = self.connection.lock().await;
        let connection = self.connected(&mut connection).await?;
        Ok(SocketEvents {
            events: Arc::clone(&connection.events),
        })
    }

    /// Ends the connection in good order: our side first, which the daemon notices at once, then what it
    /// had said until then.
    pub(crate) async fn hang_up(&self) {
        let Some(connection) = self.connection.lock().await.take() else {
            return;
        };
        let DaemonConnection {
            requests,
            reader,
            writer,
            ..
        } = connection;
        // Closes our half: the daemon sends what it has, and does not take us for a client that may
        // come back for more.
        drop(requests);
        let ended = async {
            let _ = writer.await;
            let _ = reader.await;
        };
        // Whoever does not hang up is left hanging.
        let _ = timeout(HANGING_UP, ended).await;
    }

    async fn connected<'a>(
        &self,
        connection: &'a mut Option<DaemonConnection>,
    ) -> Result<&'a DaemonConnection, SignalCallError> {
        // By the reader: a connection that nobody reads takes requests and never answers them.
        let kept = connection.take().filter(|kept| !kept.reader.is_finished());
        let kept = match kept {
            Some(kept) => kept,
            None => DaemonConnection::open(&self.endpoint).await?,
        };
        Ok(connection.insert(kept))
    }
}

impl SocketEvents {
    pub(crate) async fn next(&mut self) -> Result<DaemonFrame, SignalCallError> {
        let next = self.events.lock().await.recv().await;
        next.ok_or_else(|| SignalCallError::broken(StreamEnded))
    }
}

impl DaemonConnection {
    async fn open(endpoint: &DaemonEndpoint) -> Result<Self, SignalCallError> {
        let opened = timeout(CONNECTING, halves(endpoint)).await;
        let (read, write) = opened
            .map_err(SignalCallError::unreachable)?
            .map_err(SignalCallError::unreachable)?;
        let waiting = WaitingCalls::default();
        let (events, heard) = mpsc::channel(WAITING_EVENTS);
        let (requests, to_write) = mpsc::channel(WAITING_REQUESTS);
        let reader = tokio::spawn(read_lines(read, Arc::clone(&waiting), events));
        Ok(Self {
            requests,
            waiting,
            events: Arc::new(AsyncMutex::new(heard)),
            reader: AbortOnDropHandle::new(reader),
            writer: AbortOnDropHandle::new(tokio::spawn(write_lines(write, to_write))),
        })
    }
}

/// Takes a call's place away when the caller goes, whatever came of it.
struct PendingCall {
    waiting: WaitingCalls,
    id: u64,
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        lock(&self.waiting).remove(&self.id);
    }
}

type ReadHalf = Box<dyn AsyncRead + Send + Unpin>;
type WriteHalf = Box<dyn AsyncWrite + Send + Unpin>;

async fn halves(endpoint: &DaemonEndpoint) -> io::Result<(ReadHalf, WriteHalf)> {
    match endpoint {
        DaemonEndpoint::Unix(path) => {
            let (read, write) = UnixStream::connect(path).await?.into_split();
            Ok((Box::new(read), Box::new(write)))
        }
        DaemonEndpoint::Tcp(address) => {
            let (read, write) = TcpStream::connect(address).await?.into_split();
            Ok((Box::new(read), Box::new(write)))
        }
        DaemonEndpoint::Http(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Ends with the connection. Whoever waits for an answer then learns that there is none.
async fn read_lines(from: ReadHalf, waiting: WaitingCalls, events: mpsc::Sender<DaemonFrame>) {
    hand_on(from, &waiting, events).await;
    // Whoever waits is told by that at once, instead of waiting for the rest of its time.
    lock(&waiting).clear();
}

async fn hand_on(mut from: ReadHalf, waiting: &WaitingCalls, events: mpsc::Sender<DaemonFrame>) {
    // An attachment comes as one line, too.
    let mut lines = LineBuffer::new(LONGEST_ATTACHMENT_ANSWER);
    let mut chunk = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        lines.push(&chunk[..count]);
        while let Some(line) = lines.next_line() {
            let Some(frame) = sort(line, waiting) else {
                continue;
            };
            // Waits where nobody takes events: the daemon has to wait then too, and Signal's
            // servers keep the rest.
            if events.send(frame).await.is_err() {
                return;
            }
        }
    }
}

/// An answer goes to who waits for it and takes no place among the events: they may have nobody who
/// listens yet.
fn sort(line: BoundedLine, waiting: &WaitingCalls) -> Option<DaemonFrame> {
    let BoundedLine::Whole(line) = line else {
        return Some(DaemonFrame::Malformed);
    };
    let Ok(mut value) = serde_json::from_slice::<Value>(&line) else {
        return Some(DaemonFrame::Malformed);
    };
    if value["method"] == "receive" {
        let mut params = value["params"].take();
        // Wrapped, where it was subscribed to.
        let wrapped = params.get_mut("result").map(Value::take);
        return Some(DaemonFrame::Event(wrapped.unwrap_or(params)));
    }
    if value.get("method").is_some() {
        return None;
    }
    let (Some(id), answer) = rpc::answer(value) else {
        return Some(DaemonFrame::Malformed);
    };
    if let Some(waits) = lock(waiting).remove(&id) {
        // Whoever waited may have gone meanwhile.
        let _ = waits.send(answer);
    }
    None
}

async fn write_lines(mut to: WriteHalf, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if to.write_all(&line).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}

fn lock(waiting: &WaitingCalls) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<CallOutcome>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
