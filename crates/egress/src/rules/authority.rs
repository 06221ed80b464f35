//! `host:port`, as it stands in a CONNECT line, a URL or a Host header.

use std::fmt;

use thiserror::Error;

use super::host::{HostName, InvalidHost};

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    pub host: HostName,
    pub port: u16,
}

/// The reason why a text is no host with a port.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InvalidAuthority {
    #[error("a user name or password before the host is refused")]
    Userinfo,
    #[error("the port is missing")]
    NoPort,
    #[error("the port is not a number from 1 to 65535")]
    BadPort,
    #[error(transparent)]
    Host(#[from] InvalidHost),
}

impl Authority {
    pub fn new(host: HostName, port: u16) -> Self {
        Self { host, port }
    }

    /// `host:port`, the port spelled out as CONNECT demands.
    pub fn parse(text: &str) -> Result<Self, InvalidAuthority> {
        let (host, port) = split(text)?;
        let port = port.ok_or(InvalidAuthority::NoPort)?;
        Ok(Self::new(host, port))
    }

    /// `host` or `host:port`, as URLs and Host headers have it.
    pub fn parse_with_default(text: &str, default: u16) -> Result<Self, InvalidAuthority> {
        let (host, port) = split(text)?;
        Ok(Self::new(host, port.unwrap_or(default)))
    }
}

pub(super) fn split(text: &str) -> Result<(HostName, Option<u16>), InvalidAuthority> {
    if text.contains('@') {
        return Err(InvalidAuthority::Userinfo);
    }
    // A bracket or a second colon can only be an IPv6 literal, whatever follows.
    if text.starts_with('[') || text.matches(':').count() > 1 {
        return Err(InvalidHost::Literal.into());
    }
    match text.split_once(':') {
        None => Ok((HostName::parse(text)?, None)),
        Some((host, port)) => Ok((HostName::parse(host)?, Some(parse_port(port)?))),
    }
}

fn parse_port(text: &str) -> Result<u16, InvalidAuthority> {
    let digits = (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits && port != 0 => Ok(port),
        _ => Err(InvalidAuthority::BadPort),
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_port_must_be_plain_digits() {
        for text in [
            "a:", "a:0", "a:65536", "a:+80", "a:-1", "a:8 0", "a: 80", "a:0x50", "a:000443", "a:４",
        ] {
            assert_eq!(
                Authority::parse(text),
                Err(InvalidAuthority::BadPort),
                "{text:?}"
            );
        }
        assert_eq!(Authority::parse("a"), Err(InvalidAuthority::NoPort));
        assert_eq!(Authority::parse("A.b.:443").unwrap().to_string(), "a.b:443");
    }

    #[test]
    fn userinfo_and_literals_are_told_apart() {
        assert_eq!(
            Authority::parse("u:p@a:443"),
            Err(InvalidAuthority::Userinfo)
        );
        assert_eq!(
            Authority::parse("allowed.com@evil.com:443"),
            Err(InvalidAuthority::Userinfo)
        );
        for text in [
            "[::1]:443",
            "::1:443",
            "[v1.a]:1",
            "a:1:2",
            "127.0.0.1:443",
            "[::1%25lo]:443",
        ] {
            assert_eq!(
                Authority::parse(text),
                Err(InvalidHost::Literal.into()),
                "{text:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_and_what_parses_prints_the_same(text in "\\PC{0,60}") {
            if let Ok(first) = Authority::parse(&text) {
                prop_assert_eq!(Authority::parse(&first.to_string()), Ok(first));
            }
        }
    }
}
