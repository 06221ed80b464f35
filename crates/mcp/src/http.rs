//! Many clients over streamable HTTP, on loopback, each with the token.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_listen::{BoundedListener, ConnectionBounds, serve_http};
use hermetic_types::Secret;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::ClientSandboxes;
use crate::client::McpClient;

/// A written file and its quoting.
const LONGEST_REQUEST: usize = 32 << 20;
/// Connections that are still open are cut when the sandboxes are to go.
const HTTP_DRAIN_GRACE: Duration = Duration::from_secs(3);

/// Connections at once: a few for each client.
const MOST_MCP_CONNECTIONS: usize = 256;

/// A port on loopback and the token that opens it.
#[derive(Debug)]
pub struct HttpEndpoint {
    listener: TcpListener,
    token: [u8; 32],
}

#[derive(Debug, Error)]
pub enum HttpEndpointError {
    #[error("{0} is not an address of this machine's loopback")]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {at}")]
    Listen {
        at: SocketAddr,
        #[source]
        source: io::Error,
    },
}

impl HttpEndpoint {
    pub async fn open(at: SocketAddr, token: &Secret) -> Result<Self, HttpEndpointError> {
        // Refused here and not by a firewall: whoever reaches this port and has the token runs
        // commands.
        if !at.ip().is_loopback() {
            return Err(HttpEndpointError::NotLoopback(at));
        }
        let listener = TcpListener::bind(at).await;
        let listener = listener.map_err(|source| HttpEndpointError::Listen { at, source })?;
        Ok(Self {
            listener,
            token: Sha256::digest(token.expose()).into(),
        })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Serves until `stop` is cancelled. A client's sandbox goes with its session: when it says so, or
/// after `idle` without a word.
pub fn over_http(
    sandboxes: ClientSandboxes,
    endpoint: HttpEndpoint,
    idle: Duration,
    stop: CancellationToken,
) -> BoxFuture<'static, io::Result<()>> {
    serve(sandboxes, endpoint, idle, stop).boxed()
}

async fn serve(
    sandboxes: ClientSandboxes,
    endpoint: HttpEndpoint,
    idle: Duration,
    stop: CancellationToken,
) -> io::Result<()> {
    sandboxes.guard_disk();
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(idle);
    let settings = StreamableHttpServerConfig::default()
        .with_cancellation_token(stop.child_token())
        .with_max_request_body_bytes(LONGEST_REQUEST)
        // No page in a browser has any business here.
        .enforce_origin_validation();
    let clients = sandboxes.clone();
    let service = StreamableHttpService::new(
        move || Ok(McpClient::new(clients.clone())),
        Arc::new(sessions),
        settings,
    );
    let router = Router::new()
        .nest_service("/mcp", service)
        .layer(middleware::from_fn_with_state(endpoint.token, check));
    let listener = BoundedListener::new(
        endpoint.listener,
        ConnectionBounds::of(MOST_MCP_CONNECTIONS),
    );
    serve_http(listener, router, stop, HTTP_DRAIN_GRACE).await;
    // After the last connection: a client that is still there could make another sandbox.
    sandboxes.close().await;
    Ok(())
}

async fn check(State(token): State<[u8; 32]>, request: Request, next: Next) -> Response {
    let given = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    // Digests, so that neither length nor content tells by the time it takes.
    let fits = given.is_some_and(|given| Sha256::digest(given).as_slice().ct_eq(&token).into());
    if fits {
        let method = request.method().clone();
        return ended(&method, next.run(request).await);
    }
    let how = [(header::WWW_AUTHENTICATE, "Bearer")];
    (
        StatusCode::UNAUTHORIZED,
        how,
        "the token is missing or wrong\n",
    )
        .into_response()
}

/// A session that a client ended is gone when it is told so, which is 204. The library says 202, which
/// clients take for a failure.
fn ended(method: &Method, response: Response) -> Response {
    if method == Method::DELETE && response.status() == StatusCode::ACCEPTED {
        return StatusCode::NO_CONTENT.into_response();
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_session_is_no_promise_but_done() {
        let told =
            |method: Method, status: StatusCode| ended(&method, status.into_response()).status();
        let accepted = StatusCode::ACCEPTED;
        assert_eq!(told(Method::DELETE, accepted), StatusCode::NO_CONTENT);
        assert_eq!(told(Method::POST, accepted), accepted);
        let unknown = StatusCode::NOT_FOUND;
        assert_eq!(told(Method::DELETE, unknown), unknown);
    }

    #[tokio::test]
    async fn only_loopback_is_listened_on() {
        let token = Secret::new("0123456789abcdef");
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let address = address.parse().expect("an address");
            let refused = HttpEndpoint::open(address, &token).await;
            assert!(
                matches!(refused, Err(HttpEndpointError::NotLoopback(_))),
                "{address}"
            );
        }
        let here = "127.0.0.1:0".parse().expect("an address");
        assert!(HttpEndpoint::open(here, &token).await.is_ok());
    }
}
