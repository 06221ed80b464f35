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
mod tests {
    use super::*;

    fn read(text: &str) -> UpstreamProxy {
        UpstreamProxy::parse(text).unwrap()
    }

    #[test]
    fn an_address_is_read_in_every_usual_spelling() {
        for (text, shown) in [
            ("http://proxy.corp:3128", "http://proxy.corp:3128"),
            ("proxy.corp:3128", "http://proxy.corp:3128"),
            ("HTTP://Proxy.Corp:3128/", "http://proxy.corp:3128"),
            ("http://proxy", "http://proxy:80"),
            ("https://proxy", "https://proxy:443"),
            ("http://10.0.0.1:8080", "http://10.0.0.1:8080"),
            ("http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080"),
            ("http://u:p@ss@proxy:1", "http://proxy:1"),
        ] {
            assert_eq!(read(text).to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_of_a_proxy_is_said_without_repeating_it() {
        for text in [
            "",
            "http://",
            "http://:3128",
            "socks5://u:hunter2@proxy:1080",
            "http://u:hunter2@proxy:0",
            "http://u:hunter2@proxy:+1",
            "http://u:hunter2@proxy:99999",
            "http://u:hunter2@pro xy:1",
            "http://u:hunter2@proxy:1/path",
            "http://u:hunter2@[::1:1",
            "http://u:hunter2%4@proxy:1",
            "http://u:hunter2%0d%0a@proxy:1",
            "http://a%3Ab:hunter2@proxy:1",
        ] {
            let error = UpstreamProxy::parse(text).expect_err(text).to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_login_is_decoded_and_never_printed() {
        let proxy = read("http://al%40corp:s%3Acret%2Fx@proxy:3128");
        assert_eq!(
            proxy.authorization().unwrap().expose(),
            format!("Basic {}", STANDARD.encode("al@corp:s:cret/x"))
        );
        let shown = format!("{proxy} {proxy:?} {:?}", proxy.login());
        assert!(
            !shown.contains("s:cret") && !shown.contains("al@corp"),
            "{shown}"
        );
        let secrets = proxy.secrets();
        let texts: Vec<&str> = secrets.iter().map(Secret::expose).collect();
        assert!(
            texts.contains(&"s:cret/x") && texts.contains(&"s%3Acret%2Fx"),
            "every spelling that a log could hold"
        );
        assert!(read("http://proxy:1").secrets().is_empty());
    }

    #[test]
    fn this_machine_is_never_reached_through_it() {
        let proxy = read("http://proxy:3128");
        for here in [
            "localhost",
            "LOCALHOST",
            "a.localhost",
            "localhost.",
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "[::1]",
            "::ffff:127.0.0.1",
        ] {
            assert!(!proxy.serves(here, 80), "{here}");
        }
        for elsewhere in ["example.org", "notlocalhost", "10.0.0.1", "é"] {
            assert!(proxy.serves(elsewhere, 80), "{elsewhere}");
        }
    }

    /// Listens on loopback and tells the first head of each connection.
    #[cfg(feature = "client")]
    fn listener() -> (
        std::net::SocketAddr,
        std::sync::mpsc::Receiver<(std::net::SocketAddr, String)>,
    ) {
        use std::io::{BufRead as _, BufReader, Write as _};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let (tell, heads) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(&stream).lines();
                let head: Vec<_> = lines
                    .by_ref()
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .collect();
                let _ = tell.send((at, head.join("\n")));
                let no = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                let _ = (&stream).write_all(no);
            }
        });
        (at, heads)
    }

    #[cfg(feature = "client")]
    #[tokio::test]
    async fn our_client_goes_through_it_with_its_login_and_past_it_where_that_is_said() {
        let (at, heads) = listener();
        let (direct, direct_heads) = listener();
        let proxy = read(&format!("http://cl%40rk:pass%2Fword@{at}"))
            .except(ProxyExceptions::parse("direct.test"));
        let client = reqwest::Client::builder()
            .no_proxy()
            .proxy(proxy.for_client())
            .resolve("direct.test", direct)
            .build()
            .unwrap();
        let login = format!("Basic {}", STANDARD.encode("cl@rk:pass/word"));
        let has_login = |head: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.any(|(name, value)| {
                name.eq_ignore_ascii_case("proxy-authorization") && value == login
            })
        };
        let _ = client.get("http://chat.test/x").send().await;
        let (_, head) = heads.recv().unwrap();
        assert!(head.starts_with("GET http://chat.test/x "), "{head}");
        assert!(has_login(&head), "{head}");
        // Websockets begin as this too.
        let failed = client.get("https://chat.test/x").send().await.unwrap_err();
        let (_, head) = heads.recv().unwrap();
        assert!(head.starts_with("CONNECT chat.test:443 "), "{head}");
        assert!(has_login(&head), "{head}");
        let told = format!("{failed:?} {client:?}");
        assert!(
            !told.contains("pass/word") && !told.contains("pass%2Fword"),
            "{told}"
        );
        let _ = client
            .get(format!("http://direct.test:{}/y", direct.port()))
            .send()
            .await;
        let (_, head) = direct_heads.recv().unwrap();
        assert!(head.starts_with("GET /y "), "{head}");
        assert!(!has_login(&head), "{head}");
        assert!(heads.try_recv().is_err(), "nothing else went through it");
    }
}
