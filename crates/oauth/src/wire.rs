//! Requests to authorization servers: bounded in size and time, never redirected.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hermetic_types::Secret;
use hermetic_upstream::UpstreamProxy;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use serde_json::Value;

use crate::address::{AddressRule, is_public};
use crate::failure::LoginError;

/// A document of an authorization server, or an answer of its.
const LARGEST_ANSWER: usize = 256 * 1024;
const PATIENCE: Duration = Duration::from_secs(20);

/// Our way to authorization servers. Clones share connections.
#[derive(Clone, Debug)]
pub struct AuthorityClient {
    /// For the server that the operator wrote, and for all that it names if it is in a private network itself.
    anywhere: Client,
    /// Reaches no private address, whatever a name says at that moment.
    public: Client,
    /// Whether a proxy looks names up instead of us.
    is_proxied: bool,
}

/// One of the two ways.
#[derive(Clone, Debug)]
pub(crate) struct AuthorityRoute(Client);

/// Gives out the public addresses of a name, or none.
#[derive(Debug)]
struct PublicResolver;

/// An answer that was read whole.
#[derive(Debug)]
pub(crate) struct WireAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// `null` for what is no JSON.
    pub(crate) json: Value,
}

impl AuthorityClient {
    /// `proxy`: the gateway's own, not that of sandboxes.
    pub fn new(proxy: Option<&UpstreamProxy>) -> Result<Self, LoginError> {
        let builder = || {
            let builder = Client::builder()
                .timeout(PATIENCE)
                // A redirect would carry a code or a token to where nobody looked.
                .redirect(redirect::Policy::none())
                .no_proxy();
            match proxy {
                Some(proxy) => builder.proxy(proxy.for_client()),
                None => builder,
            }
        };
        let failed = |error: reqwest::Error| LoginError::Client(error.to_string());
        // In the client's own resolver: a look before the request could be answered differently by
        // the time it is made.
        let public = builder().dns_resolver(Arc::new(PublicResolver));
        Ok(Self {
            anywhere: builder().build().map_err(failed)?,
            public: public.build().map_err(failed)?,
            is_proxied: proxy.is_some(),
        })
    }

    /// The way to the server itself, which the operator wrote.
    pub(crate) fn to_server(&self) -> AuthorityRoute {
        AuthorityRoute(self.anywhere.clone())
    }

    /// Whether it is this server that answers at these addresses. Its name alone says little: whoever owns a name
    /// may have it lead into a private network for a moment. What answers there then has no certificate for it.
    async fn is_at(&self, server: &Url, found: &[SocketAddr]) -> bool {
        let (Some(host), "https") = (server.host_str(), server.scheme()) else {
            return false;
        };
        let client = Client::builder()
            .timeout(PATIENCE)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .resolve_to_addrs(host, found)
            .build();
        match client {
            Ok(client) => client.get(server.clone()).send().await.is_ok(),
            Err(_) => false,
        }
    }

    /// The way to what this server names: into a private network only where the server is in one itself.
    pub(crate) async fn named_by(&self, server: &Url) -> AuthorityRoute {
        let is_inside = match AddressRule::of_server(server) {
            AddressRule::OnThisMachine | AddressRule::Private => true,
            // Only the proxy knows what the name leads to, so that it is taken for a name of the
            // world.
            AddressRule::Remote if self.is_proxied => false,
            AddressRule::Remote => {
                let found = addresses(server.host_str().unwrap_or_default()).await;
                let found = found.unwrap_or_default();
                let is_private = !found.is_empty() && !found.iter().any(is_public_socket);
                is_private && self.is_at(server, &found).await
            }
        };
        AuthorityRoute(match is_inside {
            true => self.anywhere.clone(),
            false => self.public.clone(),
        })
    }
}

impl AuthorityRoute {
    pub(crate) async fn get(&self, address: &Url) -> Result<WireAnswer, LoginError> {
        let json = HeaderValue::from_static("application/json");
        let request = self.0.get(address.clone()).header(ACCEPT, json);
        self.send(address, request).await
    }

    /// `headers` on top of those that a request with JSON has.
    pub(crate) async fn post_json(
        &self,
        address: &Url,
        body: &Value,
        accept: &'static str,
    ) -> Result<WireAnswer, LoginError> {
        let request = self.0.post(address.clone()).json(body);
        let request = request.header(ACCEPT, HeaderValue::from_static(accept));
        self.send(address, request).await
    }

    pub(crate) async fn post_form(
        &self,
        address: &Url,
        form: &Secret,
        authorization: Option<&Secret>,
    ) -> Result<WireAnswer, LoginError> {
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        let json = HeaderValue::from_static("application/json");
        let mut request = self.0.post(address.clone());
        request = request.header(CONTENT_TYPE, kind).header(ACCEPT, json);
        if let Some(authorization) = authorization {
            let value = HeaderValue::from_str(authorization.expose());
            let mut value = value.map_err(|_| LoginError::UnusableToken("its client's name"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        self.send(address, request.body(form.expose().to_owned()))
            .await
    }

    async fn send(
        &self,
        address: &Url,
        request: reqwest::RequestBuilder,
    ) -> Result<WireAnswer, LoginError> {
        let unreachable = |error: reqwest::Error| {
            let why = match error.is_timeout() {
                true => "it did not answer in time".to_owned(),
                // Without the address, which may hold a code.
                false => reasons(&error.without_url()),
            };
            LoginError::Unreachable {
                address: shown(address),
                why,
            }
        };
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if status.is_redirection() {
            return Err(LoginError::Redirected {
                address: shown(address),
                status,
            });
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(unreachable)? {
            if body.len() + piece.len() > LARGEST_ANSWER {
                return Err(LoginError::TooLarge {
                    address: shown(address),
                    most: LARGEST_ANSWER,
                });
            }
            body.extend_from_slice(&piece);
            if is_stream(&response) {
                // Events have no end; the head is what was wanted.
                break;
            }
        }
        Ok(WireAnswer {
            status,
            headers: response.headers().clone(),
            json: serde_json::from_slice(&body).unwrap_or(Value::Null),
        })
    }
}

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let mut found = addresses(name.as_str()).await?;
            found.retain(is_public_socket);
            if found.is_empty() {
                return Err("it is in a private network, and the server is not".into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

async fn addresses(host: &str) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, 0)).await?.collect())
}

fn is_public_socket(address: &SocketAddr) -> bool {
    is_public(address.ip())
}

impl WireAnswer {
    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.json.get(field).and_then(Value::as_str)
    }
}

/// An address for people, without what stands behind a question mark.
pub(crate) fn shown(address: &Url) -> String {
    let mut address = address.clone();
    address.set_query(None);
    address.to_string()
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

fn reasons(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    /// The owner of a name has it lead to a service of this machine, which is not the server of that name.
    #[tokio::test]
    async fn a_name_that_leads_inside_for_a_moment_opens_no_way_there() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let here = listener.local_addr().expect("its address");
        let service = tokio::spawn(async move {
            let (mut asked, _) = listener.accept().await.expect("somebody asks");
            let mut hello = [0; 1];
            asked.read_exact(&mut hello).await.expect("a hello");
            hello
        });
        let client = AuthorityClient::new(None).expect("a client");
        let server = format!("https://login.example:{}/mcp", here.port());
        let server = Url::parse(&server).expect("an address");
        assert!(!client.is_at(&server, &[here]).await);
        // It was asked by TLS, and could not prove the name.
        let hello = tokio::time::timeout(Duration::from_secs(60), service).await;
        assert_eq!(hello.expect("it is asked").expect("it lives"), [0x16]);
    }
}
