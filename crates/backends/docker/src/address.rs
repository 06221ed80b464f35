//! Where the engine is: `DOCKER_HOST`, the chosen context, or a socket in one of the usual places.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::context;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineAddress {
    Socket(PathBuf),
    /// `host:port`, with nothing to hide what is said or to whom.
    Plain(String),
    /// `host:port`, where both sides prove who they are.
    Tls(TlsHost),
    /// `user@host`, where `docker system dial-stdio` is run.
    Ssh(SshHost),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsHost {
    pub host: String,
    /// Holds `ca.pem`, `cert.pem` and `key.pem`.
    pub certificates: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshHost {
    /// As ssh takes it: a name of its configuration, or `user@host`.
    pub destination: String,
    pub port: Option<u16>,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum EngineAddressError {
    #[error("{text:?} is no address of an engine: expected unix://, tcp:// or ssh://")]
    Unknown { text: String },
    #[error("the docker context {name:?} cannot be read")]
    Context { name: String },
    #[error("the docker context {name:?} wants no proof of who the engine is (skip-tls-verify)")]
    Unproven { name: String },
    #[error("{text:?} wants TLS, and no folder with certificates is named in DOCKER_CERT_PATH")]
    NoCertificates { text: String },
}

/// Docker's own, then a rootless one, then Podman's.
const SOCKETS: [&str; 2] = ["/var/run/docker.sock", "/run/podman/podman.sock"];
const OWN_SOCKETS: [&str; 2] = ["docker.sock", "podman/podman.sock"];

impl EngineAddress {
    /// `variable` looks a name up in the environment.
    pub fn find(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, EngineAddressError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let certificates = set("DOCKER_CERT_PATH")
            .map(PathBuf::from)
            .or_else(|| context::client_folder(&set));
        // Docker takes the first for "encrypt, and trust anybody"; here it proves as well.
        let wants_tls = ["DOCKER_TLS", "DOCKER_TLS_VERIFY"]
            .iter()
            .any(|name| set(name).is_some());
        if let Some(text) = set("DOCKER_HOST") {
            return Self::parse(&text, wants_tls, certificates);
        }
        if let Some(chosen) = context::chosen(&set)? {
            let wants_tls = wants_tls || chosen.certificates.is_some();
            return Self::parse(
                &chosen.host,
                wants_tls,
                chosen.certificates.or(certificates),
            );
        }
        let own = set("XDG_RUNTIME_DIR").map(PathBuf::from);
        let sockets: Vec<PathBuf> = SOCKETS[..1]
            .iter()
            .map(PathBuf::from)
            .chain(
                own.iter()
                    .flat_map(|folder| OWN_SOCKETS.iter().map(move |name| folder.join(name))),
            )
            .chain(SOCKETS[1..].iter().map(PathBuf::from))
            .collect();
        let there = sockets.iter().find(|socket| socket.exists());
        Ok(Self::Socket(there.unwrap_or(&sockets[0]).clone()))
    }

    fn parse(
        text: &str,
        wants_tls: bool,
        certificates: Option<PathBuf>,
    ) -> Result<Self, EngineAddressError> {
        let tls = |host: &str| {
            Ok(Self::Tls(TlsHost {
                host: host.to_owned(),
                certificates: certificates.ok_or_else(|| EngineAddressError::NoCertificates {
                    text: text.to_owned(),
                })?,
            }))
        };
        let unknown = || EngineAddressError::Unknown {
            text: text.to_owned(),
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(unknown)?;
        let host = rest.trim_end_matches('/');
        match scheme {
            "unix" if rest.starts_with('/') => Ok(Self::Socket(rest.into())),
            "tcp" | "http" if !host.is_empty() && wants_tls => tls(host),
            "https" if !host.is_empty() => tls(host),
            "tcp" | "http" if !host.is_empty() => Ok(Self::Plain(host.to_owned())),
            "ssh" => SshHost::parse(host).map(Self::Ssh).ok_or_else(unknown),
            _ => Err(unknown()),
        }
    }

    /// Whether paths of this machine mean something to the engine.
    pub fn is_near(&self) -> bool {
        matches!(self, Self::Socket(_))
    }

    pub(crate) fn socket(&self) -> Option<&Path> {
        match self {
            Self::Socket(path) => Some(path),
            Self::Plain(_) | Self::Tls(_) | Self::Ssh(_) => None,
        }
    }
}

impl SshHost {
    fn parse(text: &str) -> Option<Self> {
        let (user, host) = match text.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, text),
        };
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (host, None),
        };
        // A word that starts with a dash would be an option to ssh.
        let plain = |word: &str| {
            !word.is_empty() && !word.starts_with('-') && !word.contains(char::is_whitespace)
        };
        if !plain(host) || !user.is_none_or(plain) {
            return None;
        }
        Some(Self {
            destination: user.map_or(host.to_owned(), |user| format!("{user}@{host}")),
            port,
        })
    }
}

impl fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix://{}", path.display()),
            Self::Plain(host) => write!(f, "tcp://{host}"),
            Self::Tls(far) => write!(f, "https://{}", far.host),
            Self::Ssh(host) => match host.port {
                Some(port) => write!(f, "ssh://{}:{port}", host.destination),
                None => write!(f, "ssh://{}", host.destination),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_docker_writes_them() {
        let parse =
            |text| EngineAddress::parse(text, false, None).map(|address| address.to_string());
        for text in [
            "unix:///run/docker.sock",
            "tcp://127.0.0.1:2375",
            "ssh://me@far:2222",
            "ssh://far",
        ] {
            assert_eq!(parse(text), Ok(text.to_owned()));
        }
        assert_eq!(
            EngineAddress::parse("tcp://engine:2376", true, Some("/certs".into())),
            Ok(EngineAddress::Tls(TlsHost {
                host: "engine:2376".to_owned(),
                certificates: "/certs".into(),
            }))
        );
        assert!(matches!(
            EngineAddress::parse("https://engine:2376", false, None),
            Err(EngineAddressError::NoCertificates { .. })
        ));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "/run/docker.sock",
            "unix://relative",
            "npipe:////./pipe/docker",
            "ssh://-oProxyCommand=x",
            "ssh://me@-x",
            "ssh://far:port",
            "tcp://",
        ] {
            assert!(
                EngineAddress::parse(text, false, None).is_err(),
                "{text:?} was taken"
            );
        }
    }

    #[test]
    fn the_variable_comes_before_everything() {
        let found = EngineAddress::find(&|name| match name {
            "DOCKER_HOST" => Some("tcp://127.0.0.1:1".to_owned()),
            "DOCKER_CONTEXT" => Some("far".to_owned()),
            _ => None,
        });
        assert_eq!(found, Ok(EngineAddress::Plain("127.0.0.1:1".to_owned())));
    }
}
