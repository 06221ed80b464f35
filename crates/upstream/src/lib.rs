//! A company's proxy between us and the world.
//!
//! The gateway's own requests and what leaves sandboxes go by the same few facts: where the proxy is, what it
//! wants to be told, and which hosts are reached without it. They are read once, here, so that no client reads
//! the environment by itself and no two parts disagree about `NO_PROXY`.

#![forbid(unsafe_code)]

mod exceptions;
mod percent;

use std::fmt;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hermetic_types::Secret;
use thiserror::Error;

pub use exceptions::ProxyExceptions;

/// A proxy that connections to the world go through. Prints without its login.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamProxy {
    scheme: ProxyScheme,
    host: String,
    port: u16,
    login: Option<ProxyLogin>,
    exceptions: ProxyExceptions,
}

/// How the proxy itself is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyScheme {
    Http,
    /// TLS to the proxy, whatever goes through it.
    Https,
}

#[derive(Clone, PartialEq, Eq)]
struct ProxyLogin {
    user: Secret,
    password: Secret,
}

/// The reason why a text is no address of a proxy. The text may hold a password, so it is not repeated.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InvalidProxy {
    #[error("{scheme}:// is not spoken to a proxy here: expected http://host:port")]
    Scheme { scheme: String },
    #[error("the proxy has no host: expected http://host:port")]
    NoHost,
    #[error("the proxy's host is not a name or an address: expected http://host:port")]
    Host,
    #[error("the proxy's port is not a number from 1 to 65535")]
    Port,
    #[error("the proxy's user name or password is not percent-encoded text")]
    Login,
    #[error("the proxy's user name holds a colon, which no proxy can be told")]
    Colon,
    #[error("something stands behind the proxy's port: expected http://host:port")]
    Path,
}

impl UpstreamProxy {
    /// Reads `http://user:password@host:port`. Without a scheme it is `http`, as curl has it.
    pub fn parse(text: &str) -> Result<Self, InvalidProxy> {
        let (scheme, rest) = match text.split_once("://") {
            None => (ProxyScheme::Http, text),
            Some((scheme, rest)) => (ProxyScheme::parse(scheme)?, rest),
        };
        // A password may hold an unescaped `@`; a host never does.
        let (login, place) = match rest.rsplit_once('@') {
            None => (None, rest),
            Some((login, place)) => (Some(ProxyLogin::parse(login)?), place),
        };
        let place = place.strip_suffix('/').unwrap_or(place);
        if place.contains(['/', '?', '#', '\\']) {
            return Err(InvalidProxy::Path);
        }
        let (host, port) = split_place(place)?;
        if host.is_empty() {
            return Err(InvalidProxy::NoHost);
        }
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        if host.parse::<IpAddr>().is_err() && !host.bytes().all(is_name) {
            return Err(InvalidProxy::Host);
        }
        let port = match port {
            None => scheme.default_port(),
            Some(port) => match port.parse() {
                Ok(number) if number != 0 && port.bytes().all(|b| b.is_ascii_digit()) => number,
                _ => return Err(InvalidProxy::Port),
            },
        };
        Ok(Self {
            scheme,
            host: host.to_ascii_lowercase(),
            port,
            login,
            exceptions: ProxyExceptions::default(),
        })
    }

    /// Reaches these hosts without the proxy.
    #[must_use]
    pub fn except(mut self, exceptions: ProxyExceptions) -> Self {
        self.exceptions = exceptions;
        self
    }

    /// Tells whether a connection to this host goes through the proxy. What is on this machine never does.
    pub fn serves(&self, host: &str, port: u16) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        !is_this_machine(host) && !self.exceptions.hold(host, port)
    }

    pub fn scheme(&self) -> ProxyScheme {
        self.scheme
    }

    /// The proxy's own name or address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of `Proxy-Authorization`.
    pub fn authorization(&self) -> Option<Secret> {
        let ProxyLogin { user, password } = self.login.as_ref()?;
        let both = Secret::new(format!("{}:{}", user.expose(), password.expose()));
        Some(Secret::new(format!(
            "Basic {}",
            STANDARD.encode(both.expose())
        )))
    }

    /// `user:password`, as it must never be shown.
    pub fn login(&self) -> Option<Secret> {
        let ProxyLogin { user, password } = self.login.as_ref()?;
        Some(Secret::new(format!(
            "{}:{}",
            user.expose(),
            password.expose()
        )))
    }

    /// Every text that a log, a chat and a model must not see.
    pub fn secrets(&self) -> Vec<Secret> {
        let Some(login) = &self.login else {
            return Vec::new();
        };
        // Both spellings: in an error of a client's the address stands as it was encoded.
        let encoded = |secret: &Secret| Secret::new(percent::encode(secret.expose()));
        let token = |value: Secret| {
            let token = value.expose().strip_prefix("Basic ").map(Secret::new);
            token.unwrap_or(value)
        };
        let mut all = vec![login.password.clone(), encoded(&login.password)];
        all.extend(self.authorization().map(token));
        all.retain(|secret| !secret.is_empty());
        all
    }

    /// The proxy as our HTTP client takes it.
    #[cfg(feature = "client")]
    pub fn for_client(&self) -> reqwest::Proxy {
        let proxy = self.clone();
        let url = Secret::new(self.url());
        reqwest::Proxy::custom(move |target| {
            let port = target.port_or_known_default().unwrap_or(0);
            let through = proxy.serves(target.host_str()?, port);
            through.then(|| url.expose().to_owned())
        })
    }

    #[cfg(feature = "client")]
    fn url(&self) -> String {
        let login = self.login.as_ref().map(|login| {
            let encoded = |secret: &Secret| percent::encode(secret.expose());
            format!("{}:{}@", encoded(&login.user), encoded(&login.password))
        });
        format!(
            "{}://{}{}",
            self.scheme.name(),
            login.unwrap_or_default(),
            self.place()
        )
    }

    fn place(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// `host`, `host:port` or either with an IPv6 address in brackets.
fn split_place(place: &str) -> Result<(&str, Option<&str>), InvalidProxy> {
    if let Some(rest) = place.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or(InvalidProxy::Host)?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(InvalidProxy::Host),
        };
    }
    Ok(match place.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (place, None),
    })
}

fn is_this_machine(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    let is_name = |tail: &str| {
        let rest = name
            .len()
            .checked_sub(tail.len())
            .and_then(|at| name.get(at..));
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(tail))
    };
    match name.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost") || is_name(".localhost"),
    }
}

impl ProxyScheme {
    fn parse(text: &str) -> Result<Self, InvalidProxy> {
        match text.to_ascii_lowercase().as_str() {
            "http" => Ok(Self::Http),
            "https" => Ok(Self::Https),
            scheme if scheme.len() <= 16 && scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                Err(InvalidProxy::Scheme {
                    scheme: scheme.to_owned(),
                })
            }
            _ => Err(InvalidProxy::Host),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl ProxyLogin {
    fn parse(text: &str) -> Result<Self, InvalidProxy> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let decoded = |text| percent::decode(text).ok_or(InvalidProxy::Login);
        let (user, password) = (decoded(user)?, decoded(password)?);
        // A colon in the name would be read as the end of it, and the rest as a part of the
        // password.
        if user.contains(':') {
            return Err(InvalidProxy::Colon);
        }
        Ok(Self {
            user: Secret::new(user),
            password: Secret::new(password),
        })
    }
}

impl fmt::Display for UpstreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.place())
    }
}

impl fmt::Debug for UpstreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = if self.login.is_some() {
            ", with a login"
        } else {
            ""
        };
        write!(f, "UpstreamProxy({self}{login})")
    }
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
