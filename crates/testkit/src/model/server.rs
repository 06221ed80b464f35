//! The model on the wire.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

const PATIENCE: Duration = Duration::from_secs(20);

/// An endpoint on loopback. Ends when dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    address: String,
    shared: Arc<Shared>,
    _stop: DropGuard,
}

/// What one request is answered with.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    pieces: Vec<Piece>,
    /// Says the word of the question that begins like this.
    says_back: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub enum Piece {
    Bytes(Bytes),
    /// Goes on when the test says so.
    Gate(Arc<Notify>),
    /// Nothing more, with the connection open.
    Stall,
    /// The connection breaks.
    Cut,
}

/// What a client sent.
#[derive(Clone, Debug)]
pub struct Received {
    /// The path with its query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

#[derive(Debug)]
struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    /// Answers what the script has no reply for.
    beyond: Option<fn(&Value) -> Reply>,
    received: watch::Sender<Vec<Received>>,
}

impl ScriptedServer {
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> io::Result<Self> {
        Self::serve(replies.into_iter().collect(), None).await
    }

    /// An endpoint without a script: each reply is made from its question.
    pub async fn answering(reply: fn(&Value) -> Reply) -> io::Result<Self> {
        Self::serve(VecDeque::new(), Some(reply)).await
    }

    async fn serve(
        replies: VecDeque<Reply>,
        beyond: Option<fn(&Value) -> Reply>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?.to_string();
        // As a server of models does: a small piece would wait 40 ms for the receipt of the one before.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let shared = Arc::new(Shared {
            replies: Mutex::new(replies),
            beyond,
            received: watch::Sender::default(),
        });
        let routes = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shared));
        let stop = CancellationToken::new();
        let serving =
            axum::serve(listener, routes).with_graceful_shutdown(stop.clone().cancelled_owned());
        tokio::spawn(
            stop.clone()
                .run_until_cancelled_owned(serving.into_future()),
        );
        Ok(Self {
            address,
            shared,
            _stop: stop.drop_guard(),
        })
    }

    /// More of the script, for what is known only once the server stands.
    pub fn will_reply(&self, replies: impl IntoIterator<Item = Reply>) {
        let script = &self.shared.replies;
        let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
        script.extend(replies);
    }

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn received(&self) -> Vec<Received> {
        self.shared.received.borrow().clone()
    }

    /// Waits until so many requests have come.
    ///
    /// # Panics
    ///
    /// If they do not come in time.
    pub async fn wait_for(&self, count: usize) {
        let mut received = self.shared.received.subscribe();
        let waited = timeout(PATIENCE, received.wait_for(|all| all.len() >= count));
        if !matches!(waited.await, Ok(Ok(_))) {
            #[expect(clippy::panic, reason = "a test that waits in vain has failed")]
            {
                panic!("waited in vain for {count} requests to the model")
            }
        }
    }
}

impl Reply {
    /// Streams a text in pieces.
    pub fn streams(pieces: &[&str]) -> Self {
        let events = pieces
            .iter()
            .map(|text| json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        Self::events(events.chain([end])).done()
    }

    /// Streams a text, waits at the gate, and streams the rest.
    pub fn streams_through(gate: &Arc<Notify>, before: &[&str], after: &[&str]) -> Self {
        let texts = |pieces: &[&str]| {
            let pieces = pieces.iter();
            let events =
                pieces.map(|text| json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
            Self::events(events.collect::<Vec<_>>())
        };
        let mut reply = texts(before).then(Piece::Gate(Arc::clone(gate)));
        reply.pieces.extend(texts(after).pieces);
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        reply.pieces.extend(Self::events([end]).done().pieces);
        reply
    }

    /// Streams the first word of the question that begins like this.
    pub fn says_back(beginning: &'static str) -> Self {
        Self {
            says_back: Some(beginning),
            ..Self::events([])
        }
    }

    pub fn events(events: impl IntoIterator<Item = Value>) -> Self {
        let pieces = events
            .into_iter()
            .map(|event| Piece::Bytes(format!("data: {event}\n\n").into()));
        Self {
            status: 200,
            headers: vec![("content-type", "text/event-stream".to_owned())],
            pieces: pieces.collect(),
            says_back: None,
        }
    }

    /// Bytes as they are, as an event stream.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self {
            pieces: vec![Piece::Bytes(bytes.into())],
            ..Self::events([])
        }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            pieces: vec![Piece::Bytes(body.to_string().into())],
            says_back: None,
        }
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    #[must_use]
    pub fn then(mut self, piece: Piece) -> Self {
        self.pieces.push(piece);
        self
    }

    fn done(self) -> Self {
        self.then(Piece::Bytes(Bytes::from_static(b"data: [DONE]\n\n")))
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = body["messages"].to_string();
    let beyond = shared.beyond.map(|reply| reply(&body));
    let received = Received {
        path: uri.to_string(),
        headers,
        body,
    };
    shared.received.send_modify(|all| all.push(received));
    let reply = shared
        .replies
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .pop_front();
    let reply = reply
        .or(beyond)
        .unwrap_or_else(|| Reply::json(400, &json!({"error": {"message": "the script is over"}})));
    respond(match reply.says_back {
        Some(beginning) => Reply::streams(&[word(&text, beginning)]),
        None => reply,
    })
}

fn word<'t>(text: &'t str, beginning: &str) -> &'t str {
    let from = text.find(beginning).map_or("", |at| &text[at..]);
    let end = from.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    &from[..end.unwrap_or(from.len())]
}

fn respond(reply: Reply) -> Response {
    let pieces = stream::iter(reply.pieces).then(|piece| async {
        match piece {
            Piece::Bytes(bytes) => Ok(bytes),
            Piece::Gate(gate) => {
                gate.notified().await;
                Ok(Bytes::new())
            }
            Piece::Stall => std::future::pending().await,
            Piece::Cut => {
                // The server sends what it holds when the body has nothing to give for a moment.
                tokio::task::yield_now().await;
                Err(io::Error::from(io::ErrorKind::ConnectionReset))
            }
        }
    });
    let mut response = Response::new(Body::from_stream(pieces));
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in reply.headers {
        if let (Ok(name), Ok(value)) = (header::HeaderName::try_from(name), value.try_into()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
