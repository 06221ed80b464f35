//! The dashboard as a process of its own.
//!
//! Everything is handed on to the gateway, which answers on a socket in its home that only its own account can
//! open; who asks, and from where, is looked at there, as ever. Where no gateway answers, the same pages are made
//! here from what the store has, and say so.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures::StreamExt as _;
use hyper::client::conn::http1;
use hyper::service::Service as _;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

/// What the pages before a gateway are made of.
pub struct FrontParts {
    /// Where the gateway answers.
    pub socket: PathBuf,
    /// What is shown while it does not.
    pub away: Router,
    /// Whether something keeps people out of this address. Where nothing does, pages are locked here, whatever
    /// the gateway would say: it listens elsewhere.
    pub is_open: bool,
}

#[derive(Clone)]
struct FrontState(Arc<FrontParts>);

/// How long the gateway may take to accept a connection on this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long it may take to say that it is well.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

/// How long it may take to begin an answer. Verifying a long record and destroying a sandbox take their time; who
/// waits for longer than this waits for a process that stands still.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How often it is looked whether the gateway is back, while somebody listens.
const RETURN_POLL: Duration = Duration::from_secs(1);

/// Headers about one connection, which are not for the next.
const HOP: [HeaderName; 5] = [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// The pages, and `/health` of this process.
pub fn front_routes(parts: FrontParts) -> Router {
    let state = FrontState(Arc::new(parts));
    Router::new()
        .route("/health", get(health))
        .fallback(hand_on)
        .with_state(state)
}

/// Whether this process is well, and whether the gateway answers. A gateway that is away or silent is no reason to
/// start this process again.
async fn health(State(FrontState(parts)): State<FrontState>) -> Response {
    let gateway = match connect(&parts.socket).await {
        Some(stream) => match is_well(stream).await {
            true => "reachable",
            // The kernel takes connections for a process that stands still.
            false => "silent",
        },
        None => "away",
    };
    let body = json!({
        "status": "ok",
        "gateway": gateway,
        "version": env!("CARGO_PKG_VERSION"),
    });
    Json(body).into_response()
}

async fn hand_on(State(FrontState(parts)): State<FrontState>, request: Request) -> Response {
    // Figures are for whoever can reach them, as on the gateway's own port.
    let may_pass = parts.is_open || request.uri().path() == "/metrics";
    match connect(&parts.socket).await.filter(|_| may_pass) {
        Some(stream) => through(stream, request).await,
        None => while_away(&parts, request).await,
    }
}

async fn connect(socket: &Path) -> Option<UnixStream> {
    let connecting = timeout(CONNECT_TIMEOUT, UnixStream::connect(socket));
    connecting.await.ok()?.ok()
}

async fn is_well(stream: UnixStream) -> bool {
    let asked = axum::http::Request::get("/health").header(HOST, "localhost");
    let Ok(request) = asked.body(Body::empty()) else {
        return false;
    };
    // Whatever it says, it says something.
    timeout(HEALTH_TIMEOUT, exchange(stream, request))
        .await
        .is_ok_and(|answer| answer.is_some())
}

/// One request on a connection of its own, both bodies as they come.
async fn through(stream: UnixStream, mut request: Request) -> Response {
    without_hops(request.headers_mut());
    // A request to a proxy names the host too; ours has one place to go.
    if let Some(path) = request.uri().path_and_query().cloned() {
        *request.uri_mut() = Uri::from(path);
    }
    match timeout(ANSWER_TIMEOUT, exchange(stream, request)).await {
        Ok(Some(mut answer)) => {
            without_hops(answer.headers_mut());
            answer
        }
        Ok(None) => {
            let text = "The gateway took this request and broke off. Load the page again.\n";
            told(StatusCode::BAD_GATEWAY, text)
        }
        Err(_) => {
            let text = "The gateway does not answer. What was asked for may still be done, once it goes on.\n";
            told(StatusCode::GATEWAY_TIMEOUT, text)
        }
    }
}

/// The beginning of the answer; nothing where it broke off.
async fn exchange(stream: UnixStream, request: Request) -> Option<Response> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    // It ends with the answer: the sender is dropped then.
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.ok()?;
    Some(answer.map(Body::new))
}

/// The same page from here. A stream of events ends when the gateway is back, so that the browser asks again and
/// hears the gateway's own.
async fn while_away(parts: &FrontParts, request: Request) -> Response {
    let is_stream = request.uri().path() == "/events";
    let pages = TowerToHyperService::new(parts.away.clone());
    let Ok(answer) = pages.call(request).await;
    if !is_stream {
        return answer;
    }
    let socket = parts.socket.clone();
    let back = Box::pin(async move {
        while connect(&socket).await.is_none() {
            sleep(RETURN_POLL).await;
        }
    });
    answer.map(|body| Body::from_stream(body.into_data_stream().take_until(back)))
}

fn told(status: StatusCode, text: &'static str) -> Response {
    let kind = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    (status, kind, text).into_response()
}

fn without_hops(headers: &mut HeaderMap) {
    for name in HOP {
        headers.remove(name);
    }
}

impl fmt::Debug for FrontParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontParts")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::ORIGIN;
    use tokio::net::UnixListener;

    use super::*;

    #[test]
    fn headers_about_the_connection_stay_on_it() {
        let mut headers = HeaderMap::new();
        for name in [CONNECTION, UPGRADE, ORIGIN] {
            headers.insert(name, "x".parse().unwrap());
        }
        without_hops(&mut headers);
        assert_eq!(headers.keys().collect::<Vec<_>>(), [&ORIGIN]);
    }

    /// A gateway whose process stands still: connections are taken, and nobody reads them.
    fn frozen(folder: &Path) -> (UnixListener, FrontParts) {
        let socket = folder.join("dashboard.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let parts = FrontParts {
            socket,
            away: Router::new(),
            is_open: true,
        };
        (listener, parts)
    }

    #[tokio::test(start_paused = true)]
    async fn a_gateway_that_stands_still_is_not_called_reachable() {
        let folder = tempfile::tempdir().unwrap();
        let (_listener, parts) = frozen(folder.path());
        let routes = TowerToHyperService::new(front_routes(parts));
        let ask = |path: &str| axum::http::Request::get(path).body(Body::empty()).unwrap();
        let Ok(answer) = routes.call(ask("/health")).await;
        let body = axum::body::to_bytes(answer.into_body(), 1000)
            .await
            .unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&body["gateway"], &body["status"]),
            (&json!("silent"), &json!("ok"))
        );
        let Ok(answer) = routes.call(ask("/")).await;
        assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
    }
}
