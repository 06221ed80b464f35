//! The way to the world through a company's proxy.
//!
//! The rules stay ours: a name is judged before the proxy hears of it, TLS is held to that name, and credentials
//! are put in on this side of the tunnel. What changes is who looks the name up. A proxy that is told a name
//! resolves it by itself, so what we can say of its address depends on [`NameCheck`].

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hermetic_types::Secret;
use hermetic_upstream::{ProxyScheme, UpstreamProxy};
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::credential::{
    CredentialRedactor, GuessCounter, SearchedSecret, SecretSpellings, SharedParts,
};
use crate::http::head::ResponseHead;
use crate::http::source::ReadAhead;
use crate::limits::EgressLimits;
use crate::nearby::unpaced;
use crate::resolve::CheckedAddresses;
use crate::rules::{Authority, HostName};
use crate::stream::PeekedStream;

/// What is known of the address behind a name that the proxy resolves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameCheck {
    /// Names are resolved here as well and every address is checked; the proxy is told the name. A name that
    /// answers the proxy differently is not noticed.
    #[default]
    Checked,
    /// Names are resolved and checked here, and the proxy is told the checked address. Nothing is resolved
    /// twice; the proxy must let addresses through.
    Pinned,
    /// Nothing is resolved here, because there is no DNS. Only names are checked: those that mean this machine
    /// or a network of its own are refused, and so is a rule that asks for a range of addresses.
    ByProxy,
}

/// A proxy and how its names are checked.
#[derive(Clone)]
pub struct UpstreamRoute(Arc<RouteState>);

struct RouteState {
    proxy: UpstreamProxy,
    names: NameCheck,
    authorization: Option<Secret>,
    /// The login in every spelling, so that nothing echoes it into a sandbox.
    spellings: Option<Arc<SecretSpellings>>,
    /// The parts of it that were guessed, in whichever conversation.
    guessed: Arc<SharedParts>,
}

/// The reason why a proxy cannot be used for what leaves sandboxes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("what leaves sandboxes goes through a proxy by http:// only, not by TLS to the proxy")]
pub struct UnusableProxy;

/// The reason why the proxy did not take us further. Names the proxy, never its login or its words.
#[derive(Debug, Error)]
pub(crate) enum UpstreamError {
    #[error("the proxy {proxy} cannot be reached")]
    Unreachable {
        proxy: String,
        #[source]
        source: io::Error,
    },
    #[error("the proxy {proxy} did not answer within {} s", after.as_secs())]
    TimedOut { proxy: String, after: Duration },
    #[error("the proxy {proxy} wants another user name or password (407)")]
    LoginRefused { proxy: String },
    #[error("the proxy {proxy} refuses it ({status})")]
    Refused { proxy: String, status: u16 },
    #[error("the proxy {proxy} answers with something that is not HTTP")]
    NotHttp { proxy: String },
}

/// Endings of names that mean a network of one's own, or the machine itself. What they lead to is decided by
/// whoever resolves them, which here is the proxy.
const INTERNAL_ENDINGS: &[&str] = &[
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
];

impl UpstreamRoute {
    pub fn new(proxy: UpstreamProxy, names: NameCheck) -> Result<Self, UnusableProxy> {
        if proxy.scheme() != ProxyScheme::Http {
            return Err(UnusableProxy);
        }
        let authorization = proxy.authorization();
        let spellings = proxy.login().map(|login| {
            let login = login.expose();
            let (head, password) = login.split_at(login.find(':').map_or(0, |colon| colon + 1));
            Arc::new(SecretSpellings::behind_heads(&[
                (head, password),
                ("", password),
            ]))
        });
        Ok(Self(Arc::new(RouteState {
            proxy,
            names,
            authorization,
            spellings,
            guessed: Arc::default(),
        })))
    }

    /// Tells whether this target is reached through the proxy.
    pub(crate) fn serves(&self, target: &Authority) -> bool {
        self.0.proxy.serves(target.host.as_str(), target.port)
    }

    pub(crate) fn names(&self) -> NameCheck {
        self.0.names
    }

    /// Tells whether the target is the proxy itself: whoever reaches that reaches everything.
    pub(crate) fn is_itself(&self, target: &Authority) -> bool {
        let proxy = &self.0.proxy;
        target.port == proxy.port()
            && HostName::parse(proxy.host()).is_ok_and(|host| host == target.host)
    }

    /// The value of `Proxy-Authorization`, for a request that the proxy answers itself.
    pub(crate) fn authorization(&self) -> Option<&Secret> {
        self.0.authorization.as_ref()
    }

    /// Takes the login out of an answer, and has guesses at it counted.
    pub(crate) fn redactor(&self, counter: &Arc<GuessCounter>) -> Option<CredentialRedactor> {
        let spellings = self.0.spellings.as_ref()?;
        Some(CredentialRedactor::new([SearchedSecret {
            spellings: Arc::clone(spellings),
            counter: Some(Arc::clone(counter)),
        }]))
    }

    /// Counts the guesses of one conversation at the login.
    pub(crate) fn guess_counter(&self) -> Arc<GuessCounter> {
        let login = self.0.proxy.login();
        let letters = login.as_ref().map_or(0, |login| {
            let (_, password) = login.expose().split_once(':').unwrap_or(("", ""));
            password.bytes().filter(u8::is_ascii_alphanumeric).count()
        });
        GuessCounter::new(letters, Arc::clone(&self.0.guessed))
    }

    /// A connection to the proxy, over which a request may be sent.
    pub(crate) async fn dial(&self, within: Duration) -> Result<PeekedStream, UpstreamError> {
        let proxy = &self.0.proxy;
        let unreachable = |source| UpstreamError::Unreachable {
            proxy: proxy.to_string(),
            source,
        };
        let connecting = TcpStream::connect((proxy.host(), proxy.port()));
        let stream = timeout(within, connecting)
            .await
            .map_err(|_| self.timed_out(within))?
            .map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        unpaced(&stream);
        Ok(PeekedStream::new(stream))
    }

    /// A connection through the proxy. What the proxy said after its yes is the other end's.
    pub(crate) async fn tunnel(
        &self,
        target: &Authority,
        pinned: Option<SocketAddr>,
        limits: &EgressLimits,
    ) -> Result<PeekedStream, UpstreamError> {
        let opening = self.open(target, pinned, limits);
        timeout(limits.dial, opening)
            .await
            .map_err(|_| self.timed_out(limits.dial))?
    }

    async fn open(
        &self,
        target: &Authority,
        pinned: Option<SocketAddr>,
        limits: &EgressLimits,
    ) -> Result<PeekedStream, UpstreamError> {
        let mut stream = self.dial(limits.dial).await?;
        let place = pinned.map_or_else(|| target.to_string(), |address| address.to_string());
        let mut request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n");
        if let Some(authorization) = self.authorization() {
            request.push_str("Proxy-Authorization: ");
            request.push_str(authorization.expose());
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        let request = Secret::new(request);
        let unreachable = |source| UpstreamError::Unreachable {
            proxy: self.to_string(),
            source,
        };
        stream
            .write_all(request.expose().as_bytes())
            .await
            .map_err(unreachable)?;
        match self.status(&mut stream, limits).await? {
            200..300 => Ok(stream),
            407 => Err(self.login_refused()),
            status => Err(UpstreamError::Refused {
                proxy: self.to_string(),
                status,
            }),
        }
    }

    /// The first answer that is one. Only its number counts: the words are the proxy's own.
    async fn status(
        &self,
        stream: &mut PeekedStream,
        limits: &EgressLimits,
    ) -> Result<u16, UpstreamError> {
        // `102 Processing` and its like: a proxy could send those for ever.
        const MOST_INTERIM: usize = 8;
        let not_http = || UpstreamError::NotHttp {
            proxy: self.to_string(),
        };
        for _ in 0..MOST_INTERIM {
            let (wire, ahead) = stream.parts();
            let head = ReadAhead::new(wire, ahead)
                .head(limits.head_bytes, limits.head_time)
                .await
                .map_err(|_| not_http())?
                .ok_or_else(not_http)?;
            let head = ResponseHead::parse(&head).map_err(|_| not_http())?;
            match head.status {
                101 => return Err(not_http()),
                100..200 => {}
                status => return Ok(status),
            }
        }
        Err(not_http())
    }

    pub(crate) fn login_refused(&self) -> UpstreamError {
        UpstreamError::LoginRefused {
            proxy: self.to_string(),
        }
    }

    fn timed_out(&self, after: Duration) -> UpstreamError {
        UpstreamError::TimedOut {
            proxy: self.to_string(),
            after,
        }
    }
}

/// Tells whether a name means this machine or a network of its own: one word, or an ending kept for that.
pub(crate) fn is_internal_name(host: &HostName) -> bool {
    let name = host.as_str();
    !name.contains('.')
        || INTERNAL_ENDINGS.contains(&name)
        || host
            .parents()
            .any(|parent| INTERNAL_ENDINGS.contains(&parent))
}

/// The checked address that the proxy is told; the first of the answer's.
pub(crate) fn pinned(addresses: &CheckedAddresses) -> Option<SocketAddr> {
    addresses.addresses().first().copied()
}

impl fmt::Display for UpstreamRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.proxy.fmt(f)
    }
}

impl fmt::Debug for UpstreamRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UpstreamRoute")
            .field(&self.0.proxy)
            .field(&self.0.names)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_network_of_its_own_are_known() {
        for (name, internal) in [
            ("metadata.google.internal", true),
            ("metadata", true),
            ("localhost", true),
            ("x.localhost", true),
            ("printer.local", true),
            ("nas.home.arpa", true),
            ("db.corp", true),
            ("api.example.com", false),
            ("local.example.com", false),
            ("internal.example.com", false),
        ] {
            let host = HostName::parse(name).unwrap();
            assert_eq!(is_internal_name(&host), internal, "{name}");
        }
    }

    #[test]
    fn the_proxy_itself_is_known_and_prints_without_its_login() {
        let proxy = UpstreamProxy::parse("http://u:hunter2hunter2@Proxy.Corp:3128").unwrap();
        let route = UpstreamRoute::new(proxy, NameCheck::Checked).unwrap();
        let is = |text: &str| route.is_itself(&Authority::parse(text).unwrap());
        assert!(is("proxy.corp:3128") && is("PROXY.corp.:3128"));
        assert!(!is("proxy.corp:443") && !is("other.corp:3128"));
        let shown = format!("{route} {route:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        let by_tls = UpstreamProxy::parse("https://proxy").unwrap();
        assert!(UpstreamRoute::new(by_tls, NameCheck::Checked).is_err());
    }
}
