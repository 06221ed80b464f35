//! One gRPC service: where it is, and a question put to it.

use std::fmt;
use std::time::Duration;

use http::Uri;
use http::uri::PathAndQuery;
use thiserror::Error;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::wire::RpcCall;

/// The control plane: places to try, in order.
#[derive(Clone, Debug)]
pub struct ControlAddress(Vec<Uri>);

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ControlAddressError {
    #[error("{text:?} is no address: expected https://host")]
    Malformed { text: String },
    #[error("{text:?} would send the token over the network in clear")]
    Plain { text: String },
}

/// Modal's own, the second for when the first cannot be reached.
const DEFAULT: &str = "https://api.modal.com,https://api.modal2.com";

const CONNECT: Duration = Duration::from_secs(10);
/// What stands in between forgets a connection that is silent for minutes, and tells nobody.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_ANSWER: Duration = Duration::from_secs(10);
/// So much of one stream may be on its way to us.
const WINDOW: u32 = 1 << 20;

impl Default for ControlAddress {
    fn default() -> Self {
        Self(
            DEFAULT
                .split(',')
                .filter_map(|text| text.parse().ok())
                .collect(),
        )
    }
}

impl ControlAddress {
    /// As `MODAL_SERVER_URL` has it: one, or several with commas between.
    pub fn parse(text: &str) -> Result<Self, ControlAddressError> {
        let places: Result<Vec<_>, _> = text.split(',').map(|one| place(one.trim())).collect();
        places.map(Self)
    }

    /// Whether this is a server on the same machine, which needs no TLS.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.iter().any(|uri| uri.scheme_str() == Some("http"))
    }

    /// The first that can be reached.
    pub(crate) async fn connect(&self) -> Result<Channel, Status> {
        let mut last = Status::unavailable("no address is known");
        for uri in &self.0 {
            match endpoint(uri)?.connect().await {
                Ok(channel) => return Ok(channel),
                Err(error) => last = Status::unavailable(innermost(&error)),
            }
        }
        Err(last)
    }
}

/// A router's address, which the control plane said.
pub(crate) fn router(url: &str, may_be_plain: bool) -> Result<Channel, Status> {
    let bad = |_| Status::internal("the router's address is none");
    let uri: Uri = url.parse().map_err(bad)?;
    // The control plane says where it is, and the pass goes there: not over a wire that anybody can
    // read.
    match uri.scheme_str() {
        Some("https") => {}
        Some("http") if may_be_plain && is_loopback(&uri) => {}
        _ => return Err(Status::internal("the router's address is not https")),
    }
    Ok(endpoint(&uri)?.connect_lazy())
}

/// One attempt at one answer.
pub(crate) async fn ask<Q: RpcCall>(
    channel: &Channel,
    question: Q,
    metadata: MetadataMap,
    patience: Duration,
) -> Result<Q::Answer, Status> {
    let asked = async {
        let mut grpc = ready(channel).await?;
        let codec = ProstCodec::<Q, Q::Answer>::default();
        let path = PathAndQuery::from_static(Q::PATH);
        let answer = grpc.unary(request(question, metadata), path, codec).await?;
        Ok(answer.into_inner())
    };
    timeout(patience, asked)
        .await
        .unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer came in time")))
}

/// One attempt at a stream of answers; `patience` is for its beginning.
pub(crate) async fn listen<Q: RpcCall>(
    channel: &Channel,
    question: Q,
    metadata: MetadataMap,
    patience: Duration,
) -> Result<Streaming<Q::Answer>, Status> {
    let asked = async {
        let mut grpc = ready(channel).await?;
        let codec = ProstCodec::<Q, Q::Answer>::default();
        let path = PathAndQuery::from_static(Q::PATH);
        let request = request(question, metadata);
        Ok(grpc
            .server_streaming(request, path, codec)
            .await?
            .into_inner())
    };
    timeout(patience, asked)
        .await
        .unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer came in time")))
}

async fn ready(channel: &Channel) -> Result<Grpc<Channel>, Status> {
    let mut grpc = Grpc::new(channel.clone());
    let not_ready = |error: tonic::transport::Error| Status::unavailable(innermost(&error));
    grpc.ready().await.map_err(not_ready)?;
    Ok(grpc)
}

fn request<Q>(question: Q, metadata: MetadataMap) -> Request<Q> {
    let mut request = Request::new(question);
    *request.metadata_mut() = metadata;
    request
}

fn endpoint(uri: &Uri) -> Result<Endpoint, Status> {
    let endpoint = Endpoint::from(uri.clone())
        .connect_timeout(CONNECT)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_ANSWER)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .tcp_nodelay(true);
    if uri.scheme_str() != Some("https") {
        return Ok(endpoint);
    }
    endpoint
        .tls_config(ClientTlsConfig::new().with_native_roots())
        .map_err(|error| Status::unavailable(innermost(&error)))
}

fn place(text: &str) -> Result<Uri, ControlAddressError> {
    let malformed = || ControlAddressError::Malformed {
        text: text.to_owned(),
    };
    let uri: Uri = text.parse().map_err(|_| malformed())?;
    match uri.scheme_str() {
        Some("https") if uri.host().is_some() => Ok(uri),
        Some("http") if is_loopback(&uri) => Ok(uri),
        Some("http") => Err(ControlAddressError::Plain {
            text: text.to_owned(),
        }),
        _ => Err(malformed()),
    }
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// "connection refused" says more than "transport error".
fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

impl fmt::Display for ControlAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.0.iter().filter_map(Uri::host).collect();
        f.write_str(&hosts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_nowhere_in_clear() {
        for good in [
            "https://api.modal.com",
            "http://127.0.0.1:9",
            "http://[::1]:9",
        ] {
            assert!(ControlAddress::parse(good).is_ok(), "{good}");
        }
        let plain = ControlAddress::parse("https://a.example, http://b.example").unwrap_err();
        assert!(matches!(plain, ControlAddressError::Plain { .. }));
        for bad in ["", "api.modal.com", "ftp://a.example", "https://"] {
            assert!(ControlAddress::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(
            ControlAddress::default().to_string(),
            "api.modal.com, api.modal2.com"
        );
    }

    #[tokio::test]
    async fn a_router_is_spoken_to_by_tls_unless_all_is_on_this_machine() {
        assert!(router("http://worker.example:1", true).is_err());
        assert!(router("http://127.0.0.1:1", false).is_err());
        assert!(router("http://127.0.0.1:1", true).is_ok());
        assert!(router("nonsense", true).is_err());
    }
}
