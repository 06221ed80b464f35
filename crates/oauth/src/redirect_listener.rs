//! The port on this machine that a browser is sent back to.
//!
//! Any program and any page in the browser can reach it, so an answer that does not belong to the login is
//! turned away and the wait goes on.

use std::time::Duration;

use hermetic_listen::{BoundedListener, ConnectionBounds, TrackedConnection};
use hermetic_types::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::code_flow::LONGEST_ANSWER;
use crate::failure::LoginError;
use crate::settings::OAuthSettings;

const PATH: &str = "/callback";
/// Connections that are listened to at once. Where one more comes, whoever has waited longest without a whole
/// request goes.
const MOST_CONNECTIONS: usize = 16;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits on a loopback port.
#[derive(Debug)]
pub struct RedirectListener {
    /// One login waits here at a time.
    listener: Mutex<BoundedListener>,
    port: u16,
}

/// One request that holds an answer, and where it is replied to.
struct RedirectedAnswer {
    query: String,
    stream: TcpStream,
    /// Keeps its place until it is replied to.
    _tracked: TrackedConnection,
}

impl RedirectListener {
    pub async fn open(settings: &OAuthSettings) -> Result<Self, LoginError> {
        let port = settings.redirect_port.unwrap_or(0);
        let bound = TcpListener::bind(("127.0.0.1", port)).await;
        let listener = bound.map_err(LoginError::Listen)?;
        let port = listener.local_addr().map_err(LoginError::Listen)?.port();
        let bounds = ConnectionBounds {
            request_timeout: REQUEST_TIMEOUT,
            ..ConnectionBounds::of(MOST_CONNECTIONS)
        };
        Ok(Self {
            listener: Mutex::new(BoundedListener::new(listener, bounds)),
            port,
        })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where the browser is sent back to.
    pub fn address(&self, settings: &OAuthSettings) -> String {
        match &settings.redirect_uri {
            Some(address) => address.clone(),
            None => format!("http://{}:{}{PATH}", settings.redirect_host, self.port),
        }
    }

    /// The first answer that belongs to the login: a code, or its refusal.
    pub(crate) async fn answer(
        &self,
        code: impl Fn(&str) -> Result<Secret, LoginError>,
    ) -> Result<Secret, LoginError> {
        let (send, mut callbacks) = mpsc::channel(1);
        let mut listener = self.listener.lock().await;
        // Dropped with the wait, and with it every connection that is still open.
        let mut connections = JoinSet::new();
        loop {
            let callback: RedirectedAnswer = tokio::select! {
                Some(callback) = callbacks.recv() => callback,
                Some(_) = connections.join_next() => continue,
                (stream, _, tracked) = listener.accept() => {
                    let send = send.clone();
                    connections.spawn(async move {
                        if let Some(callback) = read_in_time(stream, tracked).await {
                            let _ = send.send(callback).await;
                        }
                    });
                    continue;
                }
            };
            let found = code(&callback.query);
            let (status, words) = match &found {
                Ok(_) => ("200 OK", "You are logged in. This page can be closed."),
                Err(LoginError::OtherState) => (
                    "400 Bad Request",
                    "This is not the login that is waited for.",
                ),
                Err(_) => (
                    "400 Bad Request",
                    "The login failed; the terminal says why. This page can be closed.",
                ),
            };
            let _ = timeout(REQUEST_TIMEOUT, reply(callback.stream, status, words)).await;
            if !matches!(found, Err(LoginError::OtherState)) {
                return found;
            }
        }
    }
}

/// Until it was cut to make room for another, or has let its time pass.
async fn read_in_time(stream: TcpStream, tracked: TrackedConnection) -> Option<RedirectedAnswer> {
    let (query, stream) = tokio::select! {
        read = read(stream) => read?,
        () = tracked.over() => return None,
    };
    // From here on it stays, however many come.
    tracked.request_came();
    Some(RedirectedAnswer {
        query,
        stream,
        _tracked: tracked,
    })
}

/// The query of `GET /callback?…`. Everything else is turned away here.
async fn read(mut stream: TcpStream) -> Option<(String, TcpStream)> {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece).await.ok()?;
        if count == 0 || request.len() + count > LONGEST_ANSWER {
            return None;
        }
        request.extend_from_slice(&piece[..count]);
    }
    let request = String::from_utf8_lossy(&request);
    let mut words = request.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    match target.split_once('?') {
        Some((PATH, query)) if method == Some("GET") => Some((query.to_owned(), stream)),
        _ => {
            reply(stream, "404 Not Found", "There is nothing here.").await;
            None
        }
    }
}

async fn reply(mut stream: TcpStream, status: &str, words: &str) {
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{words}",
        words.len()
    );
    // A browser that went away needs no answer.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}
